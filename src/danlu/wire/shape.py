"""What a JSON body may hold, declared once: the declaration reads a request, refuses by name what
it does not know or cannot give, and describes itself as JSON Schema for OpenAPI.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from danlu.model.errors import Invalid
from danlu.wire.body import INT64, kind_of

Schema = dict[str, Any]

ABSENT = object()
"""What reading gives for a value that stands for nothing: null, or an empty unsupported field."""


class Kind(Protocol):
    """One kind of value."""

    def read(self, value: Any, at: str) -> Any:
        """The value for the model, ABSENT, or Invalid naming `at`."""

    def schema(self) -> Schema:
        """The values that are taken, as JSON Schema (2020-12, as OpenAPI 3.1 uses it)."""


def wrong_kind(value: object, at: str, expected: str) -> Invalid:
    """The error for a value of the wrong kind."""
    return Invalid("field-type", field=at, found=kind_of(value), expected=expected)


@dataclass(frozen=True, slots=True)
class Text:
    """A string; with `choices`, one of them. `pattern` (of the whole text) is only for the schema:
    the model's rules know more, and say it better.
    """

    choices: tuple[str, ...] = ()
    about: str = ""
    pattern: str = ""

    def read(self, value: Any, at: str) -> Any:
        """The string itself."""
        if type(value) is not str:
            raise wrong_kind(value, at, "a string")
        if self.choices and value not in self.choices:
            expected = f"one of {', '.join(self.choices)}"
            raise Invalid("field-value", field=at, value=value, expected=expected)
        return value

    def schema(self) -> Schema:
        """A string, or an enumeration."""
        schema: Schema = {"type": ["string", "null"]}
        if self.choices:
            schema["enum"] = [*self.choices, None]
        if self.pattern:
            schema["pattern"] = f"^{self.pattern}$"
        return _about(schema, self.about)


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number. `1.0` is one, as JSON does not tell it from `1`."""

    low: int = -INT64
    high: int = INT64 - 1
    about: str = ""

    def read(self, value: Any, at: str) -> Any:
        """The number as an int."""
        if type(value) is float and value.is_integer():
            value = int(value)
        if type(value) is not int:
            raise wrong_kind(value, at, "a whole number")
        if not self.low <= value <= self.high:
            expected = f"a number from {self.low} to {self.high}"
            raise Invalid("field-value", field=at, value=value, expected=expected)
        return value

    def schema(self) -> Schema:
        """An integer within bounds."""
        bounds = {"minimum": self.low, "maximum": self.high}
        return _about({"type": ["integer", "null"], **bounds}, self.about)


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    about: str = ""

    def read(self, value: Any, at: str) -> Any:
        """The boolean itself."""
        if type(value) is not bool:
            raise wrong_kind(value, at, "true or false")
        return value

    def schema(self) -> Schema:
        """A boolean."""
        return _about({"type": ["boolean", "null"]}, self.about)


@dataclass(frozen=True, slots=True)
class Listing:
    """A list of values of one kind; nulls in it are left out."""

    of: Kind
    most: int | None = None
    about: str = ""

    def read(self, value: Any, at: str) -> Any:
        """The values that are there."""
        if type(value) is not list:
            raise wrong_kind(value, at, "a list")
        if self.most is not None and len(value) > self.most:
            raise Invalid(
                "too-many", field=at, count=len(value), limit=self.most, remedy="send fewer"
            )
        read = (
            self.of.read(item, f"{at}[{index}]")
            for index, item in enumerate(value)
            if item is not None
        )
        return [item for item in read if item is not ABSENT]

    def schema(self) -> Schema:
        """An array."""
        items = self.of.schema()
        if items.get("type") == "object":
            items["type"] = ["object", "null"]
        schema: Schema = {"type": ["array", "null"], "items": items}
        if self.most is not None:
            schema["maxItems"] = self.most
        return _about(schema, self.about)


