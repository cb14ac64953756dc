"""What S3 says in XML, as far as it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from xml.etree import ElementTree as ET

from danlu.faces.cli.http import Garbled


class Entry:
    """An object of a listing. `modified` is in seconds since 1970 (UTC)."""

    __slots__ = ("etag", "key", "modified", "size")

    def __init__(self, key: str, size: int, etag: str, modified: float) -> None:
        self.key = key
        self.size = size
        self.etag = etag
        self.modified = modified


class Page:
    """One page of a listing; `after` is where the next one begins, empty at the end."""

    __slots__ = ("after", "entries", "prefixes")

    def __init__(self, entries: list[Entry], prefixes: list[str], after: str) -> None:
        self.entries = entries
        self.prefixes = prefixes
        self.after = after


def parse(data: bytes) -> ET.Element:
    """The root of a document; Garbled where it is none."""
    try:
        return ET.fromstring(data)  # noqa: S314 -- expat refuses entities that explode
    except (ET.ParseError, ValueError) as error:
        raise Garbled(f"an answer that is no XML ({error})") from None


def tag(element: ET.Element) -> str:
    """The name of an element, without its namespace."""
    return element.tag.rpartition("}")[2]


def fields(element: ET.Element) -> dict[str, str]:
    """The texts of an element's children, by name."""
    return {tag(child): child.text or "" for child in element}


def page(root: ET.Element) -> tuple[Page, list[str]]:
    """A page of objects as it was sent, and the texts in it that may be encoded."""
    entries, prefixes, truncated, following = [], [], False, ""
    for child in root:
        name = tag(child)
        if name == "Contents":
            found = fields(child)
            etag = found.get("ETag", "").strip('"')
            entries.append(
                Entry(
                    found.get("Key", ""),
                    int(found.get("Size") or 0),
                    etag,
                    instant(found.get("LastModified", "")),
                )
            )
        elif name == "CommonPrefixes":
            prefixes.append(fields(child).get("Prefix", ""))
        elif name == "IsTruncated":
            truncated = (child.text or "").strip() == "true"
        elif name == "NextMarker":
            following = child.text or ""
    if truncated and not following:
        following = max([*(entry.key for entry in entries[-1:]), *prefixes[-1:]], default="")
    texts = [*(entry.key for entry in entries), *prefixes]
    return Page(entries, prefixes, following if truncated else ""), texts


def decode(page: Page, known: list[str]) -> None:
    """Take the encoding off a page that was asked for with `encoding-type=url`. `known` are its
    texts in the same order, as far as XML can hold them: they tell what a `+` stands for.
    """
    from urllib.parse import unquote

    hints = iter(known if len(known) == len(page.entries) + len(page.prefixes) else ())

    def plain(text: str) -> str:
        found, hint = unquote(text), next(hints, "")
        if "+" not in text:
            return found
        alike = found.replace(" ", "+") == hint.replace(" ", "+")
        return hint if alike else unquote(text.replace("+", " "))

    encoded = [entry.key for entry in page.entries] + page.prefixes
    for entry in page.entries:
        entry.key = plain(entry.key)
    page.prefixes = [plain(prefix) for prefix in page.prefixes]
    decoded = [entry.key for entry in page.entries] + page.prefixes
    page.after = dict(zip(encoded, decoded, strict=True)).get(page.after, unquote(page.after))


def instant(text: str) -> float:
    """A date of S3's, in seconds since 1970; 0 where it is none."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def element(name: str, children: Sequence[str]) -> bytes:
    """A document whose root holds `children`, which are XML."""
    space = ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
    return f"<{name}{space}>{''.join(children)}</{name}>".encode()


def text(name: str, value: str) -> str:
    """An element with a text. Characters that XML cannot hold are written as references, which
    servers read all the same.
    """
    escaped = "".join(c if c.isprintable() and c not in "<>&" else f"&#{ord(c)};" for c in value)
    return f"<{name}>{escaped}</{name}>"
