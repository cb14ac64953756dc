"""Writing objects: put, copy, append, rename, and changing what is said of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO

from danlu.faces.http.reply import Answer, Header, Reply
from danlu.faces.obs import reading
from danlu.faces.obs.bucket import XML
from danlu.faces.obs.door import Door
from danlu.faces.obs.request import Request
from danlu.faces.obs.routes import VERSION, operations
from danlu.model.errors import Invalid, PlatformError
from danlu.ports.objects import ObjectInfo
from danlu.wire import obs, obs_requests

PUT = "obs:object:PutObject"


@operations("PUT", "object", action=PUT)
async def put_object(door: Door, request: Request) -> Answer:
    """Store the body under the key, or a copy of another object."""
    reading.refuse_unsupported(request)
    if request.own("copy-source"):
        return await _copy(door, request)
    condition = reading.put_condition(request)
    metadata, headers = reading.metadata(request), reading.kept_headers(request)
    tags = _tags(request)

    def keep(source: BinaryIO | bytes) -> ObjectInfo:
        info = door.objects.put(
            request.bucket,
            request.key,
            source,
            metadata=metadata,
            headers=headers,
            if_absent=condition.if_absent,
            if_etag=condition.if_etag,
        )
        _tag(door, request, tags)
        return info

    info, checked = await door.store(request, keep)
    return Reply(b"", headers=[_etag(info), *checksum_headers(request, checked)])


def checksum_headers(request: Request, checked: Mapping[str, str]) -> list[Header]:
    """The checksums that were checked, for the client to compare."""
    prefix = f"{request.dialect.prefix}checksum-"
    return [(f"{prefix}{name}".encode(), text.encode()) for name, text in checked.items()]


def _etag(info: ObjectInfo) -> Header:
    return (b"etag", obs.etag(info.etag).encode())


def _tags(request: Request) -> dict[str, str]:
    text = request.own("tagging")
    return obs_requests.tags_of_header(text) if text else {}


def _tag(door: Door, request: Request, tags: Mapping[str, str]) -> None:
    """Tags follow at once; where they cannot be stored the new object goes again."""
    if not tags:
        return
    try:
        door.tagging.set_tags(request.bucket, request.key, tags)
    except PlatformError:
        door.objects.delete(request.bucket, [request.key])
        raise


# ---------------------------------------------------------------- copies


async def _copy(door: Door, request: Request) -> Answer:
    reading.refuse_conditions(request)
    bucket, key = reading.copy_source(request)
    replace = reading.directive(request, "metadata-directive", "COPY", "COPY", "REPLACE") != "COPY"
    retag = reading.directive(request, "tagging-directive", "COPY", "COPY", "REPLACE") != "COPY"
    metadata, headers, tags = (
        reading.metadata(request),
        reading.kept_headers(request),
        _tags(request),
    )
    itself = (bucket, key) == (request.bucket, request.key)
    if itself and not replace and not retag:
        raise Invalid("obs-copy-itself", key=key)

    def make() -> ObjectInfo:
        door.buckets.check(request.caller.workspace.id, bucket)
        reading.unchanged(request, door.objects.head(bucket, key), "copy-source-")
        if itself:
            info = door.objects.head(bucket, key)
            if replace:
                info = door.objects.describe(bucket, key, metadata=metadata, headers=headers)
        else:
            info = door.objects.copy(
                bucket,
                key,
                request.bucket,
                request.key,
                metadata=metadata if replace else None,
                headers=headers if replace else None,
            )
        if retag:
            door.tagging.set_tags(request.bucket, request.key, tags)
        return info

    info = await door.run(make)
    body = obs.copied("CopyObjectResult", info.etag, info.modified_at, request.dialect)
    return Reply(body, media=XML)


# ---------------------------------------------------------------- OBS alone


@operations("PUT", "object", "metadata", action="obs:object:ModifyObjectMetaData", takes=VERSION)
async def set_metadata(door: Door, request: Request) -> Answer:
    """Change what is said of an object, never its content.

    REPLACE_NEW (the default) keeps what the request does not name, REPLACE does not.
    """
    reading.refuse_unsupported(request)
    reading.check_version(request)
    choices = ("REPLACE_NEW", "REPLACE")
    keep = reading.directive(request, "metadata-directive", "REPLACE_NEW", *choices) == choices[0]
    metadata, headers = reading.metadata(request), reading.kept_headers(request)

    def change() -> ObjectInfo:
        old = door.objects.head(request.bucket, request.key)
        return door.objects.describe(
            request.bucket,
            request.key,
            metadata={**(old.metadata if keep else {}), **metadata},
            headers={**(old.headers if keep else {}), **headers},
        )

    info = await door.run(change)
    return Reply(b"", headers=[_etag(info), *reading.shown(info, request.dialect.prefix)])


@operations("POST", "object", "append", action=PUT, takes="position")
async def append_object(door: Door, request: Request) -> Answer:
    """Add the body to the end of an object, which has to be where the client thinks it is."""
    reading.refuse_unsupported(request)
    reading.refuse_conditions(request)
    position = request.query.number("position", -1, 0, (1 << 63) - 1)
    if position < 0:
        expected = "the length of the object, 0 for a new one"
        raise Invalid("field-value", field="position", value="", expected=expected)
    metadata, headers = reading.metadata(request), reading.kept_headers(request)

    def keep(source: BinaryIO | bytes) -> ObjectInfo:
        return door.editing.append(
            request.bucket, request.key, source, position, metadata=metadata, headers=headers
        )

    info, checked = await door.store(request, keep)
    following = (b"x-obs-next-append-position", str(info.size).encode())
    return Reply(b"", headers=[_etag(info), following, *checksum_headers(request, checked)])


@operations("POST", "object", "rename", action=PUT, takes="name")
async def rename_object(door: Door, request: Request) -> Answer:
    """Give an object another key."""
    name = request.query.get("name").removeprefix("/")
    if not name:
        raise Invalid("field-value", field="name", value=name, expected="the new key")
    await door.run(door.editing.rename, request.bucket, request.key, name)
    return Reply(b"", 204)
