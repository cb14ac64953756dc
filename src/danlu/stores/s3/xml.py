"""Texts in the XML of a request."""

from __future__ import annotations

from xml.sax.saxutils import escape


def xml(value: str) -> str:
    """A text as content of an element."""
    return escape(value, {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"})


def fits_xml(value: str) -> bool:
    """Whether XML 1.0 can carry a text at all."""
    return all(letter >= " " or letter in "\t\n\r" for letter in value) and not (
        {"\ufffe", "\uffff"} & set(value)
    )
