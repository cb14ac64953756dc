"""A request's headers, decoded once."""

from __future__ import annotations

from collections.abc import Iterable

from danlu.model.errors import Denied


class Headers:
    """Values by lower-case name. One that was sent twice is refused when it is asked for."""

    __slots__ = ("_twice", "_values")

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        values: dict[str, str] = {}
        twice: set[str] = set()
        for name_bytes, value in raw:
            name = name_bytes.decode("latin-1")
            if name in values:
                twice.add(name)
            values[name] = value.decode("latin-1")
        self._values = values
        self._twice = twice

    def get(self, name: str) -> str | None:
        """The value of a header that is sent once, None where it is not sent."""
        if self._twice and name in self._twice:
            raise Denied("signature-malformed", detail=f"the header '{name}' is sent twice")
        return self._values.get(name)

    def single(self, name: str) -> str:
        """The value of a header that is sent exactly once, else empty."""
        return "" if name in self._twice else self._values.get(name, "")

    def any(self, name: str) -> str:
        """A value, empty where there is none; for what decides nothing."""
        return self._values.get(name, "").strip()

    def names(self) -> Iterable[str]:
        """The names of all headers, in lower case."""
        return self._values


def text_of(value: str) -> str:
    """A header's value as its UTF-8 means it; as it is where it is none."""
    if value.isascii():
        return value
    try:
        return value.encode("latin-1").decode()
    except UnicodeDecodeError:
        return value
