"""`ObjectStore` over any S3 endpoint. Standard library only."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from typing import BinaryIO
from urllib.parse import quote, urlencode

from danlu.model.errors import Missing, PlatformError, Refused, Unavailable
from danlu.model.xml_text import fits_xml
from danlu.ports.objects import MAX_PARTS, BucketInfo, Listing, ObjectInfo, Usage
from danlu.stores.folder.reading import Chain
from danlu.stores.names import check_bucket, check_texts, is_bucket, key_bytes, part_bytes
from danlu.stores.s3 import about, listing
from danlu.stores.s3.answers import Answer, children, instant, strange, text
from danlu.stores.s3.client import Request
from danlu.stores.s3.fetching import S3Fetching
from danlu.stores.s3.server import condition_of
from danlu.stores.s3.uploads import AT_ONCE, PART, Source, begun
from danlu.stores.s3.xml import xml

BATCH = 1000
"""Keys that one request deletes."""
COPY_MOST = 5 << 30
"""Bytes that one request copies."""
COPY_PART = 256 << 20


class S3Store(S3Fetching):
    """Objects on an S3 server; see `Server` for what it is made with."""

    # ------------------------------------------------------------------ buckets

    def buckets(self) -> Sequence[str]:
        found = self._said(Request("GET")).xml()
        there = set(children(found, "Buckets", "Bucket", "Name"))
        if self._names:
            return sorted(name for name, theirs in self._names.items() if theirs in there)
        return sorted(name for name in there if is_bucket(name))

    def create_bucket(self, bucket: str) -> bool:
        check_bucket(bucket)
        answer, doubtful = self._client.call(Request("PUT", self._remote(bucket)))
        if answer.status == 409 and answer.code == "BucketAlreadyOwnedByYou":
            return doubtful
        if answer.status == 409:
            raise Refused("bucket-exists", bucket=bucket)
        self._check(answer, bucket)
        return True

    def delete_bucket(self, bucket: str) -> None:
        """Uploads to it are aborted first: some servers would keep them for a later bucket."""
        remote = self._remote(bucket)
        if not self.list(bucket, limit=1).objects:
            self._abort_all(bucket)
        answer, doubtful = self._client.call(Request("DELETE", remote))
        if answer.code == "BucketNotEmpty":
            raise Refused("bucket-not-empty", bucket=bucket)
        if not (doubtful and answer.status == 404):
            self._check(answer, bucket)

    def bucket(self, bucket: str) -> BucketInfo:
        remote = self._remote(bucket)
        for found in self._said(Request("GET")).xml().findall("Buckets/Bucket"):
            if text(found, "Name") == remote:
                return BucketInfo(bucket, instant(text(found, "CreationDate")))
        raise Missing("no-such-bucket", bucket=bucket)

    def usage(self, bucket: str) -> Usage:
        objects = size = 0
        for item in self.walk(bucket):
            objects += 1
            size += item.size
        return Usage(objects, size)

    # ------------------------------------------------------------------ objects

    def put(
        self,
        bucket: str,
        key: str,
        source: bytes | BinaryIO,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        if_absent: bool = False,
        if_etag: str | None = None,
    ) -> ObjectInfo:
        return self._put(
            bucket, key, source, metadata, headers, {}, condition_of(if_absent, if_etag)
        )

    def _put(
        self,
        bucket: str,
        key: str,
        source: bytes | Source,
        metadata: Mapping[str, str] | None,
        headers: Mapping[str, str] | None,
        tags: Mapping[str, str],
        condition: Mapping[str, str],
    ) -> ObjectInfo:
        first, rest = begun(source)
        self._key(key, filled=bool(first))
        tagged = {"x-amz-tagging": urlencode(tags, quote_via=quote)} if tags else {}
        if rest is not None:
            said = about.written(metadata, headers, part_size=str(PART))
            return self._put_parts(bucket, key, first, rest, {**said, **tagged}, condition)
        token = secrets.token_hex(8)
        digest = hashlib.sha256(first).hexdigest()
        said = about.written(metadata, headers, sha256=digest, put=token) | tagged
        request = Request("PUT", self._remote(bucket), key, {}, {**said, **condition}, first)
        answer, doubtful = self._client.call(request)
        if doubtful and answer.status == 412:
            # The first try may have been ours: only the object itself can tell.
            found = self._head(bucket, key)
            if found.headers.get(f"{about.META}{about.PUT}") == token:
                return about.info_of(bucket, key, found)
        self._check(answer, bucket, key, condition)
        etag = about.etag_of(answer.headers.get("etag", ""))
        mine = hashlib.md5(first, usedforsecurity=False).hexdigest()
        if len(etag) == len(mine) and etag != mine:
            raise strange(f"object '{key}' was stored with etag {etag}, not {mine}")
        made = ObjectInfo(
            bucket,
            key,
            len(first),
            etag,
            instant(answer.headers.get("date", "")),
            dict(metadata or {}),
            digest,
            dict(headers or {}),
        )
        return self._stored(made)

    def delete(self, bucket: str, keys: Iterable[str]) -> None:
        remote = self._remote(bucket)
        pending = iter(keys)
        empty = True
        while batch := list(islice(pending, BATCH)):
            empty = False
            # What the server cannot have is not there.
            there = [key for key in batch if key_bytes(key) and self._can_have(key)]
            objects = "".join(f"<Object><Key>{xml(key)}</Key></Object>" for key in there)
            if any(not fits_xml(key) for key in there):
                self._delete_each(bucket, there)
            elif there:
                body = f"<Delete><Quiet>true</Quiet>{objects}</Delete>".encode()
                answer = self._said(Request("POST", remote, "", {"delete": ""}, {}, body), bucket)
                self._delete_each(bucket, list(children(answer.xml(), "Error", "Key")))
        if empty:
            self.bucket(bucket)

    def copy(
        self,
        bucket: str,
        key: str,
        to_bucket: str,
        to_key: str,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ObjectInfo:
        self._key(key)
        self._key(to_key)
        kept = metadata is None and headers is None
        if kept and (bucket, key) == (to_bucket, to_key):
            return self.head(bucket, key)
        return self._copied(bucket, key, to_bucket, to_key, None if kept else (metadata, headers))

    def describe(
        self,
        bucket: str,
        key: str,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ObjectInfo:
        self._key(key)
        return self._copied(bucket, key, bucket, key, (metadata, headers))

    def append(
        self,
        bucket: str,
        key: str,
        source: bytes | BinaryIO,
        position: int,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> ObjectInfo:
        """S3 has no appending: the whole is put again, unless others have changed it meanwhile."""
        try:
            old = self.head(bucket, key)
        except Missing as missing:
            if missing.key != "no-such-object" or position:
                raise
            return self.put(bucket, key, source, metadata=metadata, headers=headers, if_absent=True)
        if position != old.size:
            raise Refused(
                "object-position", bucket=bucket, key=key, position=position, size=old.size
            )
        content = self.read(bucket, key, 0, old.size)
        return self._put(
            bucket,
            key,
            Chain(content, source),
            old.metadata,
            old.headers,
            self.tags(bucket, key),
            condition_of(absent=False, etag=old.etag),
        )

    def rename(self, bucket: str, key: str, to_key: str) -> ObjectInfo:
        """S3 has no renaming: a copy is made, then the original goes, unless others have changed
        it meanwhile. A crash in between leaves both.
        """
        old = self.head(bucket, key)
        made = self.copy(bucket, key, bucket, to_key)
        if key != to_key:
            # Not every server knows a condition here, so it is looked at as well.
            sent = condition_of(absent=False, etag=old.etag)
            self._unchanged(old)
            request = Request("DELETE", self._remote(bucket), key, {}, sent)
            answer, _ = self._client.call(request)
            if answer.status == 412:
                raise Unavailable("object-changed", bucket=bucket, key=key, at=0)
            if answer.status != 404:
                self._check(answer, bucket, key)
        return made

    def list(
        self,
        bucket: str,
        prefix: str = "",
        *,
        delimiter: str = "",
        after: str = "",
        limit: int = 1000,
    ) -> Listing:
        for part in (prefix, delimiter, after):
            part_bytes(part)
        wanted = listing.Wanted(bucket, self._remote(bucket), prefix, delimiter, after, limit)
        return listing.page(lambda request: self._said(request, bucket), wanted)

    def walk(self, bucket: str, prefix: str = "") -> Iterator[ObjectInfo]:
        after: str | None = ""
        while after is not None:
            page = self.list(bucket, prefix, after=after)
            yield from page.objects
            after = page.next

    # ------------------------------------------------------------------ tags

    def tags(self, bucket: str, key: str | None = None) -> Mapping[str, str]:
        if key is not None:
            self._key(key)
        request = Request("GET", self._remote(bucket), key or "", {"tagging": ""})
        answer, _ = self._client.call(request)
        if answer.code == "NoSuchTagSet":
            return {}
        self._check(answer, bucket, key)
        found = answer.xml().findall("TagSet/Tag")
        return {text(tag, "Key"): text(tag, "Value") for tag in found}

    def set_tags(self, bucket: str, key: str | None, tags: Mapping[str, str]) -> None:
        check_texts(tags, "tags")
        if key is not None:
            self._key(key)
        pairs = "".join(
            f"<Tag><Key>{xml(name)}</Key><Value>{xml(value)}</Value></Tag>"
            for name, value in tags.items()
        )
        body = f"<Tagging><TagSet>{pairs}</TagSet></Tagging>".encode() if tags else b""
        method = "PUT" if tags else "DELETE"
        request = Request(method, self._remote(bucket), key or "", {"tagging": ""}, {}, body)
        self._said(request, bucket, key)

    # ------------------------------------------------------------------ inside

    def _copied(
        self,
        bucket: str,
        key: str,
        to_bucket: str,
        to_key: str,
        said: tuple[Mapping[str, str] | None, Mapping[str, str] | None] | None,
    ) -> ObjectInfo:
        source = self._head(bucket, key)
        if int(source.headers.get("content-length", "0")) > COPY_MOST:
            return self._copied_in_parts(bucket, key, to_bucket, to_key, source, said)
        sent = {
            "x-amz-copy-source": f"/{self._remote(bucket)}/{quote(key, safe='/-_.~')}",
            "x-amz-copy-source-if-match": source.headers.get("etag", ""),
        }
        if said is not None:
            ours = {
                name.removeprefix(f"{about.META}{about.OURS}").replace("-", "_"): value
                for name, value in source.headers.items()
                if name in (f"{about.META}danlu-sha256", f"{about.META}{about.PART_SIZE}")
            }
            sent.update(about.written(said[0], said[1], **ours))
            sent["x-amz-metadata-directive"] = "REPLACE"
        request = Request("PUT", self._remote(to_bucket), to_key, {}, sent)
        answer, _ = self._client.call(request)
        if answer.status == 412:
            raise Unavailable("object-changed", bucket=bucket, key=key, at=0)
        self._check(answer, to_bucket, to_key)
        if answer.code:
            raise strange(answer.said)
        return self.head(to_bucket, to_key)

    def _copied_in_parts(
        self,
        bucket: str,
        key: str,
        to_bucket: str,
        to_key: str,
        source: Answer,
        said: tuple[Mapping[str, str] | None, Mapping[str, str] | None] | None,
    ) -> ObjectInfo:
        """A copy of more than one request may copy, made by the server all the same."""
        info = about.info_of(bucket, key, source)
        metadata, headers = said or (info.metadata, info.headers)
        size = max(COPY_PART, -(-info.size // MAX_PARTS))
        ours = {"part_size": str(size), **({"sha256": info.sha256} if info.sha256 else {})}
        tags = self.tags(bucket, key)
        more = {"x-amz-tagging": urlencode(tags, quote_via=quote)} if tags else {}
        written = {**about.written(metadata, headers, **ours), **more}
        upload = self._create(to_bucket, to_key, written, {}, {}).id

        def copy(start: int) -> tuple[int, str]:
            number = start // size + 1
            part = self.copy_part(to_bucket, to_key, upload, number, bucket, key, start, size)
            return number, part.etag

        try:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                parts = list(pool.map(copy, range(0, info.size, size)))
            self._unchanged(info)
            return self._complete(to_bucket, to_key, upload, parts, {})
        except BaseException:
            with suppress(PlatformError):
                self._abort(to_bucket, to_key, upload)
            raise

    def _unchanged(self, info: ObjectInfo) -> None:
        if self.head(info.bucket, info.key).etag != info.etag:
            raise Unavailable("object-changed", bucket=info.bucket, key=info.key, at=0)

    def _delete_each(self, bucket: str, keys: Sequence[str]) -> None:
        """One by one: what an XML document cannot carry, and what the server did not delete."""
        for key in keys:
            answer, _ = self._client.call(Request("DELETE", self._remote(bucket), key))
            if answer.status != 404 or answer.code == "NoSuchBucket":
                self._check(answer, bucket, key)
