"""The bytes of a request body, bounded before and while they are parsed.

JSON as RFC 8259 has it, and no more: valid UTF-8, no NaN, every name once, whole numbers of 64
bits, finite floats, and a depth that no real request needs.
"""

from __future__ import annotations

import json
import math
from typing import Any

from danlu.model import limits
from danlu.model.errors import Invalid

INT64 = 1 << 63


def parse(body: bytes) -> dict[str, Any]:
    """The JSON object that `body` holds, or Invalid saying what is wrong with it."""
    too_large(len(body))
    if not body.strip():
        raise Invalid("not-json", detail="it is empty")
    try:
        found = _DECODER.decode(body.decode())
    except UnicodeDecodeError as error:
        raise Invalid("not-json", detail=f"byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        detail = f"{error.msg} at line {error.lineno}, column {error.colno}"
        raise Invalid("not-json", detail=detail) from None
    except RecursionError:
        raise _too_deep() from None
    if type(found) is not dict:
        raise Invalid("not-json", detail=f"it is {kind_of(found)}, not an object")
    # Counting brackets is cheaper than walking; strings may hold some, so many decide nothing yet.
    if (
        body.count(b"{") + body.count(b"[") > limits.JSON_DEPTH
        and _depth(found) > limits.JSON_DEPTH
    ):
        raise _too_deep()
    return found


def too_large(size: int, limit: int = limits.BODY_BYTES) -> None:
    """Raise Invalid (413) for a body of more than `limit` bytes."""
    if size > limit:
        raise Invalid("body-too-large", http=413, size=size, limit=limit)


def kind_of(value: object) -> str:
    """What a JSON value is, for people."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, list) else "an object"


def _too_deep() -> Invalid:
    return Invalid("not-json", detail=f"it is nested deeper than {limits.JSON_DEPTH} levels")


def _depth(value: object) -> int:
    """How deep `value` is nested; by levels, so that depth costs no stack."""
    level: list[Any] = [value]
    depth = 0
    while level:
        depth += 1
        if depth > limits.JSON_DEPTH:
            break
        level = [
            part
            for item in level
            for part in (item.values() if isinstance(item, dict) else item)
            if isinstance(part, dict | list)
        ]
    return depth


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Invalid("not-json", detail=f"the name '{twice[:64]}' stands twice in one object")
    return found


def _integer(digits: str) -> int:
    if len(digits) <= 20:
        number = int(digits)
        if -INT64 <= number < INT64:
            return number
    raise Invalid("not-json", detail=f"the number {digits[:24]} does not fit into 64 bits")


def _float(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise Invalid("not-json", detail=f"the number {digits[:24]} is not finite")
    return number


def _constant(name: str) -> float:
    raise Invalid("not-json", detail=f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_pairs,
    parse_int=_integer,
    parse_float=_float,
    parse_constant=_constant,
)
