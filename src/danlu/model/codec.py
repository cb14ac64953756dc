"""Dataclasses of the model to JSON values and back, by their type annotations.

Used where our own program wrote the data (database columns, plan files). What comes from
outside is read by `wire/`, which checks and explains.

Annotations are looked at once a type: what comes out of it is a plain function, so that reading
a job's row costs little more than building its objects.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar, cast

from danlu.model.url import LocalUrl, ObjectUrl

T = TypeVar("T")

Convert = Callable[[Any], Any]

_PLAIN = frozenset({str, int, float, bool, types.NoneType})


def to_json(value: object) -> Any:
    """JSON values (dict, list, str, int, float, bool, None) for a model value."""
    kind: Any = type(value)
    dump = _dumper(kind)
    return value if dump is None else dump(value)


def one_level(value: object) -> Any:
    """`to_json` without what lies inside: for an encoder that comes back with that by itself."""
    kind: Any = type(value)
    if not issubclass(kind, ObjectUrl | LocalUrl) and dataclasses.is_dataclass(kind):
        names, values = _getter(cast("Any", kind))
        return dict(zip(names, values(value), strict=True))
    return to_json(value)


def from_json(kind: type[T], data: Any) -> T:
    """Build a `kind` from what `to_json` gave for one. Keys that `kind` lacks are ignored,
    so that an older program reads what a newer one wrote; missing keys take their defaults.
    """
    load = _loader(cast("Any", kind))
    return cast("T", data if load is None or data is None else load(data))


@functools.cache
def _dumper(kind: Any) -> Convert | None:
    """What turns a `kind` into JSON values; None where it is one already."""
    if issubclass(kind, Enum):
        return lambda value: value.value
    if issubclass(kind, str | int | float | types.NoneType):
        return None
    if issubclass(kind, ObjectUrl | LocalUrl):
        return str
    if dataclasses.is_dataclass(kind):
        return _fields(kind)
    if issubclass(kind, Mapping):
        return lambda value: {str(key): to_json(item) for key, item in value.items()}
    if issubclass(kind, Sequence):
        return lambda value: [to_json(item) for item in value]
    raise TypeError(f"{kind.__name__} is not a value of the model")


@functools.cache
def _getter(kind: Any) -> tuple[tuple[str, ...], Callable[[Any], tuple[Any, ...]]]:
    """The names of a dataclass' fields, and what reads all of them."""
    names = tuple(item.name for item in dataclasses.fields(kind))
    if len(names) == 1:
        return names, lambda value: (getattr(value, names[0]),)
    return names, operator.attrgetter(*names)


def _fields(kind: Any) -> Convert:
    """Most fields of a job are texts and numbers, which are JSON values as they stand."""
    names, values = _getter(kind)

    def dump(value: Any) -> dict[str, Any]:
        return {
            name: item if type(item) in _PLAIN else to_json(item)
            for name, item in zip(names, values(value), strict=True)
        }

    return dump


@functools.cache
def _loader(kind: Any) -> Convert | None:
    """What turns a JSON value that is not None into a `kind`; None where it is one already."""
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        return _union(typing.get_args(kind))
    if origin is tuple:
        return _tuple(_loader(typing.get_args(kind)[0]))
    if origin is not None and issubclass(origin, Mapping):
        return dict
    if kind in (ObjectUrl, LocalUrl):
        return _url
    if dataclasses.is_dataclass(kind):
        return _dataclass(cast("type", kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {member.value: member for member in kind}.__getitem__
    return None


def _union(kinds: tuple[Any, ...]) -> Convert | None:
    present = [kind for kind in kinds if kind is not types.NoneType]
    if ObjectUrl in present:
        return _url
    return _loader(present[0]) if len(present) == 1 else None


def _url(data: Any) -> Any:
    """Not `parse`: what was accepted once is read back, also where the rules have grown since."""
    if not isinstance(data, str):
        return data
    if data.startswith("file://"):
        return LocalUrl(data.removeprefix("file://"))
    bucket, _, key = data.removeprefix("obs://").partition("/")
    return ObjectUrl(bucket, key)


def _tuple(item: Convert | None) -> Convert:
    if item is None:
        return tuple
    return lambda data: tuple([None if one is None else item(one) for one in data])


def _dataclass(kind: type) -> Convert:
    hints = typing.get_type_hints(kind)
    known = {item.name for item in dataclasses.fields(kind)}
    loaders = [(name, load) for name in known if (load := _loader(hints[name])) is not None]

    def build(data: Any) -> Any:
        values = {name: value for name, value in data.items() if name in known}
        for name, load in loaders:
            value = values.get(name)
            if value is not None:
                values[name] = load(value)
        return kind(**values)

    return build
