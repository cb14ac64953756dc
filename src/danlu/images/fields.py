"""What a file of ours may hold, field by field: read, checked, and refused by name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from danlu.model.errors import Invalid

MOST_ENTRIES = 500
MOST_CHARS = 500


@dataclass(frozen=True, slots=True)
class Text:
    """A string of a form, which `expected` says in words."""

    pattern: str
    expected: str

    def read(self, value: object, at: str) -> str:
        """The string, or Invalid."""
        if not isinstance(value, str):
            raise Invalid("field-type", field=at, found=_kind(value), expected="a string")
        plain = len(value) <= MOST_CHARS and value.isascii()
        if not plain or not re.fullmatch(self.pattern, value):
            raise Invalid("field-value", field=at, value=value, expected=self.expected)
        return value


@dataclass(frozen=True, slots=True)
class Texts:
    """A list of strings of one form, none of them twice. Their order says nothing."""

    each: Text
    least: int = 0

    def read(self, value: object, at: str) -> tuple[str, ...]:
        """The strings in order of the alphabet, or Invalid."""
        if not isinstance(value, list):
            raise Invalid("field-type", field=at, found=_kind(value), expected="a list")
        if len(value) > MOST_ENTRIES:
            raise Invalid("too-many", field=at, count=len(value), limit=MOST_ENTRIES,
                          remedy="remove some")  # fmt: skip
        read = [self.each.read(one, f"{at}[{i}]") for i, one in enumerate(value)]
        for one in read:
            if read.count(one) > 1:
                raise Invalid("duplicate", field=at, value=one)
        if len(read) < self.least:
            raise Invalid("field-missing", field=at, remedy="give at least one value")
        return tuple(sorted(read))


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number within bounds."""

    low: int
    high: int

    def read(self, value: object, at: str) -> int:
        """The number, or Invalid."""
        if type(value) is not int:
            raise Invalid("field-type", field=at, found=_kind(value), expected="a whole number")
        if not self.low <= value <= self.high:
            expected = f"a whole number from {self.low} to {self.high}"
            raise Invalid("field-value", field=at, value=value, expected=expected)
        return value


@dataclass(frozen=True, slots=True)
class Table:
    """Named fields. Those without a default have to be there."""

    fields: Mapping[str, Text | Texts | Number | Table]
    defaults: Mapping[str, Any]

    def read(self, value: object, at: str) -> dict[str, Any]:
        """Every field with its value or its default, or Invalid."""
        if not isinstance(value, dict):
            raise Invalid("field-type", field=at or ".", found=_kind(value), expected="a table")
        for name in value:
            if name not in self.fields:
                near = difflib.get_close_matches(name, self.fields, 1) or sorted(self.fields)
                raise Invalid("image-field-unknown", field=_join(at, name), near=", ".join(near))
        found: dict[str, Any] = {}
        for name, field in self.fields.items():
            if name in value:
                found[name] = field.read(value[name], _join(at, name))
            elif name in self.defaults:
                found[name] = self.defaults[name]
            else:
                where = _join(at, name)
                raise Invalid("field-missing", field=where, remedy="every image says it")
        return found


def _join(at: str, name: str) -> str:
    return f"{at}.{name}" if at else name


def _kind(value: object) -> str:
    kinds = {bool: "a boolean", str: "a string", list: "a list", dict: "a table", int: "a number"}
    return kinds.get(type(value), "a number" if isinstance(value, float) else "another value")
