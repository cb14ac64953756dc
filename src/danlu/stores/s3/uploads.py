"""Uploads in parts on an S3 server, and puts that are too large for one request."""

from __future__ import annotations

import hashlib
import io
import mmap
import os
import re
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import BinaryIO, Protocol
from urllib.parse import quote

from danlu.model.errors import Invalid, Missing, PlatformError, Unavailable
from danlu.ports.objects import MAX_PARTS, ObjectInfo, Part, Parts, Upload, Uploads
from danlu.stores.names import part_bytes
from danlu.stores.s3 import about
from danlu.stores.s3.answers import Answer, instant, strange, text, url_text, whole
from danlu.stores.s3.client import Body, Request
from danlu.stores.s3.server import Server, condition_of
from danlu.stores.s3.xml import xml

PART = 16 << 20
"""Bytes of a put that go in one request, and of each part of a larger one."""
MD5 = 32
AT_ONCE = 3
"""Parts of one put that are on their way together."""
PAGES = 1000
"""Pages of a listing that are read at most: a server may repeat itself."""


class Source(Protocol):
    """What gives bytes until it gives none."""

    def read(self, size: int = ..., /) -> bytes:
        """Up to `size` bytes; nothing at the end."""


class S3Uploads(Server):
    """`Multipart` on an S3 server."""

    def sweep(self) -> None:
        """Abort stale uploads to the buckets that are named as ours; what others left in other
        buckets is theirs. A failure is not worth telling: they stay.
        """
        before = (time.time() - self._upload_age_s) * 1000
        for bucket in self._names:
            with suppress(PlatformError):
                for upload in list(self._all(bucket, "")):
                    if upload.created_at <= before:
                        self._abort(bucket, upload.key, upload.id)

    def create_upload(
        self,
        bucket: str,
        key: str,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Upload:
        said = about.written(metadata, headers)
        return self._create(bucket, key, said, metadata or {}, headers or {})

    def put_part(
        self, bucket: str, key: str, upload: str, number: int, source: bytes | BinaryIO
    ) -> Part:
        check_number(number)
        with body_of(source) as body:
            return self._put_part(bucket, key, upload, number, body)

    def copy_part(
        self,
        bucket: str,
        key: str,
        upload: str,
        number: int,
        from_bucket: str,
        from_key: str,
        start: int = 0,
        length: int | None = None,
    ) -> Part:
        check_number(number)
        info = self.head(from_bucket, from_key)
        end = info.size if length is None else min(info.size, start + length)
        outside = start >= info.size and start > 0
        if start < 0 or outside or (length is not None and length < 0):
            raise Invalid(
                "object-range", http=416, key=from_key, start=start, end=end - 1, size=info.size
            )
        if end <= start:
            return self.put_part(bucket, key, upload, number, b"")
        headers = {
            "x-amz-copy-source": f"/{self._remote(from_bucket)}/{quote(from_key, safe='/-_.~')}",
            "x-amz-copy-source-if-match": f'"{info.etag}"',
            "x-amz-copy-source-range": f"bytes={start}-{end - 1}",
        }
        answer = self._of_upload("PUT", bucket, key, upload, {"partNumber": str(number)}, headers)
        found = answer.xml()
        etag = about.etag_of(text(found, "ETag"))
        if len(etag) != MD5:  # the server made more than one piece of it, whose etag says nothing
            content = Chunks(self.read(from_bucket, from_key, start, length))
            with body_of(content) as body:
                return self._put_part(bucket, key, upload, number, body)
        return Part(number, end - start, etag, instant(text(found, "LastModified")))

    def parts(
        self, bucket: str, key: str, upload: str, *, after: int = 0, limit: int = 1000
    ) -> Parts:
        query = {"max-parts": str(min(limit, 1000)), "part-number-marker": str(after)}
        root = self._of_upload("GET", bucket, key, upload, query).xml()
        found = [
            Part(
                whole(item, "PartNumber"),
                whole(item, "Size"),
                about.etag_of(text(item, "ETag")),
                instant(text(item, "LastModified")),
            )
            for item in root.findall("Part")
        ]
        found = sorted((part for part in found if part.number > after), key=lambda p: p.number)
        more = text(root, "IsTruncated") == "true" or len(found) > limit
        found = found[:limit]
        return Parts(found, found[-1].number if found and more else None)

    def uploads(
        self,
        bucket: str,
        prefix: str = "",
        *,
        delimiter: str = "",
        after: tuple[str, str] = ("", ""),
        limit: int = 1000,
    ) -> Uploads:
        """All are read, and put in order here: servers differ in what they can do themselves."""
        for part in (prefix, delimiter, after[0]):
            part_bytes(part)
        uploads: list[Upload] = []
        prefixes: list[str] = []
        last = after
        for upload in sorted(self._all(bucket, prefix), key=_order):
            folded = _fold(upload.key, prefix, delimiter)
            place = (folded, "") if folded else (upload.key, upload.id)
            if not _behind(place, after) or place == last:
                continue
            if len(uploads) + len(prefixes) == limit:
                return Uploads(uploads, prefixes, last if limit else None)
            last = place
            if folded:
                prefixes.append(folded)
            else:
                uploads.append(upload)
        return Uploads(uploads, prefixes)

    def complete_upload(
        self,
        bucket: str,
        key: str,
        upload: str,
        parts: Sequence[tuple[int, str]],
        *,
        if_absent: bool = False,
        if_etag: str | None = None,
    ) -> ObjectInfo:
        self._key(key)
        _check_order(parts)
        condition = condition_of(if_absent, if_etag)
        try:
            self._check_parts(bucket, key, upload, parts)
            return self._complete(bucket, key, upload, parts, condition)
        except Missing as missing:
            if missing.key != "no-such-upload":
                raise
            # Perhaps it is complete, and only the answer was lost.
            with suppress(Missing):
                info = self.head(bucket, key)
                if info.etag == etag_of_parts(parts):
                    return info
            raise

    def abort_upload(self, bucket: str, key: str, upload: str) -> None:
        self._of_upload("GET", bucket, key, upload, {"max-parts": "1"})
        self._abort(bucket, key, upload)

    # ------------------------------------------------------------------ inside

    def _put_parts(
        self,
        bucket: str,
        key: str,
        first: bytes,
        rest: Source,
        said: Mapping[str, str],
        condition: Mapping[str, str],
    ) -> ObjectInfo:
        """A put of more than one request holds. Nothing stays of one that fails."""
        upload = self._create(bucket, key, said, {}, {}).id
        try:
            stored = self._send_parts(bucket, key, upload, first, rest)
            return self._complete(bucket, key, upload, stored, condition)
        except BaseException:
            with suppress(PlatformError):
                self._abort(bucket, key, upload)
            raise

    def _send_parts(
        self, bucket: str, key: str, upload: str, first: bytes, rest: Source
    ) -> list[tuple[int, str]]:
        stored: list[tuple[int, str]] = []
        going: deque[Future[Part]] = deque()

        def take() -> None:
            part = going.popleft().result()
            stored.append((part.number, part.etag))

        with ThreadPoolExecutor(AT_ONCE) as pool:
            try:
                number, data = 1, first
                while data:
                    check_number(number)
                    if len(going) == AT_ONCE:
                        take()
                    going.append(
                        pool.submit(self._put_part, bucket, key, upload, number, memoryview(data))
                    )
                    number, data = number + 1, filled(rest, PART)
                while going:
                    take()
            except BaseException:
                for future in going:
                    future.cancel()
                raise
        return stored

    def _put_part(self, bucket: str, key: str, upload: str, number: int, body: Body) -> Part:
        query = {"partNumber": str(number)}
        answer = self._of_upload("PUT", bucket, key, upload, query, body=body)
        mine = hashlib.md5(body, usedforsecurity=False).hexdigest()
        etag = about.etag_of(answer.headers.get("etag", ""))
        if etag != mine:
            raise strange(f"part {number} of '{key}' was stored with etag {etag}, not {mine}")
        return Part(number, len(body), mine, instant(answer.headers.get("date", "")))

    def _create(
        self,
        bucket: str,
        key: str,
        said: Mapping[str, str],
        metadata: Mapping[str, str],
        headers: Mapping[str, str],
    ) -> Upload:
        self._key(key, filled=True)
        request = Request("POST", self._remote(bucket), key, {"uploads": ""}, said)
        answer = self._said(request, bucket, key)
        upload = text(answer.xml(), "UploadId")
        if not upload:
            raise strange("an upload was begun and has no id")
        at = instant(answer.headers.get("date", ""))
        return Upload(bucket, key, upload, at, dict(metadata), dict(headers))

    def _complete(
        self,
        bucket: str,
        key: str,
        upload: str,
        parts: Sequence[tuple[int, str]],
        condition: Mapping[str, str],
    ) -> ObjectInfo:
        listed = "".join(
            f"<Part><PartNumber>{number}</PartNumber><ETag>&quot;{xml(etag)}&quot;</ETag></Part>"
            for number, etag in parts
        )
        body = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
        request = Request(
            "POST", self._remote(bucket), key, {"uploadId": upload}, condition, memoryview(body)
        )
        answer, doubtful = self._client.call(request)
        wanted = etag_of_parts(parts)
        if doubtful and answer.code == "NoSuchUpload":
            info = self.head(bucket, key)
            if info.etag == wanted:
                return info
        if answer.code == "EntityTooSmall":
            raise Invalid("upload-part-small", key=key)
        self._check(answer, bucket, key, condition)
        if answer.code:
            raise strange(answer.said)
        info = self.head(bucket, key)
        if info.etag != wanted:
            raise Unavailable("object-changed", bucket=bucket, key=key, at=0)
        return info

    def _check_parts(
        self, bucket: str, key: str, upload: str, parts: Sequence[tuple[int, str]]
    ) -> None:
        """Raise Invalid unless all of these are there; servers are not always so strict."""
        there: dict[int, list[str]] = {}
        after: int | None = 0
        while after is not None:
            page = self.parts(bucket, key, upload, after=after)
            for part in page.parts:  # SeaweedFS lists what was sent again twice
                there.setdefault(part.number, []).append(part.etag)
            after = page.next
        for number, etag in parts:
            found = there.get(number, ["-"])
            if etag not in found:
                raise Invalid("upload-part", number=number, etag=etag, found=found[0])

    def _of_upload(
        self,
        method: str,
        bucket: str,
        key: str,
        upload: str,
        query: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
        body: Body = b"",
    ) -> Answer:
        """The answer to a request about an upload that is there."""
        self._key(key)
        remote = self._remote(bucket)
        if not re.fullmatch(r"[A-Za-z0-9._~+/=-]{1,1024}", upload):
            raise Missing("no-such-upload", bucket=bucket, key=key, id=upload)
        request = Request(method, remote, key, {**query, "uploadId": upload}, headers or {}, body)
        answer, _ = self._client.call(request)
        unknown = answer.status == 404 and answer.code != "NoSuchBucket"
        if unknown or answer.code == "InvalidRequest":  # SeaweedFS: the id is of another key
            self._said(Request("HEAD", remote), bucket)
            raise Missing("no-such-upload", bucket=bucket, key=key, id=upload)
        self._check(answer, bucket, key)
        return answer

    def _abort(self, bucket: str, key: str, upload: str) -> None:
        request = Request("DELETE", self._remote(bucket), key, {"uploadId": upload})
        answer, _ = self._client.call(request)
        if answer.status != 404:
            self._check(answer, bucket, key)

    def _abort_all(self, bucket: str) -> None:
        for upload in list(self._all(bucket, "")):
            self._abort(bucket, upload.key, upload.id)

    def _all(self, bucket: str, prefix: str) -> Iterator[Upload]:
        key, upload = "", ""
        for _ in range(PAGES):
            query = {"uploads": "", "encoding-type": "url", "max-uploads": "1000"}
            if prefix:
                query["prefix"] = prefix
            if key:
                query.update({"key-marker": key, "upload-id-marker": upload})
            root = self._said(Request("GET", self._remote(bucket), "", query), bucket).xml()
            for item in root.findall("Upload"):
                name = url_text(item, "Key", root)
                if name.startswith(prefix):
                    at = instant(text(item, "Initiated"))
                    yield Upload(bucket, name, text(item, "UploadId"), at)
            if text(root, "IsTruncated") != "true":
                return
            key, upload = url_text(root, "NextKeyMarker", root), text(root, "NextUploadIdMarker")


def check_number(number: int) -> None:
    """Raise Invalid for what is not the number of a part."""
    if not 1 <= number <= MAX_PARTS:
        raise Invalid("upload-part-number", number=number, limit=MAX_PARTS)


def etag_of_parts(parts: Sequence[tuple[int, str]]) -> str:
    """The etag of the object that is made of parts with these numbers and etags."""
    digests = b"".join(bytes.fromhex(etag) for _, etag in parts if re.fullmatch(r"[0-9a-f]+", etag))
    return f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(parts)}"


