"""AWS signature V4, as S3 takes it, also of bodies that come in signed chunks. Pure."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, unquote_to_bytes

from danlu.faces.http.headers import Headers
from danlu.faces.obs.query import Query
from danlu.model.errors import Denied
from danlu.model.sign_v4 import (
    ALGORITHM,
    EMPTY,
    MOST_EXPIRES_S,
    UNSIGNED,
    scope_of,
    sign,
    signing_key,
    string_to_sign,
)

__all__ = [
    "ALGORITHM", "EMPTY", "MOST_EXPIRES_S", "UNSIGNED", "sign", "signing_key", "string_to_sign",
]  # fmt: skip

STREAMED = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
STREAMED_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"

_AUTHORIZATION = re.compile(
    r"Credential=([^,\s]{1,512}),\s*SignedHeaders=([a-z0-9;._-]{1,4096}),\s*Signature=([0-9a-f]{64})"
)
_DATE = re.compile(r"\d{8}T\d{6}Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Authorization:
    """Who signed which headers, for which day, region and service; and the signature."""

    access_key: str
    day: str
    region: str
    service: str
    signed_headers: tuple[str, ...]
    signature: str

    @property
    def scope(self) -> str:
        """What the signing key is good for."""
        return scope_of(self.day, self.region, self.service)


def of_header(value: str) -> Authorization:
    """Read an Authorization header behind its algorithm."""
    match = _AUTHORIZATION.fullmatch(value.strip()) if len(value) <= 8192 else None
    if match is None:
        detail = "it must be Credential=…, SignedHeaders=…, Signature=… (64 hexadecimal digits)"
        raise Denied("obs-authorization", http=400, detail=detail)
    return _authorization(match[1], match[2], match[3])


def of_query(query: Query) -> Authorization:
    """Read the parameters of a signed URL."""
    return _authorization(
        query.get("X-Amz-Credential"),
        query.get("X-Amz-SignedHeaders"),
        query.get("X-Amz-Signature"),
    )


def _authorization(credential: str, signed: str, signature: str) -> Authorization:
    access_key, *scope = credential.rsplit("/", 4)
    if len(scope) != 4 or scope[3] != "aws4_request" or not access_key:
        detail = "Credential must be KEY/YYYYMMDD/REGION/s3/aws4_request"
        raise Denied("obs-authorization", http=400, detail=detail)
    if scope[2] != "s3":
        detail = f"Credential is for the service '{scope[2][:20]}' and must be for 's3'"
        raise Denied("obs-authorization", http=400, detail=detail)
    names = tuple(signed.lower().split(";"))
    if "host" not in names:
        raise Denied("obs-header-unsigned", http=403, header="host")
    return Authorization(access_key, scope[0], scope[1], scope[2], names, signature)


def instant(text: str) -> int | None:
    """UTC milliseconds of `20260131T235959Z`; None for what is no date."""
    if not _DATE.fullmatch(text):
        return None
    try:
        return round(
            datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp() * 1e3
        )
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it came over the wire."""

    method: str
    raw_path: bytes
    query: Query
    headers: Headers


def canonical_requests(sent: Sent, signed_headers: Iterable[str], payload: str) -> Iterator[str]:
    """What may have been signed. The first is as Amazon describes it; some clients leave the path
    as they send it, or white space in a header's value as it is.
    """
    names = tuple(signed_headers)
    query = canonical_query(sent.query)
    sent_path = sent.raw_path.decode("ascii", "replace")
    paths = dict.fromkeys((quote(unquote_to_bytes(sent.raw_path), safe="/-_.~"), sent_path))
    values = {name: sent.headers.get(name) for name in names}
    for name, value in values.items():
        if value is None:
            raise Denied("obs-header-unsigned", http=403, header=name)
    collapsed = [f"{name}:{' '.join((value or '').split())}" for name, value in values.items()]
    stripped = [f"{name}:{(value or '').strip()}" for name, value in values.items()]
    for lines in (collapsed, stripped) if collapsed != stripped else (collapsed,):
        for path in paths:
            yield "\n".join([sent.method, path or "/", query, *lines, "", ";".join(names), payload])


def canonical_query(query: Query) -> str:
    """Every parameter but the signature, encoded again and sorted."""
    return "&".join(
        f"{name}={value}"
        for name, value in sorted(
            (
                quote(name, safe="-_.~", errors="surrogateescape"),
                quote(value or "", safe="-_.~", errors="surrogateescape"),
            )
            for name, value in query.items()
            if name != "X-Amz-Signature"
        )
    )


class ChunkSigner:
    """The signatures of the chunks of one body, each of which signs the one before it."""

    def __init__(self, key: bytes, date: str, scope: str, seed: str) -> None:
        self._key = key
        self._head = f"{date}\n{scope}\n"
        self._last = seed

    def check_chunk(self, digest: str, signature: str) -> None:
        """Denied unless `signature` is that of the next chunk, whose SHA-256 is `digest`."""
        self._check("PAYLOAD", f"{EMPTY}\n{digest}", signature)

    def check_trailer(self, text: bytes, signature: str) -> None:
        """Denied unless `signature` is that of the headers behind the last chunk."""
        self._check("TRAILER", hashlib.sha256(text).hexdigest(), signature)

    def _check(self, kind: str, rest: str, signature: str) -> None:
        text = f"{ALGORITHM}-{kind}\n{self._head}{self._last}\n{rest}"
        expected = sign(self._key, text)
        if not hmac.compare_digest(expected.encode(), signature.encode("latin-1", "replace")):
            raise Denied("obs-chunk-signature", http=403, string_to_sign=text)
        self._last = expected
