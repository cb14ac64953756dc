"""What OBS and S3 say in XML: replies, and the few requests that have a body.

Both speak of the same things with the same element names; they differ in the prefix of their
headers and in a word here and there, which is a `Dialect`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import TypeAlias
from urllib.parse import quote

Content: TypeAlias = "str | int | bool | Sequence[Field]"
Field: TypeAlias = "tuple[str, Content]"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a client talks: Amazon's words (signatures V2 and V4) or Huawei's own."""

    name: str
    prefix: str
    """Of the names of headers."""
    namespace: str
    storage_class: str


AMZ = Dialect("amz", "x-amz-", "http://s3.amazonaws.com/doc/2006-03-01/", "STANDARD")
OBS = Dialect("obs", "x-obs-", "http://obs.myhwclouds.com/doc/2015-06-30/", "STANDARD")

_UNSAFE = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[&<>]")
_NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose something is."""

    id: str
    name: str

    def fields(self, dialect: Dialect, element: str = "Owner") -> Field:
        """The element; OBS gives no name."""
        name: list[Field] = [] if dialect is OBS else [("DisplayName", self.name)]
        return (element, [("ID", self.id), *name])


@dataclass(frozen=True, slots=True)
class Entry:
    """One object of a listing. `etag` has no quotes; `modified_at` is UTC milliseconds."""

    key: str
    size: int
    etag: str
    modified_at: int


@dataclass(frozen=True, slots=True)
class Page:
    """What was asked of a listing, and one page of what was found."""

    bucket: str
    prefix: str
    delimiter: str
    limit: int
    url_encoded: bool
    entries: Sequence[Entry] = ()
    prefixes: Sequence[str] = ()
    next: str | None = None

    def text(self, value: str) -> str:
        """A key or a part of one, as it stands in the reply."""
        return quote(value, safe="/") if self.url_encoded else value

    def head(self) -> list[Field]:
        """What every listing repeats."""
        fields: list[Field] = [("Name", self.bucket), ("Prefix", self.text(self.prefix))]
        if self.delimiter:
            fields.append(("Delimiter", self.text(self.delimiter)))
        if self.url_encoded:
            fields.append(("EncodingType", "url"))
        return fields

    def common(self) -> list[Field]:
        """The folded prefixes."""
        return [("CommonPrefixes", [("Prefix", self.text(text))]) for text in self.prefixes]


def document(root: str, content: Content, dialect: Dialect | None = None) -> bytes:
    """A document with the root element `root`."""
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n']
    attributes = f' xmlns="{dialect.namespace}"' if dialect else ""
    _write(parts, root, content, attributes)
    return "".join(parts).encode()


def _write(parts: list[str], name: str, content: Content, attributes: str = "") -> None:
    parts.append(f"<{name}{attributes}>")
    if isinstance(content, bool):
        parts.append("true" if content else "false")
    elif isinstance(content, str | int):
        parts.append(escape(str(content)))
    else:
        for inner, value in content:
            _write(parts, inner, value)
    parts.append(f"</{name.partition(' ')[0]}>")


def escape(text: str) -> str:
    """Text of an element. What XML has no character for stays a reference, as S3 writes it."""
    return _UNSAFE.sub(lambda found: _NAMED.get(found[0]) or f"&#x{ord(found[0]):x};", text)


def instant(at: int) -> str:
    """UTC milliseconds as S3 writes them in XML."""
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % 1000:03d}Z"


def http_date(at: int) -> str:
    """UTC milliseconds as headers have them, in whole seconds."""
    return format_datetime(datetime.fromtimestamp(at // 1000, UTC), usegmt=True)


def etag(digest: str) -> str:
    """An ETag with its quotes."""
    return f'"{digest}"'


# ---------------------------------------------------------------- buckets


def buckets(found: Sequence[tuple[str, int]], owner: Owner, region: str, dialect: Dialect) -> bytes:
    """The buckets of a workspace, each with the instant of its making."""
    listed: list[Field] = [
        (
            "Bucket",
            [
                ("Name", name),
                ("CreationDate", instant(made_at)),
                ("Location", region),
                ("BucketType", "OBJECT"),
            ]
            if dialect is OBS
            else [("Name", name), ("CreationDate", instant(made_at))],
        )
        for name, made_at in found
    ]
    content = [owner.fields(dialect), ("Buckets", listed)]
    return document("ListAllMyBucketsResult", content, dialect)


def location(region: str, dialect: Dialect) -> bytes:
    """Where a bucket is. Amazon's clients read the root's text, Huawei's, when they sign with V2,
    an element in it; this has both.
    """
    if dialect is OBS:
        return document("Location", region, dialect)
    inner = escape(region)
    body = f"{inner}<LocationConstraint>{inner}</LocationConstraint>"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<LocationConstraint xmlns="{dialect.namespace}">{body}</LocationConstraint>'
    ).encode()


def acl(owner: Owner, dialect: Dialect) -> bytes:
    """Everything to the owner and nothing to anybody else."""
    kind = ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CanonicalUser"'
    grantee = "Grantee" if dialect is OBS else f"Grantee{kind}"
    grant: list[Field] = [
        (grantee, owner.fields(dialect)[1]),
        ("Permission", "FULL_CONTROL"),
    ]
    content = [owner.fields(dialect), ("AccessControlList", [("Grant", grant)])]
    return document("AccessControlPolicy", content, dialect)


def storage_info(size: int, count: int, dialect: Dialect) -> bytes:
    """How much a bucket holds."""
    content: list[Field] = [
        ("Size", size),
        ("ObjectNumber", count),
        ("StandardSize", size),
        ("StandardObjectNumber", count),
    ]
    for kind in ("Warm", "Cold", "DeepArchive", "HighPerformance", "Standard_IA", "Glacier"):
        content += [(f"{kind}Size", 0), (f"{kind}ObjectNumber", 0)]
    return document("GetBucketStorageInfoResult", content, dialect)


def quota(size: int, dialect: Dialect) -> bytes:
    """How much a bucket may hold; 0 = no limit."""
    return document("Quota", [("StorageQuota", size)], dialect)


# ---------------------------------------------------------------- listings


def objects(page: Page, marker: str, owner: Owner, dialect: Dialect) -> bytes:
    """A listing of the first form. `NextMarker` is given whenever there is more."""
    content = [*page.head(), ("Marker", page.text(marker)), ("MaxKeys", page.limit)]
    content.append(("IsTruncated", page.next is not None))
    if page.next is not None:
        content.append(("NextMarker", page.text(page.next)))
    content += [("Contents", _entry(page, one, owner, dialect)) for one in page.entries]
    return document("ListBucketResult", [*content, *page.common()], dialect)


@dataclass(frozen=True, slots=True)
class Continued:
    """What a listing of the second form says of its page. Tokens are ours, and opaque."""

    start_after: str = ""
    token: str = ""
    next_token: str = ""
    owner: Owner | None = None


def objects_v2(page: Page, continued: Continued, dialect: Dialect) -> bytes:
    """A listing of the second form."""
    count = len(page.entries) + len(page.prefixes)
    content = [*page.head(), ("MaxKeys", page.limit), ("KeyCount", count)]
    content.append(("IsTruncated", page.next is not None))
    if continued.token:
        content.append(("ContinuationToken", continued.token))
    if continued.next_token:
        content.append(("NextContinuationToken", continued.next_token))
    if continued.start_after:
        content.append(("StartAfter", page.text(continued.start_after)))
    content += [("Contents", _entry(page, one, continued.owner, dialect)) for one in page.entries]
    return document("ListBucketResult", [*content, *page.common()], dialect)


def versions(page: Page, marker: str, owner: Owner, dialect: Dialect) -> bytes:
    """A listing of versions: of each object the one that there is, whose id is `null`."""
    content = [*page.head(), ("KeyMarker", page.text(marker)), ("VersionIdMarker", "")]
    content += [("MaxKeys", page.limit), ("IsTruncated", page.next is not None)]
    if page.next is not None:
        content += [("NextKeyMarker", page.text(page.next)), ("NextVersionIdMarker", "null")]
    for one in page.entries:
        fields = _entry(page, one, owner, dialect)
        version: list[Field] = [("VersionId", "null"), ("IsLatest", True)]
        content.append(("Version", [fields[0], *version, *fields[1:]]))
    return document("ListVersionsResult", [*content, *page.common()], dialect)


def _entry(page: Page, entry: Entry, owner: Owner | None, dialect: Dialect) -> list[Field]:
    fields: list[Field] = [
        ("Key", page.text(entry.key)),
        ("LastModified", instant(entry.modified_at)),
        ("ETag", etag(entry.etag)),
        ("Size", entry.size),
    ]
    if owner is not None:
        fields.append(owner.fields(dialect))
    fields.append(("StorageClass", dialect.storage_class))
    if dialect is OBS:
        fields.append(("Type", "Appendable"))
    return fields


# ---------------------------------------------------------------- uploads in parts


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload in parts that goes on."""

    key: str
    upload_id: str
    started_at: int


