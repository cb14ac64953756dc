"""Texts in the XML of a request."""

from __future__ import annotations

from xml.sax.saxutils import escape


def xml(value: str) -> str:
    """A text as content of an element."""
    return escape(value, {"\r": "&#13;", "\n": "&#10;", "\t": "&#9;"})
