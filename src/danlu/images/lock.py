"""The lock of an image: exactly what it consists of, in one canonical text.

The digest of that text is the image's id. So it holds nothing that could differ where the content
does not: no URL, no path of a file, no time, and no order of input. A container and a virtual
environment that are made from one lock have one id.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from typing import Any, TypeVar

from danlu.images.definition import Definition, Runtime, normal
from danlu.images.matrix import Matrix
from danlu.model.errors import Invalid, Missing

SCHEMA = 1

T = TypeVar("T")

_SHA256 = re.compile(r"[0-9a-f]{64}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_~:-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, order=True)
class Wheel:
    """One wheel; `sha256` is that of the file."""

    name: str
    version: str
    filename: str
    sha256: str


@dataclass(frozen=True, slots=True, order=True)
class AptPackage:
    """One Debian package; `sha256` is that of the file."""

    name: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Lock:
    """What one backend of an image consists of.

    `base` is the digest of the base image; without one, base and Debian packages are the host's,
    and the image can only be made as a virtual environment. `entry` are the programs that an image
    starts with: the SHA-256 of each by its name.
    """

    backend: str
    arch: str
    python: str
    matrix: str
    wheels: tuple[Wheel, ...]
    runtime: Runtime
    base: str = ""
    apt: tuple[AptPackage, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    entry: Mapping[str, str] = field(default_factory=dict)


def of(
    definition: Definition,
    matrix: Matrix,
    backend: str,
    arch: str,
    wheels: Sequence[Wheel],
    **more: Any,
) -> Lock:
    """The lock of a definition whose wheels have been found, in any order. Invalid says what is
    wrong with them.
    """
    lock = Lock(
        backend, arch, definition.python, matrix.version, tuple(wheels), definition.runtime, **more
    )
    check(lock)
    return lock


def image_id(lock: Lock) -> str:
    """The digest of the lock: `sha256:` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(canonical(lock).encode()).hexdigest()}"


def canonical(lock: Lock) -> str:
    """The one text of a lock: JSON with sorted keys and lists, a value a line for a good diff."""
    data = {
        "schema": SCHEMA,
        **asdict(lock),
        "wheels": [asdict(one) for one in sorted(lock.wheels)],
        "apt": [asdict(one) for one in sorted(lock.apt)],
    }
    return json.dumps(data, sort_keys=True, indent=1, ensure_ascii=True) + "\n"


def parse(text: str) -> Lock:
    """The lock of a canonical text. Invalid for every other text, with what is wrong."""
    try:
        data = json.loads(text)
        if data.pop("schema") != SCHEMA:
            raise Invalid("image-lock", detail=f"schema is not {SCHEMA}")
        lock = Lock(
            **{
                **data,
                "wheels": tuple(Wheel(**one) for one in data["wheels"]),
                "apt": tuple(AptPackage(**one) for one in data["apt"]),
                "runtime": Runtime(**data["runtime"]),
            }
        )
        check(lock)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
        raise Invalid("image-lock", detail=f"{type(problem).__name__} {problem}") from problem
    if canonical(lock) != text:
        raise Invalid("image-lock", detail="the text is not canonical; it was edited by hand")
    return lock


def file_name(definition: Definition, backend: str) -> str:
    """The name of the file of a built-in image's lock."""
    return f"{definition.id}.{backend}.json"


def built_in(definition: Definition, backend: str) -> Lock:
    """The lock of a built-in image that the package carries. Missing where it carries none."""
    name = file_name(definition, backend)
    file = resources.files("danlu.images") / "locks" / name
    if not file.is_file():
        raise Missing("image-lock-missing", image=definition.id, backend=backend)
    return parse(file.read_text("utf-8"))


# ---------------------------------------------------------------------- what a lock may hold


def check(lock: Lock) -> None:
    """Invalid if a part is not what its place needs: named, with its value."""
    for name in ("backend", "arch", "python", "matrix"):
        _matches(f"lock.{name}", getattr(lock, name), _PLAIN, "a plain word")
    if lock.base:
        _matches("lock.base", lock.base, _DIGEST, "a digest of the form sha256:…")
    if lock.apt and not lock.base:
        raise Invalid("field-missing", field="lock.base", remedy="Debian packages need a base")
    _each("lock.wheels", lock.wheels, _wheel)
    _each("lock.apt", lock.apt, _apt)
    for name, value in lock.env.items():
        _matches("lock.env", name, _VARIABLE, "the name of a variable")
        _text(f"lock.env.{name}", value)
    for name, sha256 in lock.entry.items():
        _matches("lock.entry", name, _PLAIN, "a file's name without a path")
        _matches(f"lock.entry.{name}", sha256, _SHA256, "64 hexadecimal digits")


def _each(at: str, items: Sequence[T], check_one: Callable[[str, T], str]) -> None:
    seen: set[str] = set()
    for one in items:
        name = check_one(at, one)
        if name in seen:
            raise Invalid("duplicate", field=at, value=name)
        seen.add(name)


def _wheel(at: str, wheel: Wheel) -> str:
    at = f"{at}.{wheel.name}"
    if _text(at, wheel.name) != normal(wheel.name):
        raise Invalid("field-value", field=at, value=wheel.name, expected="its normal spelling")
    _matches(f"{at}.version", wheel.version, _PLAIN, "a plain word")
    _matches(f"{at}.sha256", wheel.sha256, _SHA256, "64 hexadecimal digits")
    parts = _text(f"{at}.filename", wheel.filename).removesuffix(".whl").split("-")
    fits = (
        wheel.filename.endswith(".whl")
        and len(parts) in (5, 6)
        and all(re.fullmatch(r"[A-Za-z0-9.+_!]+", part) for part in parts)
        and (normal(parts[0]), parts[1].replace("_", "-")) == (wheel.name, wheel.version)
    )
    if not fits:
        expected = "the name of a wheel of that package and version"
        raise Invalid(
            "field-value", field=f"{at}.filename", value=wheel.filename, expected=expected
        )
    return wheel.name


def _apt(at: str, package: AptPackage) -> str:
    at = f"{at}.{package.name}"
    _matches(at, package.name, _PLAIN, "the name of a Debian package")
    _matches(f"{at}.version", package.version, _PLAIN, "a plain word")
    _matches(f"{at}.sha256", package.sha256, _SHA256, "64 hexadecimal digits")
    return package.name


def _text(at: str, value: object) -> str:
    if not isinstance(value, str):
        raise Invalid("field-type", field=at, found="another value", expected="a string")
    return value


def _matches(at: str, value: object, form: re.Pattern[str], expected: str) -> None:
    if not form.fullmatch(_text(at, value)):
        raise Invalid("field-value", field=at, value=value, expected=expected)