@dataclass(frozen=True, slots=True)
class Mapped:
    """An object with free names and values of one kind."""

    of: Kind
    about: str = ""

    def read(self, value: Any, at: str) -> Any:
        """The entries that are there."""
        if type(value) is not dict:
            raise wrong_kind(value, at, "an object")
        read = {
            name: self.of.read(item, f"{at}.{name}")
            for name, item in value.items()
            if item is not None
        }
        return {name: item for name, item in read.items() if item is not ABSENT}

    def schema(self) -> Schema:
        """An object with additional properties."""
        schema: Schema = {"type": ["object", "null"], "additionalProperties": self.of.schema()}
        return _about(schema, self.about)


@dataclass(frozen=True, slots=True)
class Shape:
    """An object with named fields; others are refused by their path. null = left out."""

    fields: Mapping[str, Kind]
    required: tuple[str, ...] = ()
    remedy: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    about: str = ""

    def read(self, value: Any, at: str = "") -> Any:
        """The fields that are there and not ABSENT."""
        if type(value) is not dict:
            raise wrong_kind(value, at or "the request body", "an object")
        prefix = f"{at}." if at else ""
        found: dict[str, Any] = {}
        for name, item in value.items():
            kind = self.fields.get(name)
            if kind is None:
                raise Invalid("field-unknown", field=prefix + name)
            if item is not None:
                read = kind.read(item, prefix + name)
                if read is not ABSENT:
                    found[name] = read
        for name in self.required:
            if name not in found:
                remedy = self.remedy.get(name, "give it")
                raise Invalid("field-missing", field=prefix + name, remedy=remedy)
        return found

    def schema(self) -> Schema:
        """An object that takes these properties only."""
        schema: Schema = {
            "type": "object" if self.required else ["object", "null"],
            "properties": {name: kind.schema() for name, kind in self.fields.items()},
            "additionalProperties": False,
        }
        for name in self.required:
            schema["properties"][name] = _present(schema["properties"][name])
        if self.required:
            schema["required"] = list(self.required)
        return _about(schema, self.about)


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A field that means something we cannot give yet: refused by name, unless it stands for
    nothing (empty all the way down, or one of `inert`).
    """

    remedy: str
    inert: tuple[str | int, ...] = ()

    def read(self, value: Any, at: str) -> Any:
        """ABSENT, or Invalid."""
        if empty(value) or (type(value) in (str, int) and value in self.inert):
            return ABSENT
        raise Invalid("field-unsupported", field=at, remedy=self.remedy)

    def schema(self) -> Schema:
        """Anything: what is taken cannot be said in a schema."""
        return {"description": f"Not supported yet: must be empty ({self.remedy})."}


@dataclass(frozen=True, slots=True)
class ReplyOnly:
    """A field of replies, or a text for people: taken and not used, so that a reply can be sent
    back as a request.
    """

    about: str = "Of replies; taken in a request and not used."

    def read(self, value: Any, at: str) -> Any:  # noqa: ARG002 - the signature of a Kind
        """ABSENT."""
        return ABSENT

    def schema(self) -> Schema:
        """Anything."""
        return {"description": self.about}


def empty(value: object) -> bool:
    """Whether a JSON value says nothing: null, false, 0, "", or empty all the way down."""
    if isinstance(value, dict):
        return all(empty(item) for item in value.values())
    if isinstance(value, list):
        return all(empty(item) for item in value)
    return not value


def _about(schema: Schema, about: str) -> Schema:
    return {**schema, "description": about} if about else schema


def _present(schema: Schema) -> Schema:
    """`schema` without null."""
    kinds = schema.get("type")
    if not isinstance(kinds, list):
        return schema
    left = {**schema, "type": next(kind for kind in kinds if kind != "null")}
    if "enum" in left:
        left["enum"] = [value for value in left["enum"] if value is not None]
    return left


# Replies are described, not read: these write their JSON Schema in short.

STRING: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
BOOLEAN: Schema = {"type": "boolean"}


def listing(of: Schema) -> Schema:
    """The schema of a list."""
    return {"type": "array", "items": of}


def reply(fields: Mapping[str, Schema], optional: Sequence[str] = ()) -> Schema:
    """The schema of an object that has all `fields` but perhaps the `optional` ones."""
    return {
        "type": "object",
        "properties": dict(fields),
        "required": [name for name in fields if name not in optional],
    }


def or_null(schema: Schema) -> Schema:
    """The schema, or null."""
    return {**schema, "type": [schema["type"], "null"]}
