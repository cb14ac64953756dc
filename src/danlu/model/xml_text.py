"""What XML 1.0 can carry."""

from __future__ import annotations


def fits_xml(value: str) -> bool:
    """Whether XML has every character of a text."""
    return not any((c < " " and c not in "\t\n\r") or c in "\ufffe\uffff" for c in value)
