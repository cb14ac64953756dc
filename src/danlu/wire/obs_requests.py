"""The XML that requests of OBS and S3 bring along, as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote

from danlu.model.errors import Invalid
from danlu.wire.obs_xml import Element, parse

MOST_KEYS = 1000
MOST_PARTS = 10_000
TAG_KEY_CHARS = 128
TAG_VALUE_CHARS = 256
SUMS = ("CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256")
"""How elements call the checksum of a part, behind `Checksum`."""
OBJECT_TAGS = 10
BUCKET_TAGS = 20


@dataclass(frozen=True, slots=True)
class Deletion:
    """A batch of keys to delete. `quiet`: only what fails is told."""

    keys: tuple[str, ...]
    quiet: bool
    url_encoded: bool


def deletion(body: bytes) -> Deletion:
    """Read `<Delete>`; Invalid for more than 1,000 keys, or for a version."""
    root = parse(body, "Delete")
    found = root.all("Object")
    if not 1 <= len(found) <= MOST_KEYS:
        detail = f"<Delete> names {len(found)} objects and must name 1 to {MOST_KEYS}"
        raise Invalid("obs-xml", detail=detail)
    encoding = root.text_of("EncodingType").strip().lower()
    if encoding not in ("", "url"):
        raise Invalid("field-value", field="EncodingType", value=encoding, expected="url")
    keys = []
    for one in found:
        version = one.text_of("VersionId").strip()
        if version not in ("", "null"):
            raise Invalid("obs-version", version=version)
        key = one.text_of("Key")
        keys.append(unquote(key, errors="surrogateescape") if encoding else key)
    return Deletion(tuple(keys), _true(root.text_of("Quiet")), bool(encoding))


@dataclass(frozen=True, slots=True)
class NamedPart:
    """A part that an upload is completed with. `etag` has no quotes; `checksums` by algorithm."""

    number: int
    etag: str
    checksums: dict[str, str]


def completion(body: bytes) -> list[NamedPart]:
    """Read `<CompleteMultipartUpload>`, in the order given."""
    root = parse(body, "CompleteMultipartUpload")
    found = root.all("Part")
    if not 1 <= len(found) <= MOST_PARTS:
        detail = f"<CompleteMultipartUpload> names {len(found)} parts and must name 1 to 10000"
        raise Invalid("obs-xml", detail=detail)
    return [
        NamedPart(
            part_number(one.text_of("PartNumber")),
            _etag(one),
            {name: text for name in SUMS if (text := one.text_of(f"Checksum{name}").strip())},
        )
        for one in found
    ]


def part_number(text: str) -> int:
    """A part's number, 1 to 10,000; Invalid for another text."""
    text = text.strip()
    if text.isascii() and text.isdigit() and len(text) <= 6 and 1 <= int(text) <= MOST_PARTS:
        return int(text)
    expected = f"a whole number from 1 to {MOST_PARTS}"
    raise Invalid("field-value", field="PartNumber", value=text, expected=expected)


def _etag(part: Element) -> str:
    return part.text_of("ETag").strip().strip('"')


def tags(body: bytes, most: int) -> dict[str, str]:
    """Read `<Tagging>`."""
    root = parse(body, "Tagging")
    found = root.one("TagSet")
    pairs = [
        (tag.text_of("Key"), tag.text_of("Value")) for tag in (found.all("Tag") if found else ())
    ]
    return _checked(pairs, most)


def tags_of_header(value: str) -> dict[str, str]:
    """Read the header `x-amz-tagging`, which is written as a query."""
    return _checked(parse_qsl(value, keep_blank_values=True), OBJECT_TAGS)


def _checked(pairs: Iterable[tuple[str, str]], most: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in pairs:
        if not 1 <= len(key) <= TAG_KEY_CHARS or len(value) > TAG_VALUE_CHARS:
            detail = f"the tag '{key[:40]}' must have 1 to 128 characters, its value at most 256"
            raise Invalid("obs-tag", detail=detail)
        if key in found:
            raise Invalid("obs-tag", detail=f"the tag '{key[:40]}' stands twice")
        found[key] = value
    if len(found) > most:
        raise Invalid("obs-tag", detail=f"there are {len(found)} tags and may be {most}")
    return found


def location(body: bytes) -> str:
    """The region that a new bucket is wanted in; empty where none is said."""
    if not body.strip():
        return ""
    root = parse(body, "CreateBucketConfiguration")
    # Amazon's word and Huawei's own.
    return (root.text_of("LocationConstraint") or root.text_of("Location")).strip()


def versioning(body: bytes) -> str:
    """The state of versioning that is wanted."""
    status = parse(body, "VersioningConfiguration").text_of("Status").strip()
    if status not in ("Enabled", "Suspended"):
        expected = "Enabled or Suspended"
        raise Invalid("field-value", field="Status", value=status, expected=expected)
    return status


def grants(body: bytes) -> list[tuple[str, str]]:
    """Read `<AccessControlPolicy>`: to whom (an id, a group or `Everyone`), and what."""
    root = parse(body, "AccessControlPolicy")
    listed = root.one("AccessControlList")
    found = []
    for grant in listed.all("Grant") if listed else ():
        grantee = grant.one("Grantee")
        names = ("ID", "URI", "Canned")
        who = next((text for text in map(grantee.text_of, names) if text), "") if grantee else ""
        found.append((who.strip(), grant.text_of("Permission").strip()))
    return found


def _true(text: str) -> bool:
    return text.strip().lower() == "true"


def quota(body: bytes) -> int:
    """Read `<Quota>`: bytes, 0 = no limit."""
    text = parse(body, "Quota").text_of("StorageQuota").strip()
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Invalid("field-value", field="StorageQuota", value=text, expected="a whole number")
    return int(text)