@dataclass(frozen=True, slots=True)
class Part:
    """A part that has arrived."""

    number: int
    etag: str
    size: int
    modified_at: int


def initiated(bucket: str, key: str, upload_id: str, dialect: Dialect, *, url: bool) -> bytes:
    """An upload in parts has begun."""
    content: list[Field] = [("Bucket", bucket), ("Key", quote(key, safe="/") if url else key)]
    content.append(("UploadId", upload_id))
    if url:
        content.append(("EncodingType", "url"))
    return document("InitiateMultipartUploadResult", content, dialect)


def completed(page: Page, key: str, where: str, digest: str, dialect: Dialect) -> bytes:
    """An upload in parts is an object now."""
    content: list[Field] = [("Location", where), ("Bucket", page.bucket)]
    content += [("Key", page.text(key)), ("ETag", etag(digest))]
    if page.url_encoded:
        content.append(("EncodingType", "url"))
    return document("CompleteMultipartUploadResult", content, dialect)


def uploads(
    page: Page,
    markers: tuple[str, str],
    following: tuple[str, str],
    found: Sequence[Upload],
    owner: Owner,
    dialect: Dialect,
) -> bytes:
    """Uploads in parts that go on; `markers` are the key and the id that the page begins behind,
    `following` those that the next one does.
    """
    content: list[Field] = [("Bucket", page.bucket), ("KeyMarker", page.text(markers[0]))]
    content += [("UploadIdMarker", markers[1]), ("MaxUploads", page.limit)]
    content += [("IsTruncated", page.next is not None), *page.head()[1:]]
    if page.next is not None:
        content += [("NextKeyMarker", page.text(following[0]))]
        content += [("NextUploadIdMarker", following[1])]
    for one in found:
        fields: list[Field] = [("Key", page.text(one.key)), ("UploadId", one.upload_id)]
        fields += [owner.fields(dialect, "Initiator"), owner.fields(dialect)]
        fields += [("StorageClass", dialect.storage_class), ("Initiated", instant(one.started_at))]
        content.append(("Upload", fields))
    return document("ListMultipartUploadsResult", [*content, *page.common()], dialect)


