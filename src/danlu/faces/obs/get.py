"""Reading objects, and removing them."""

from __future__ import annotations

from collections.abc import Iterator

from danlu.faces.http.reply import Answer, Header, Reply, Streamed
from danlu.faces.obs import reading
from danlu.faces.obs.bucket import XML
from danlu.faces.obs.door import Door
from danlu.faces.obs.request import Request
from danlu.faces.obs.routes import VERSION, operations
from danlu.model.errors import Invalid, PlatformError, Refused, Unavailable
from danlu.ports.objects import HEADERS, ObjectInfo
from danlu.wire import obs, obs_errors, obs_requests
from danlu.wire.obs_xml import XML_BYTES

OVERRIDES = " ".join(f"response-{name}" for name in HEADERS)
"""What a reader may have otherwise than it is kept."""
BYTES = "application/octet-stream"
TRIES = 10


@operations("HEAD", "object", action="obs:object:GetObject", takes=f"{OVERRIDES} {VERSION}")
async def head_object(door: Door, request: Request) -> Answer:
    """What is known of an object."""
    reading.check_version(request)
    info = await door.run(door.objects.head, request.bucket, request.key)
    if reading.unchanged(request, info):
        return Reply(b"", 304, headers=_validators(info))
    part = reading.span(request.header("range"), info.size, info.key)
    headers = [*_headers(request, info), *_length(info, part)]
    return Reply(b"", 206 if part else 200, headers=headers)


@operations("GET", "object", action="obs:object:GetObject", takes=f"{OVERRIDES} {VERSION}")
async def get_object(door: Door, request: Request) -> Answer:
    """The content of an object, or a range of it."""
    reading.check_version(request)
    info = await door.run(door.objects.head, request.bucket, request.key)
    for _ in range(TRIES):
        if reading.unchanged(request, info):
            return Reply(b"", 304, headers=_validators(info))
        text = request.header("range") if _range_holds(request, info) else ""
        part = reading.span(text, info.size, info.key)
        headers = [*_headers(request, info), *_length(info, part)]
        if not info.size:
            return Reply(b"", headers=headers)
        start, length = part or (0, info.size)
        read = door.objects.read
        content = await door.run(read, request.bucket, request.key, start, length)
        newer = await door.run(door.objects.head, request.bucket, request.key)
        if (newer.etag, newer.modified_at, newer.size) == (info.etag, info.modified_at, info.size):
            media = _media(request, info)
            chunks = door.chunks(request, content)
            return Streamed(chunks, media, headers, 206 if part else 200)
        # Replaced in between: what was opened may be another version than what was described.
        _close(content)
        info = newer
    raise Unavailable("busy", detail=f"'{request.key}' is replaced again and again")


def _close(content: Iterator[bytes]) -> None:
    close = getattr(content, "close", None)
    if close is not None:
        close()


def _range_holds(request: Request, info: ObjectInfo) -> bool:
    wanted = request.header("if-range")
    return not wanted or wanted in (obs.etag(info.etag), obs.http_date(info.modified_at))


def _media(request: Request, info: ObjectInfo) -> bytes:
    wanted = request.query.get("response-content-type") or info.headers.get("content-type", BYTES)
    return _plain("response-content-type", wanted).encode("utf-8", "replace")


def _validators(info: ObjectInfo) -> list[Header]:
    return [
        (b"etag", obs.etag(info.etag).encode()),
        (b"last-modified", obs.http_date(info.modified_at).encode()),
    ]


def _headers(request: Request, info: ObjectInfo) -> list[Header]:
    prefix = request.dialect.prefix
    found = {name: value for name, value in reading.shown(info, prefix) if name != b"content-type"}
    for name in HEADERS:
        value = request.query.get(f"response-{name}")
        if value and name != "content-type":
            found[name.encode()] = _plain(name, value).encode("utf-8", "replace")
    # Of these Amazon has no words of its own.
    found[b"x-obs-object-type"] = b"Appendable"
    found[b"x-obs-next-append-position"] = str(info.size).encode()
    if request.method == "HEAD":
        found[b"content-type"] = _media(request, info)
    return [*_validators(info), (b"accept-ranges", b"bytes"), *found.items()]


def _plain(name: str, value: str) -> str:
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in value):
        raise Invalid("field-value", field=name, value=value, expected="a text without controls")
    return value


def _length(info: ObjectInfo, part: tuple[int, int] | None) -> list[Header]:
    if part is None:
        return [(b"content-length", str(info.size).encode())]
    start, length = part
    where = f"bytes {start}-{start + length - 1}/{info.size}"
    return [(b"content-length", str(length).encode()), (b"content-range", where.encode())]


# ---------------------------------------------------------------- removing


@operations("DELETE", "object", action="obs:object:DeleteObject", takes=VERSION)
async def delete_object(door: Door, request: Request) -> Answer:
    """Remove an object; one that is not there is gone as well."""
    reading.check_version(request)
    if request.header("if-match"):
        raise Refused("obs-not-implemented", http=501, what="if-match on a deletion")
    await door.run(door.objects.delete, request.bucket, [request.key])
    return Reply(b"", 204)


@operations("POST", "bucket", "delete", action="obs:object:DeleteObject", takes="encoding-type")
async def delete_objects(door: Door, request: Request) -> Answer:
    """Remove up to 1,000 objects; each that could not be removed is told with the reason."""
    wanted = obs_requests.deletion(await door.read(request, XML_BYTES))

    def remove() -> tuple[list[str], list[tuple[str, str, str]]]:
        try:
            door.objects.delete(request.bucket, wanted.keys)
        except Invalid:
            return _one_by_one(door, request, wanted.keys)
        return list(wanted.keys), []

    gone, failed = await door.run(remove)
    page = obs.Page(request.bucket, "", "", 0, wanted.url_encoded)
    shown = [] if wanted.quiet else gone
    return Reply(obs.deleted(page, shown, failed, request.dialect), media=XML)


def _one_by_one(
    door: Door, request: Request, keys: tuple[str, ...]
) -> tuple[list[str], list[tuple[str, str, str]]]:
    gone, failed = [], []
    for key in keys:
        try:
            door.objects.delete(request.bucket, [key])
            gone.append(key)
        except PlatformError as problem:
            shown = key.encode("utf-8", "replace").decode()
            failed.append((shown, obs_errors.code(problem), problem.message(request.language)))
    return gone, failed
