"""What an S3 server answers, read with limits: it is another machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import unquote_plus
from xml.etree import ElementTree as ET

from danlu.model.errors import EngineError

MOST = 8 << 20
"""Bytes of an answer that is read whole; a page of 1,000 keys of 1,024 bytes is under 4 MiB."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer; names of headers in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes = b""

    def xml(self) -> ET.Element:
        """The body as XML, without namespaces; EngineError for anything else."""
        if b"<!" in self.body.replace(b"<!--", b""):
            raise strange("a document type in the answer")
        try:
            root = ET.fromstring(self.body)  # noqa: S314 - no entity can be declared: see above
        except ET.ParseError as problem:
            raise strange(f"the answer is not XML: {problem}") from problem
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
        return root

    @property
    def code(self) -> str:
        """S3's code of an error, or nothing."""
        found = re.search(rb"<Code>([A-Za-z0-9]{1,80})</Code>", self.body)
        return found[1].decode() if found else ""

    @property
    def said(self) -> str:
        """S3's words about an error, for a person."""
        found = re.search(rb"<Message>([^<]{1,300})</Message>", self.body)
        words = found[1].decode("utf-8", "replace") if found else ""
        return ": ".join(filter(None, (f"{self.status} {self.code}".strip(), words)))


def text(element: ET.Element, name: str) -> str:
    """The text of a child, or nothing."""
    return element.findtext(name) or ""


def whole(element: ET.Element, name: str) -> int:
    """A child that is a number; EngineError where it is none."""
    found = text(element, name)
    if not re.fullmatch(r"[0-9]{1,18}", found):
        raise strange(f"{name} is '{found[:40]}'")
    return int(found)


def url_text(element: ET.Element, name: str, root: ET.Element) -> str:
    """A key or prefix, as `EncodingType` says it is spelt."""
    found = text(element, name)
    return unquote_plus(found, errors="strict") if text(root, "EncodingType") == "url" else found


def children(element: ET.Element, *path: str) -> Iterator[str]:
    """The texts of all elements at a path."""
    for found in element.findall("/".join(path)):
        yield found.text or ""


def instant(value: str) -> int:
    """UTC milliseconds of an ISO or HTTP date; 0 where it is none."""
    try:
        if value[:1].isdigit():
            when = datetime.fromisoformat(value)
        else:
            when = parsedate_to_datetime(value)
    except ValueError:
        return 0
    return int(when.replace(tzinfo=when.tzinfo or UTC).timestamp() * 1000)


def strange(detail: str) -> EngineError:
    """The server does not speak S3 as it should; asking again does not help."""
    return EngineError("s3-answer", detail=detail)