def parts(
    page: Page, upload: Upload, after: int, found: Sequence[Part], owner: Owner, dialect: Dialect
) -> bytes:
    """The parts of an upload behind number `after`; `page.next` says that there are more."""
    content: list[Field] = [("Bucket", page.bucket), ("Key", page.text(upload.key))]
    if page.url_encoded:
        content.append(("EncodingType", "url"))
    content += [("UploadId", upload.upload_id), owner.fields(dialect, "Initiator")]
    content += [owner.fields(dialect), ("StorageClass", dialect.storage_class)]
    content += [("PartNumberMarker", after)]
    content += [("NextPartNumberMarker", found[-1].number if found else after)]
    content += [("MaxParts", page.limit), ("IsTruncated", page.next is not None)]
    for one in found:
        fields: list[Field] = [
            ("PartNumber", one.number),
            ("LastModified", instant(one.modified_at)),
            ("ETag", etag(one.etag)),
            ("Size", one.size),
        ]
        content.append(("Part", fields))
    return document("ListPartsResult", content, dialect)


# ---------------------------------------------------------------- objects


def copied(root: str, digest: str, modified_at: int, dialect: Dialect) -> bytes:
    """What a copy (`CopyObjectResult`) or a copied part (`CopyPartResult`) has become."""
    content: list[Field] = [("LastModified", instant(modified_at)), ("ETag", etag(digest))]
    return document(root, content, dialect)


def deleted(
    page: Page, keys: Sequence[str], failed: Sequence[tuple[str, str, str]], dialect: Dialect
) -> bytes:
    """What a batch has deleted, and what it could not: key, code, message."""
    content: list[Field] = [("EncodingType", "url")] if page.url_encoded else []
    content += [("Deleted", [("Key", page.text(key))]) for key in keys]
    content += [
        ("Error", [("Key", page.text(key)), ("Code", code), ("Message", message)])
        for key, code, message in failed
    ]
    return document("DeleteResult", content, dialect)


def tagging(tags: Sequence[tuple[str, str]], dialect: Dialect) -> bytes:
    """The tags of an object or a bucket."""
    found: list[Field] = [("Tag", [("Key", key), ("Value", value)]) for key, value in tags]
    return document("Tagging", [("TagSet", found)], dialect)
