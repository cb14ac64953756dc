"""Listings of keys: of both forms, and of versions, of which there is one each."""

from __future__ import annotations

import base64
import binascii

from danlu.faces.http.reply import Answer, Reply
from danlu.faces.obs.bucket import XML
from danlu.faces.obs.door import Door
from danlu.faces.obs.request import Request
from danlu.faces.obs.routes import operations
from danlu.model.errors import Invalid
from danlu.wire import obs

MOST = 1000
ACTION = "obs:bucket:ListBucket"
FILTERS = "prefix delimiter max-keys encoding-type"


def limit_of(request: Request, name: str) -> int:
    """How many entries are wanted; more than 1,000 are never given at once."""
    return min(request.query.number(name, MOST, 0, (1 << 63) - 1), MOST)


def wants_url(request: Request) -> bool:
    """Whether keys are wanted percent-encoded; Invalid for another encoding."""
    encoding = request.query.get("encoding-type")
    if encoding.lower() not in ("", "url"):
        raise Invalid("field-value", field="encoding-type", value=encoding, expected="url")
    return bool(encoding)


def page_of(request: Request, limit_name: str = "max-keys") -> obs.Page:
    """What a listing repeats of its request."""
    return obs.Page(
        request.bucket,
        request.query.get("prefix"),
        request.query.get("delimiter"),
        limit_of(request, limit_name),
        wants_url(request),
    )


async def _found(door: Door, request: Request, after: str) -> obs.Page:
    asked = page_of(request)
    listing = await door.run(
        door.objects.list,
        request.bucket,
        asked.prefix,
        delimiter=asked.delimiter,
        after=after,
        limit=asked.limit,
    )
    entries = [
        obs.Entry(info.key, info.size, info.etag, info.modified_at) for info in listing.objects
    ]
    return obs.Page(
        asked.bucket,
        asked.prefix,
        asked.delimiter,
        asked.limit,
        asked.url_encoded,
        entries,
        listing.prefixes,
        listing.next if asked.limit else None,
    )


@operations(
    "GET",
    "bucket",
    action=ACTION,
    takes=f"{FILTERS} marker list-type continuation-token start-after fetch-owner",
)
async def list_objects(door: Door, request: Request) -> Answer:
    """Keys, in the form that is asked for."""
    query = request.query
    if query.get("list-type") == "2":
        return await _list_v2(door, request)
    if "list-type" in query:
        raise Invalid("field-value", field="list-type", value=query.get("list-type"), expected="2")
    page = await _found(door, request, query.get("marker"))
    body = obs.objects(page, query.get("marker"), request.owner, request.dialect)
    return _reply(door, request, body)


async def _list_v2(door: Door, request: Request) -> Answer:
    query = request.query
    token, start_after = query.get("continuation-token"), query.get("start-after")
    page = await _found(door, request, _after(token) if token else start_after)
    continued = obs.Continued(
        start_after,
        token,
        _token(page.next) if page.next is not None else "",
        request.owner if query.get("fetch-owner").lower() == "true" else None,
    )
    return _reply(door, request, obs.objects_v2(page, continued, request.dialect))


@operations(
    "GET",
    "bucket",
    "versions",
    action="obs:bucket:ListBucketVersions",
    takes=f"{FILTERS} key-marker version-id-marker",
)
async def list_versions(door: Door, request: Request) -> Answer:
    """Each key with the only version of it."""
    marker = request.query.get("key-marker")
    page = await _found(door, request, marker)
    return _reply(door, request, obs.versions(page, marker, request.owner, request.dialect))


def _reply(door: Door, request: Request, body: bytes) -> Reply:
    kind = "bucket-location" if request.dialect is obs.OBS else "bucket-region"
    header = f"{request.dialect.prefix}{kind}".encode()
    return Reply(body, media=XML, headers=[(header, door.region.encode())])


def _token(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode("utf-8", "surrogateescape")).decode()


def _after(token: str) -> str:
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        expected = "the NextContinuationToken of a listing before"
        raise Invalid(
            "field-value", field="continuation-token", value=token, expected=expected
        ) from None
