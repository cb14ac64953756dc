"""Which versions have known holes: of the packages of an image, and of the host's programs.

A table in the package, with its sources. It says what is known, not that nothing else is wrong.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import Any

from danlu.images.versions import numbers

PYPI, HOST = "pypi", "host"


@cache
def table() -> tuple[Mapping[str, str], ...]:
    """The rows, as they stand in the file."""
    file = resources.files("danlu.images") / "data" / "advisories.toml"
    return tuple(tomllib.loads(file.read_text("utf-8"))["advisory"])


def against(versions: Mapping[str, str], kind: str = PYPI) -> list[dict[str, Any]]:
    """The advisories that hold for these versions, as values of JSON (`model.verification`)."""
    return list(_against(versions, kind))


def _against(versions: Mapping[str, str], kind: str) -> Iterator[dict[str, Any]]:
    for row in table():
        version = versions.get(row["package"])
        if version is None or row.get("kind", PYPI) != kind or not _is_below(version, row):
            continue
        plain = {
            name: row[name] for name in ("package", "below", "id", "severity", "summary", "source")
        }
        yield {**plain, "version": version}


def _is_below(version: str, row: Mapping[str, str]) -> bool:
    """A release that was mended on its own branch has the number of the mending in `also`: 1.2.8 is
    good although 1.3.3 is the floor.
    """
    found = _plain(version)
    for one in filter(None, row.get("also", "").split()):
        mended = _plain(one)
        if found[:2] == mended[:2] and found >= mended:
            return False
    return found < _plain(row["below"])


def _plain(version: str) -> tuple[int, ...]:
    """`2.13.0+cpu` and `1.1.5+ds1-1` as numbers."""
    return tuple(numbers(_released(version)))


def _released(version: str) -> str:
    words = version.partition("+")[0].partition("-")[0].partition("~")[0]
    parts = []
    for part in words.split("."):
        digits = ""
        for character in part:
            if not character.isdigit():
                break
            digits += character
        parts.append(digits or "0")
    return ".".join(parts)
