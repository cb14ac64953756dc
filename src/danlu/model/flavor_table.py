"""Reads flavors as an administrator writes them: tables of the settings file."""

from __future__ import annotations

from typing import Any

from danlu.model.errors import Invalid
from danlu.model.flavor import Flavor
from danlu.model.resources import GIB, Shape

_NUMBERS = {
    "cpus": "a whole number of at least 1",
    "memory_gib": "a number of at least 0.001",
    "gpus": "a whole number of at least 0",
    "price_per_hour": "a number of at least 0",
}
_WHOLE = ("cpus", "gpus")
_LEAST = {"cpus": 1.0, "memory_gib": 0.001}


def flavors_of(value: Any, source: str) -> tuple[Flavor, ...]:
    """The flavors of a table; Invalid names the field. `source` is where it was read."""
    if isinstance(value, tuple):
        return value
    if not isinstance(value, dict):
        raise Invalid(
            "setting-value",
            key="flavors",
            source=source,
            value=value,
            expected='tables of the settings file: [flavors."id"]',
        )
    return tuple(_flavor(name, table, source) for name, table in value.items())


def _is_amount(value: object, *, least: float, whole: bool) -> bool:
    """Whether `value` is a finite number that a flavor may hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return least <= value < 1e9 and (not whole or value == int(value))


def _flavor(name: str, table: Any, source: str) -> Flavor:
    known = {*_NUMBERS, "gpu_model"}
    if not isinstance(table, dict) or not {"cpus", "memory_gib"} <= table.keys():
        raise Invalid(
            "setting-value",
            key=f"flavors.{name}",
            source=source,
            value=table,
            expected="a table with cpus and memory_gib",
        )
    for key, value in table.items():
        if key not in known:
            raise Invalid("setting-unknown", key=f"flavors.{name}.{key}", source=source, hint="")
        expected = _NUMBERS.get(key, "")
        if expected and not _is_amount(value, least=_LEAST.get(key, 0), whole=key in _WHOLE):
            raise Invalid(
                "setting-value",
                key=f"flavors.{name}.{key}",
                source=source,
                value=value,
                expected=expected,
            )
    shape = Shape(
        int(table["cpus"]),
        int(table["memory_gib"] * GIB),
        int(table.get("gpus", 0)),
        str(table.get("gpu_model", "")),
    )
    return Flavor(name, shape, float(table.get("price_per_hour", 0)))