def begun(source: bytes | Source) -> tuple[bytes, Source | None]:
    """What a first request can hold, and the rest where there is more than that."""
    if isinstance(source, bytes):
        rest = io.BytesIO(source[PART:]) if len(source) > PART else None
        return source[:PART], rest
    first = filled(source, PART)
    if len(first) < PART:
        return first, None
    more = source.read(1 << 16)
    return first, Joined(more, source) if more else None


class Chunks:
    """Chunks as a stream."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks

    def read(self, _size: int = -1, /) -> bytes:
        """The next chunk, whatever its size; nothing at the end."""
        return next(self._chunks, b"")


class Joined:
    """Bytes that were read already, and the stream behind them."""

    def __init__(self, first: bytes, rest: Source) -> None:
        self._first = first
        self._rest = rest

    def read(self, size: int = -1, /) -> bytes:
        if not self._first:
            return self._rest.read(size)
        part, self._first = self._first[:size], self._first[size:]
        return part


def filled(source: Source, size: int) -> bytes:
    """`size` bytes, or all that are left."""
    chunks: list[bytes] = []
    while size and (chunk := source.read(size)):
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


@contextmanager
def body_of(source: bytes | Source) -> Iterator[Body]:
    """The body of one request, in memory while it is small and in a file of nobody else's then."""
    stream = io.BytesIO(source) if isinstance(source, bytes) else source
    first = source if isinstance(source, bytes) else filled(stream, PART)
    if isinstance(source, bytes) or len(first) < PART:
        yield first
        return
    with tempfile.TemporaryFile() as file:
        while first:
            file.write(first)
            first = stream.read(1 << 20)
        file.flush()
        size = os.fstat(file.fileno()).st_size
        with mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ) as mapped:
            view = memoryview(mapped)
            try:
                yield view
            finally:
                view.release()


def _check_order(parts: Sequence[tuple[int, str]]) -> None:
    if not parts:
        raise Invalid("upload-empty")
    last = 0
    for number, _ in parts:
        if number <= last:
            raise Invalid("upload-order", number=number, last=last)
        last = number


def _order(upload: Upload) -> tuple[bytes, str]:
    return upload.key.encode(), upload.id


def _fold(key: str, prefix: str, delimiter: str) -> str:
    at = key.find(delimiter, len(prefix)) if delimiter else -1
    return key[: at + len(delimiter)] if at >= 0 else ""


def _behind(place: tuple[str, str], after: tuple[str, str]) -> bool:
    """Whether an entry comes after `after`, which without an id stands behind all of its key."""
    key, known = place[0].encode(), after[0].encode()
    return key > known or (key == known and bool(after[1]) and place[1] > after[1])
