"""A query string, taken apart once; the signature and the meaning are read from the same values."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote_plus

from danlu.model.errors import Invalid

MOST = 100


class Query:
    """Parameters by name, as they are cased. `None` is a name without `=`."""

    __slots__ = ("_values",)

    def __init__(self, raw: bytes) -> None:
        self._values: dict[str, str | None] = {}
        parts = raw.decode("ascii", "replace").split("&") if raw else []
        if len(parts) > MOST:
            raise Invalid("obs-query", detail=f"it has more than {MOST} parameters")
        for part in parts:
            name, equals, value = part.partition("=")
            if not part:
                continue
            name = decoded(name)
            if name in self._values:
                raise Invalid("obs-query", detail=f"'{name}' stands in it twice")
            self._values[name] = decoded(value) if equals else None

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def items(self) -> Iterator[tuple[str, str | None]]:
        """Names and values as they were sent."""
        return iter(self._values.items())

    def get(self, name: str) -> str:
        """A value, empty where there is none."""
        return self._values.get(name) or ""

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number; an empty one counts as not sent."""
        text = self.get(name)
        if not text:
            return default
        if text.isascii() and text.isdigit() and len(text) <= 19 and low <= int(text) <= high:
            return int(text)
        expected = f"a whole number from {low} to {high}"
        raise Invalid("field-value", field=name, value=text, expected=expected)


def decoded(text: str) -> str:
    """Percent-decoded; bytes that are not UTF-8 stay recognisable, and are refused as keys."""
    return unquote_plus(text, errors="surrogateescape")
