"""Uploads in parts: begin, parts, copies as parts, list, complete, abort."""

from __future__ import annotations

import re
from typing import BinaryIO

from danlu.faces.http.reply import Answer, Reply
from danlu.faces.obs import listing, reading, whole
from danlu.faces.obs.bucket import XML
from danlu.faces.obs.door import Door
from danlu.faces.obs.put import PUT, checksum_headers
from danlu.faces.obs.request import Request
from danlu.faces.obs.routes import operations
from danlu.model.errors import Invalid, Refused
from danlu.ports.objects import ObjectInfo, Part
from danlu.wire import obs, obs_requests
from danlu.wire.obs_xml import XML_BYTES

_RANGE = re.compile(r"bytes=(\d{1,18})-(\d{1,18})", re.ASCII)


@operations("POST", "object", "uploads", action=PUT, takes="encoding-type")
async def begin(door: Door, request: Request) -> Answer:
    """Begin an upload; metadata and headers are those of the object to be."""
    reading.refuse_unsupported(request)
    url = listing.wants_url(request)
    if request.own("tagging"):
        raise Refused("obs-not-implemented", http=501, what="tags on an upload in parts")
    upload = await door.run(
        door.multipart.create_upload,
        request.bucket,
        request.key,
        metadata=reading.metadata(request),
        headers=reading.kept_headers(request),
    )
    body = obs.initiated(request.bucket, request.key, upload.id, request.dialect, url=url)
    return Reply(body, media=XML)


@operations("PUT", "object", "uploadId", action=PUT, takes="partNumber")
async def put_part(door: Door, request: Request) -> Answer:
    """Store a part: the body, or a range of another object."""
    reading.refuse_unsupported(request)
    upload = request.query.get("uploadId")
    number = obs_requests.part_number(request.query.get("partNumber"))
    if request.own("copy-source"):
        return await _copy_part(door, request, upload, number)

    def keep(source: BinaryIO | bytes) -> Part:
        return door.multipart.put_part(request.bucket, request.key, upload, number, source)

    part, checked = await door.store(request, keep)
    etag = (b"etag", obs.etag(part.etag).encode())
    return Reply(b"", headers=[etag, *checksum_headers(request, checked)])


async def _copy_part(door: Door, request: Request, upload: str, number: int) -> Answer:
    bucket, key = reading.copy_source(request)
    text = request.own("copy-source-range")
    match = _RANGE.fullmatch(text)
    if text and (match is None or int(match[2]) < int(match[1])):
        raise Invalid("field-value", field="copy-source-range", value=text, expected="bytes=0-99")
    start = int(match[1]) if match else 0
    length = int(match[2]) - start + 1 if match else None

    def make() -> Part:
        door.buckets.check(request.caller.workspace.id, bucket)
        info = door.objects.head(bucket, key)
        reading.unchanged(request, info, "copy-source-")
        if length is not None and start + length > info.size:
            end = start + length - 1
            raise Invalid("object-range", http=416, key=key, start=start, end=end, size=info.size)
        return door.multipart.copy_part(
            request.bucket, request.key, upload, number, bucket, key, start, length
        )

    part = await door.run(make)
    body = obs.copied("CopyPartResult", part.etag, part.modified_at, request.dialect)
    return Reply(body, media=XML)


@operations(
    "GET",
    "object",
    "uploadId",
    action="obs:object:ListMultipartUploadParts",
    takes="max-parts part-number-marker encoding-type",
)
async def list_parts(door: Door, request: Request) -> Answer:
    """The parts of an upload that have arrived."""
    after = request.query.number("part-number-marker", 0, 0, 1 << 31)
    asked = listing.page_of(request, "max-parts")
    upload = obs.Upload(request.key, request.query.get("uploadId"), 0)
    found = await door.run(
        door.multipart.parts,
        request.bucket,
        request.key,
        upload.upload_id,
        after=after,
        limit=asked.limit,
    )
    following = str(found.next) if found.next else None
    page = obs.Page(asked.bucket, "", "", asked.limit, asked.url_encoded, next=following)
    parts = [obs.Part(one.number, one.etag, one.size, one.modified_at) for one in found.parts]
    body = obs.parts(page, upload, after, parts, request.owner, request.dialect)
    return Reply(body, media=XML)


@operations("POST", "object", "uploadId", action=PUT, takes="encoding-type")
async def complete(door: Door, request: Request) -> Answer:
    """Make the object of the parts that are named."""
    reading.refuse_unsupported(request)
    condition = reading.put_condition(request)
    url = listing.wants_url(request)
    named = obs_requests.completion(await door.read(request, XML_BYTES, about_object=True))
    upload = request.query.get("uploadId")

    def make() -> ObjectInfo:
        whole.check(door.multipart, request, upload, named)
        return door.multipart.complete_upload(
            request.bucket,
            request.key,
            upload,
            [(part.number, part.etag) for part in named],
            if_absent=condition.if_absent,
            if_etag=condition.if_etag,
        )

    info = await door.run(make)
    page = obs.Page(request.bucket, "", "", 0, url)
    scheme, host = request.scope.get("scheme", "http"), request.headers.single("host")
    where = f"{scheme}://{host}{request.scope['raw_path'].decode('latin-1')}"
    body = obs.completed(page, request.key, where, info.etag, request.dialect)
    return Reply(body, media=XML)


@operations("DELETE", "object", "uploadId", action="obs:object:AbortMultipartUpload")
async def abort(door: Door, request: Request) -> Answer:
    """Drop an upload and its parts."""
    upload = request.query.get("uploadId")
    await door.run(door.multipart.abort_upload, request.bucket, request.key, upload)
    return Reply(b"", 204)


@operations(
    "GET",
    "bucket",
    "uploads",
    action="obs:bucket:ListBucketMultipartUploads",
    takes="prefix delimiter max-uploads encoding-type key-marker upload-id-marker",
)
async def list_uploads(door: Door, request: Request) -> Answer:
    """The uploads that go on."""
    query = request.query
    markers = (query.get("key-marker"), query.get("upload-id-marker"))
    asked = listing.page_of(request, "max-uploads")
    found = await door.run(
        door.multipart.uploads,
        request.bucket,
        asked.prefix,
        delimiter=asked.delimiter,
        after=markers if markers[0] else ("", ""),
        limit=asked.limit,
    )
    page = obs.Page(
        asked.bucket,
        asked.prefix,
        asked.delimiter,
        asked.limit,
        asked.url_encoded,
        prefixes=found.prefixes,
        next=found.next[0] if found.next else None,
    )
    uploads = [obs.Upload(one.key, one.id, one.created_at) for one in found.uploads]
    following = found.next or ("", "")
    body = obs.uploads(page, markers, following, uploads, request.owner, request.dialect)
    return Reply(body, media=XML)
