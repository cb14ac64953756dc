"""Versions as numbers: of releases, drivers, Pythons, C libraries and CUDA."""

from __future__ import annotations

import re
from functools import lru_cache

from danlu.model.errors import Invalid

_NUMBERS = re.compile(r"\d{1,6}(?:\.\d{1,6}){0,3}")
_PYTHON = re.compile(r"3\.(\d{1,2})(?:\.\d{1,3})?(t?)")
_TAG = re.compile(r"cu(\d{1,3})(\d)")


@lru_cache(maxsize=1024)
def numbers(version: str) -> tuple[int, ...]:
    """`535.104.05` as (535, 104, 5), so that versions compare; ends of zeros count for nothing."""
    found = [int(part) for part in version.split(".")]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def plain(field: str, version: str, expected: str) -> str:
    """`version` if it is numbers with dots between; Invalid otherwise."""
    if not (version.isascii() and _NUMBERS.fullmatch(version)):
        raise Invalid("field-value", field=field, value=version, expected=expected)
    return version


def python_tag(version: str) -> str:
    """The wheel tag's part for a Python: `311` for 3.11.4, `313t` for a free-threaded 3.13t."""
    found = _PYTHON.fullmatch(version) if version.isascii() else None
    if found is None:
        expected = "a Python version such as 3.11, or 3.13t for a free-threaded one"
        raise Invalid("field-value", field="python", value=version, expected=expected)
    return f"3{int(found[1])}{found[2]}"


def python_name(tag: str) -> str:
    """The other way round: 3.11 for `311`."""
    return f"{tag[0]}.{tag[1:]}"


def series(version: str) -> str:
    """The series of a release: 2.8 for 2.8.0."""
    return ".".join(version.split(".")[:2])


def cuda_version(tag: str) -> str:
    """The CUDA version of a tag: 12.8 for `cu128`; empty where there is none."""
    found = _TAG.fullmatch(tag)
    return f"{found[1]}.{found[2]}" if found else ""


def cuda_tag(version: str) -> str:
    """The tag of a CUDA version: `cu128` for 12.8."""
    return f"cu{version.replace('.', '')}"


def capability(sm: int) -> str:
    """A compute capability as compilers write it: `sm_75`."""
    return f"sm_{sm}"
