"""Reads what uv resolved (a pylock.toml, PEP 751) into the wheels of a lock.

uv offers several wheels of a package where several fit. Which one an installer would take depends
on the machine it runs on; a lock names one, the best for its target.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.markers import InvalidMarker, Marker
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from danlu.images.definition import normal
from danlu.images.lock import Wheel
from danlu.model.errors import Invalid, Refused

_ALIASES = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
"""Older names of the C library's floors; manylinux1 and 2010 were for Intel's processors alone."""


@dataclass(frozen=True)
class Target:
    """The system that an image is for: Linux with the GNU C library 2.x."""

    python: str
    glibc: str
    arch: str

    @cached_property
    def ranks(self) -> Mapping[Tag, int]:
        """The tags that fit, the best with the lowest number."""
        version = [int(part) for part in self.python.rstrip("t").split(".")][:2]
        platforms = list(self._platforms())
        suffix = "t" if self.python.endswith("t") else ""
        abis = [f"cp{version[0]}{version[1]}{suffix}"]
        tags = [
            *cpython_tags(version, abis=abis, platforms=platforms),
            *compatible_tags(version, f"cp{version[0]}{version[1]}", platforms),
        ]
        return {tag: rank for rank, tag in reversed(list(enumerate(tags)))}

    def _platforms(self) -> Iterator[str]:
        newest = int(self.glibc.split(".")[1])
        for minor in range(newest, 4, -1):
            yield f"manylinux_2_{minor}_{self.arch}"
            if minor in _ALIASES and (minor == 17 or self.arch == "x86_64"):
                yield f"{_ALIASES[minor]}_{self.arch}"
        yield f"linux_{self.arch}"

    @cached_property
    def markers(self) -> dict[str, str]:
        """What the markers of requirements are about, for this system."""
        version = self.python.rstrip("t")
        return {
            "implementation_name": "cpython",
            "implementation_version": f"{version}.0",
            "os_name": "posix",
            "platform_machine": self.arch,
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": "Linux",
            "platform_version": "",
            "python_full_version": f"{version}.0",
            "python_version": version,
            "sys_platform": "linux",
            "extra": "",
        }


def wheels(text: str, target: Target, local: Mapping[str, str] | None = None) -> tuple[Wheel, ...]:
    """One wheel a package, by name. `local` holds the SHA-256 of files that lie on this machine,
    by file name, where the text has none.

    Refused where a package has no wheel for the target, or a wheel no digest.
    """
    try:
        packages = tomllib.loads(text)["packages"]
        found = [
            _chosen(package, target, local or {})
            for package in packages
            if "marker" not in package or Marker(package["marker"]).evaluate(target.markers)
        ]
    except (tomllib.TOMLDecodeError, InvalidMarker, KeyError, TypeError) as problem:
        raise Invalid("image-pylock", detail=f"{type(problem).__name__} {problem}") from problem
    return tuple(sorted(found))


def offered(text: str) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Every wheel that there is of a package's version, as file name and SHA-256 (empty where the
    text has none).
    """
    try:
        return {
            (normal(package["name"]), str(package["version"])): [
                (_filename(wheel), str(wheel.get("hashes", {}).get("sha256", "")))
                for wheel in package.get("wheels", ())
            ]
            for package in tomllib.loads(text).get("packages", ())
        }
    except (tomllib.TOMLDecodeError, KeyError, TypeError, AttributeError) as problem:
        raise Invalid("image-pylock", detail=f"{type(problem).__name__} {problem}") from problem


def _chosen(package: Mapping[str, Any], target: Target, local: Mapping[str, str]) -> Wheel:
    name, version = normal(package["name"]), str(package["version"])
    ranked: list[tuple[int, str, Mapping[str, Any]]] = []
    for wheel in package.get("wheels", ()):
        filename = _filename(wheel)
        try:
            tags = parse_wheel_filename(filename)[3]
        except InvalidWheelFilename:
            continue
        ranks = [target.ranks[tag] for tag in tags if tag in target.ranks]
        if ranks:
            ranked.append((min(ranks), filename, wheel))
    if not ranked:
        raise Refused(
            "image-no-wheel", package=name, version=version, python=target.python,
            glibc=target.glibc, arch=target.arch,
        )  # fmt: skip
    _, filename, wheel = min(ranked, key=lambda one: one[:2])
    sha256 = wheel.get("hashes", {}).get("sha256") or local.get(filename)
    if sha256 is None:
        raise Refused("image-no-hash", file=filename)
    return Wheel(name, version, filename, str(sha256))


def _filename(wheel: Mapping[str, Any]) -> str:
    """The last part of where the wheel lies, which is all that a lock keeps of it."""
    place = wheel.get("name") or wheel.get("url") or wheel.get("path") or ""
    return unquote(urlsplit(str(place)).path.rpartition("/")[2] or str(place))
