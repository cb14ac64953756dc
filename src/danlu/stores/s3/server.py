"""What every request to an S3 server needs: names, keys, and what an answer stands for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from danlu.model.errors import Invalid, Missing, PlatformError, Refused, Unavailable
from danlu.ports.objects import ObjectInfo, StorePowers
from danlu.stores.names import is_bucket, key_bytes
from danlu.stores.s3 import about
from danlu.stores.s3.answers import Answer, strange
from danlu.stores.s3.client import TIMEOUT_S, TRIES, Client, Patience, Request
from danlu.stores.s3.keys import PATHS, check_key, keys_of, names_of
from danlu.stores.s3.reading import Opened, Reading

UPLOAD_AGE_S = 7 * 24 * 3600.0


class Server:
    """A server and its buckets.

    `keys`: a TOML file with access_key, secret_key and perhaps token, which only its owner may
    read. `buckets`: "ours=theirs, …", where buckets have other names there; others than those
    are not touched then. `tries`, `timeout_s`: see `Patience`. `upload_age_s`: uploads to those
    buckets that were begun so long ago are aborted by a sweep.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        keys: str = "",
        region: str = "us-east-1",
        buckets: str = "",
        tries: int | str = TRIES,
        timeout_s: float | str = TIMEOUT_S,
        upload_age_s: float | str = UPLOAD_AGE_S,
    ) -> None:
        patience = Patience(tries=int(tries), timeout_s=float(timeout_s))
        self._client = Client(endpoint, keys_of(keys, region), patience)
        self._names = names_of(buckets)
        self._paths: bool | None = None
        self._upload_age_s = float(upload_age_s)

    def close(self) -> None:
        """Close idle connections."""
        self._client.close()

    @property
    def powers(self) -> StorePowers:
        """A server that keeps keys as paths has neither every key nor the order of bytes."""
        paths = self._keeps_paths()
        return StorePowers(any_key=not paths, ordered=not paths, steady_reads=False)

    def head(self, bucket: str, key: str) -> ObjectInfo:
        self._key(key)
        return about.info_of(bucket, key, self._head(bucket, key))

    def read(
        self, bucket: str, key: str, start: int = 0, length: int | None = None
    ) -> Iterator[bytes]:
        self._key(key)
        if start or length is not None:
            info = self.head(bucket, key)
            end = info.size if length is None else min(info.size, start + length)
            outside = start >= info.size and start > 0
            if start < 0 or outside or (length is not None and length < 0):
                last = "" if length is None else start + length - 1
                raise Invalid(
                    "object-range", http=416, key=key, start=start, end=last, size=info.size
                )
            return iter(()) if end <= start else self._reading(bucket, key, (info, start, end))
        return self._reading(bucket, key, None)

    def _reading(
        self, bucket: str, key: str, stretch: tuple[ObjectInfo, int, int] | None
    ) -> Reading:
        """The whole object, or from byte to byte of the version of it that is known."""
        info, start, end = stretch or (None, 0, -1)
        wanted = {}
        if info is not None:
            wanted = {"range": f"bytes={start}-{end - 1}", "if-match": f'"{info.etag}"'}
        remote = self._remote(bucket)
        response, answer, held = self._client.open(Request("GET", remote, key, headers=wanted))
        if answer.status not in (200, 206):
            if answer.status == 412:
                raise Unavailable("object-changed", bucket=bucket, key=key, at=start)
            self._check(answer, bucket, key)
        found = about.info_of(bucket, key, answer)
        if answer.status == 200 and start:
            held.close()
            raise strange("a range was asked for and the whole object came")
        if info is None:
            end = found.size
        return Reading(self._client, found, remote, Opened(response, answer, held, start), end)

    def _stored(self, made: ObjectInfo) -> ObjectInfo:
        """What the server says of an object that was just stored: it knows the time. Others may
        have replaced or deleted it since; `made` is what is known without asking.
        """
        try:
            found = self.head(made.bucket, made.key)
        except Missing:
            return made
        return found if found.etag == made.etag else made

    def _head(self, bucket: str, key: str) -> Answer:
        answer, _ = self._client.call(Request("HEAD", self._remote(bucket), key))
        if answer.status == 404:  # without a body, so without a word about what is missing
            self._said(Request("HEAD", self._remote(bucket)), bucket)
            raise Missing("no-such-object", bucket=bucket, key=key)
        self._check(answer, bucket, key)
        return answer

    def _said(self, request: Request, bucket: str = "", key: str | None = None) -> Answer:
        answer, _ = self._client.call(request)
        self._check(answer, bucket, key)
        return answer

    def _check(
        self,
        answer: Answer,
        bucket: str = "",
        key: str | None = None,
        condition: Mapping[str, str] | None = None,
    ) -> None:
        """Raise what an answer stands for, unless it is a success."""
        if answer.status < 300:
            return
        if answer.status in (401, 403):
            raise Unavailable("s3-denied", endpoint=self._client.endpoint, detail=answer.said)
        if answer.code == "NoSuchUpload":
            raise Missing("no-such-upload", bucket=bucket, key=key, id="")
        if answer.status == 404 and (key is None or answer.code == "NoSuchBucket"):
            raise Missing("no-such-bucket", bucket=bucket)
        if answer.status == 404:
            if answer.code not in ("NoSuchKey", "NoSuchUpload"):
                self._said(Request("HEAD", self._remote(bucket)), bucket)
            raise Missing("no-such-object", bucket=bucket, key=key)
        if answer.status in (409, 412) and condition:
            words = ", ".join(f"{name} {value}" for name, value in condition.items())
            raise Refused("object-condition", http=412, bucket=bucket, key=key, condition=words)
        if answer.status == 507 or answer.code == "QuotaExceeded":
            raise Refused("s3-full", http=507, endpoint=self._client.endpoint, detail=answer.said)
        raise self._refusal(answer, bucket, key)

    def _refusal(self, answer: Answer, bucket: str, key: str | None) -> PlatformError:
        if answer.status in (400, 409):
            return Refused("s3-refused", bucket=bucket, key=key or "", detail=answer.said)
        return strange(answer.said)

    def _remote(self, bucket: str) -> str:
        """The bucket's name there. What cannot be a bucket is not there."""
        name = self._names.get(bucket, "") if self._names else bucket
        if not is_bucket(bucket) or not name:
            raise Missing("no-such-bucket", bucket=bucket)
        return name

    def _key(self, key: str, *, filled: bool = False) -> None:
        """Raise Invalid for a key that cannot be here; `filled`: with content."""
        key_bytes(key)
        if not self._can_have(key):
            raise Invalid("s3-key", key=key, server=self._client.server)
        if filled and key.endswith("/") and self._keeps_paths():
            raise Invalid("s3-folder", key=key, server=self._client.server)

    def _can_have(self, key: str) -> bool:
        return not self._keeps_paths() or check_key(key)

    def _keeps_paths(self) -> bool:
        if self._paths is None:
            if not self._client.server:
                self._client.call(Request("GET"))
            self._paths = self._client.server.startswith(PATHS)
        return self._paths


def condition_of(absent: bool, etag: str | None) -> dict[str, str]:  # noqa: FBT001 - a flag of the port
    if absent:
        return {"if-none-match": "*"}
    return {} if etag is None else {"if-match": f'"{etag}"'}
