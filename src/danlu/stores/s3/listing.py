"""Pages of keys and of uploads from an S3 server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from danlu.model.errors import Invalid
from danlu.ports.objects import Listing, ObjectInfo
from danlu.stores.s3.about import etag_of
from danlu.stores.s3.answers import Answer, instant, strange, text, url_text, whole
from danlu.stores.s3.client import Request

MOST = 1000
Ask = Callable[[Request], Answer]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `ObjectStore.list` is asked for; `remote` is the bucket's name there."""

    bucket: str
    remote: str
    prefix: str
    delimiter: str
    after: str
    limit: int


def page(ask: Ask, wanted: Wanted) -> Listing:
    """One page, of as many answers as it takes."""
    objects: list[ObjectInfo] = []
    prefixes: list[str] = []
    last, token = "", ""
    while True:
        left = wanted.limit - len(objects) - len(prefixes)
        root = ask(_request(wanted, left, token)).xml()
        entries = _entries(root, wanted)
        for entry in entries[:left] if wanted.limit else []:
            if isinstance(entry, str):
                prefixes.append(entry)
                last = entry
            else:
                objects.append(entry)
                last = entry.key
        token = text(root, "NextContinuationToken")
        more = text(root, "IsTruncated") == "true"
        if more and not token:
            raise strange("a listing goes on and does not say where")
        full = len(objects) + len(prefixes) >= wanted.limit
        if not more and len(entries) <= left:
            return Listing(objects, prefixes)
        if full:
            return Listing(objects, prefixes, last if wanted.limit else None)


def _request(wanted: Wanted, left: int, token: str) -> Request:
    query = {"list-type": "2", "encoding-type": "url", "max-keys": str(max(1, min(left, MOST)))}
    if wanted.prefix:
        query["prefix"] = wanted.prefix
    if wanted.delimiter:
        query["delimiter"] = wanted.delimiter
    if token:
        query["continuation-token"] = token
    elif wanted.after:
        query["start-after"] = wanted.after
    return Request("GET", wanted.remote, "", query)


def _entries(root: ET.Element, wanted: Wanted) -> list[ObjectInfo | str]:
    """Objects and folded prefixes together, in the server's order as far as it shows."""
    found: dict[str, ObjectInfo | str] = {}
    for item in root.findall("Contents"):
        key = url_text(item, "Key", root)
        if key.startswith(wanted.prefix):
            found[key] = ObjectInfo(
                wanted.bucket,
                key,
                whole(item, "Size"),
                etag_of(text(item, "ETag")),
                instant(text(item, "LastModified")),
            )
    for item in root.findall("CommonPrefixes"):
        prefix = url_text(item, "Prefix", root)
        found[prefix] = prefix
    found.pop(wanted.after, None)
    return [found[key] for key in sorted(found, key=_bytes)]


def _bytes(key: str) -> bytes:
    try:
        return key.encode()
    except UnicodeEncodeError as problem:
        raise Invalid("object-key-encoding", key=ascii(key)) from problem
