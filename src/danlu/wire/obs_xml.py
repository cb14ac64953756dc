"""XML from outside, read within bounds: no document type, no entities, no depth, UTF-8 alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from xml.parsers import expat

from danlu.model.errors import Invalid

XML_BYTES = 8 << 20
"""More than 10,000 parts, or 1,000 keys of 1,024 bytes that are all written as entities, need."""
DEPTH = 8
ELEMENTS = 60_000
TEXT_CHARS = 16_384


@dataclass(slots=True)
class Element:
    """One element. Namespaces and attributes are left out: no request of ours depends on them."""

    name: str
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def all(self, name: str) -> list[Element]:
        """The children of this name."""
        return [child for child in self.children if child.name == name]

    def one(self, name: str) -> Element | None:
        """The child of this name; Invalid where there are several."""
        found = self.all(name)
        if len(found) > 1:
            raise _malformed(f"<{self.name}> holds <{name}> {len(found)} times")
        return found[0] if found else None

    def text_of(self, name: str) -> str:
        """The text of the child of this name, empty where there is none."""
        found = self.one(name)
        return found.text if found else ""


def parse(body: bytes, root: str) -> Element:
    """The document that `body` holds; Invalid unless its root is called `root`."""
    if len(body) > XML_BYTES:
        raise Invalid("body-too-large", http=413, size=len(body), limit=XML_BYTES)
    found = _Reader().read(body)
    if found.name != root:
        raise _malformed(f"its root is <{found.name}> and must be <{root}>")
    return found


class _Reader:
    """Builds the tree while expat reads."""

    def __init__(self) -> None:
        self._open: list[Element] = []
        self._root: Element | None = None
        self._count = 0

    def read(self, body: bytes) -> Element:
        # What the document says of its encoding is not listened to.
        parser = expat.ParserCreate("utf-8", " ")
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._doctype
        parser.ProcessingInstructionHandler = self._instruction
        parser.buffer_text = True
        try:
            parser.Parse(body, True)
        except expat.ExpatError as error:
            detail = f"{expat.ErrorString(error.code)} at line {error.lineno}"
            raise _malformed(detail) from None
        except UnicodeError:
            raise _malformed("it is not UTF-8") from None
        if self._root is None:
            raise _malformed("it holds no element")
        return self._root

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        del attributes
        self._count += 1
        if self._count > ELEMENTS:
            raise _malformed(f"it holds more than {ELEMENTS} elements")
        if len(self._open) == DEPTH:
            raise _malformed(f"it is nested deeper than {DEPTH} levels")
        element = Element(name.rpartition(" ")[2])
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

    def _end(self, name: str) -> None:
        del name
        element = self._open.pop()
        if element.children:
            element.text = ""  # white space between elements

    def _characters(self, text: str) -> None:
        element = self._open[-1]
        if len(element.text) + len(text) > TEXT_CHARS:
            raise _malformed(f"the text of <{element.name}> is longer than {TEXT_CHARS} characters")
        element.text += text

    def _doctype(self, *_: object) -> None:
        raise _malformed("it holds a document type declaration, which is not accepted")

    def _instruction(self, *_: object) -> None:
        raise _malformed("it holds a processing instruction, which is not accepted")


def _malformed(detail: str) -> Invalid:
    return Invalid("obs-xml", detail=detail)
