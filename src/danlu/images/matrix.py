"""The compatibility matrix: releases, their builds, GPUs and drivers, from tables in the package.

`parse` is pure; `packaged` reads the tables beside this file once, when somebody first asks.
"""

from __future__ import annotations

import csv
import io
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TypeVar

from danlu.images.versions import numbers, series
from danlu.model.image import CHANNELS, CPU

HEAD = "matrix.toml"
TABLES = ("torch_pypi.csv", "torch_builds.csv", "gpus.csv", "drivers.csv")
UNKNOWN = "?"

T = TypeVar("T")

_WHEEL_TAG = re.compile(r"manylinux_(\d+)_(\d+)")
_OLD_TAGS = {"manylinux1": "2.5", "manylinux2010": "2.12", "manylinux2014": "2.17"}
_CAPABILITY = re.compile(r"(?:sm_?)?(\d{1,2})\.?(\d)", re.IGNORECASE)
_BRANDS = re.compile(r"\b(?:NVIDIA|TESLA|GEFORCE)\b")


class BadTable(ValueError):
    """A table that cannot be used: which, in which row, and why."""


@dataclass(frozen=True, slots=True)
class Release:
    """One release of torch, with what belongs to its wheel on PyPI."""

    torch: str
    released: str
    pythons: tuple[str, ...]
    wheel_tag: str
    glibc: str
    """The oldest C library that the wheel's tag allows."""
    cuda: str
    cuda_runtime: str
    cudnn: str
    nccl: str
    triton: str
    torchvision: str
    torchaudio: str
    wheel_mb: int
    sm: tuple[int, ...]
    source: str

    @property
    def order(self) -> tuple[int, ...]:
        """Older < newer."""
        return numbers(self.torch)


@dataclass(frozen=True, slots=True)
class Build:
    """The builds of one or several series for one CUDA version. `sm` is None where not known."""

    series: tuple[str, ...]
    arch: str
    tag: str
    sm: tuple[int, ...] | None
    ptx: tuple[int, ...]
    cudnn: str
    channel: str
    source: str

    @property
    def read_from_wheel(self) -> bool:
        """Whether the row is what wheels say, not what a document says of them."""
        return self.source.split()[0].startswith("M")


@dataclass(frozen=True, slots=True)
class GpuModel:
    """GPUs of one compute capability, and how their drivers and people name them."""

    gpu: str
    sm: int
    pattern: re.Pattern[str]
    runs_cubins: tuple[int, ...]
    pypi_torch_range: str
    any_index_range: str
    source: str
    note: str

    @property
    def by_rule(self) -> bool:
        """Whether nobody has seen it run: it follows from the rule for kernels alone."""
        return self.note.startswith("by rule only")


@dataclass(frozen=True, slots=True)
class DriverFloor:
    """The driver that a CUDA version needs to load, and the one that gives all of its features."""

    cuda: str
    min_compat: str
    toolkit_driver: str
    source: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """All tables, and the version by which locks name them."""

    version: str
    sources: Mapping[str, str]
    releases: tuple[Release, ...]
    builds: tuple[Build, ...]
    gpus: tuple[GpuModel, ...]
    drivers: Mapping[str, DriverFloor]

    def candidates(self, arch: str) -> Iterator[tuple[Release, Build]]:
        """Every build of every release: those for `arch`, others only where it has none."""
        for release in self.releases:
            found: dict[str, Build] = {}
            for build in self.builds:
                if series(release.torch) in build.series and (
                    build.tag not in found or build.arch == arch
                ):
                    found[build.tag] = build
            for build in found.values():
                yield release, build

    def capability(self, gpu: str) -> tuple[int, GpuModel | None] | None:
        """The compute capability of a GPU by its name, or as written (sm_70, 7.0); None = unknown.

        The row is that of the capability, None where only the capability itself is given.
        """
        written = _CAPABILITY.fullmatch(gpu.strip())
        if written and ("sm" in gpu.lower() or "." in gpu):
            sm = int(written[1]) * 10 + int(written[2])
            return sm, next((row for row in self.gpus if row.sm == sm), None)
        name = _model_name(gpu)
        exact = [
            row for row in self.gpus if name in map(_model_name, (row.gpu, *row.gpu.split("/")))
        ]
        rows = exact or [row for row in self.gpus if row.pattern.search(name)]
        return (rows[0].sm, rows[0]) if len(rows) == 1 else None


def _model_name(gpu: str) -> str:
    """`GEFORCE RTX4090` and `NVIDIA GeForce RTX 4090` in the one form that patterns are for."""
    plain = re.sub(r"[^A-Z0-9]+", " ", gpu.upper())
    plain = re.sub(r"\b(RTX|GTX)(\d)", r"\1 \2", _BRANDS.sub(" ", plain))
    return " ".join(plain.split())


@cache
def packaged() -> Matrix:
    """The matrix that this version of the program carries."""
    folder = resources.files("danlu.images") / "data"
    return parse({name: (folder / name).read_text("utf-8") for name in (HEAD, *TABLES)})


# ---------------------------------------------------------------------- reading


def parse(texts: Mapping[str, str]) -> Matrix:
    """The matrix from the texts of its files, by name. Raises BadTable."""
    try:
        head = tomllib.loads(texts[HEAD])
        sources = {str(letter): str(words) for letter, words in head["sources"].items()}
        version = str(head["version"])
    except (tomllib.TOMLDecodeError, KeyError, AttributeError) as problem:
        raise BadTable(f"{HEAD}: {problem}") from problem
    releases = _rows("torch_pypi.csv", texts, _release, sources)
    builds = _rows("torch_builds.csv", texts, _build, sources)
    gpus = _rows("gpus.csv", texts, _gpu, sources)
    drivers = _rows("drivers.csv", texts, _driver, sources)
    _unique("torch_pypi.csv", [release.torch for release in releases])
    _unique("torch_builds.csv", [(one, b.arch, b.tag) for b in builds for one in b.series])
    _unique("gpus.csv", [gpu.gpu for gpu in gpus])
    _unique("drivers.csv", [driver.cuda for driver in drivers])
    ordered = tuple(sorted(releases, key=lambda release: release.order))
    by_cuda = {driver.cuda: driver for driver in drivers}
    return Matrix(version, sources, ordered, tuple(builds), tuple(gpus), by_cuda)


def _rows(
    name: str,
    texts: Mapping[str, str],
    read: Callable[[Mapping[str, str]], T],
    sources: Mapping[str, str],
) -> list[T]:
    found = []
    for line, row in enumerate(csv.DictReader(io.StringIO(texts[name]), strict=True), 2):
        if None in row or None in row.values():
            raise BadTable(f"{name}:{line}: the row has more or fewer cells than the head")
        cited = re.match(r"[A-Z]+(?:\+[A-Z]+)*(?![a-z])", row.get("source") or "")
        if cited is None or not set(cited[0].split("+")) <= sources.keys():
            raise BadTable(f"{name}:{line}: source is {row.get('source')!r}, not of {HEAD}")
        try:
            found.append(read(row))
        except (KeyError, ValueError, re.error) as problem:
            raise BadTable(f"{name}:{line}: {type(problem).__name__} {problem}") from problem
    return found


def _unique(name: str, keys: Sequence[object]) -> None:
    twice = {str(key) for key in keys if keys.count(key) > 1}
    if twice:
        raise BadTable(f"{name}: twice: {sorted(twice)}")


def _release(row: Mapping[str, str]) -> Release:
    if not row["pythons"] or any(
        not re.fullmatch(r"3\d{1,2}t?", one) for one in row["pythons"].split()
    ):
        raise ValueError(f"pythons is {row['pythons']!r}")
    return Release(
        torch=_version(row["torch"]),
        released=row["released"],
        pythons=tuple(row["pythons"].split()),
        wheel_tag=row["wheel_tag"],
        glibc=_floor(row["wheel_tag"]),
        cuda=_version(row["cuda"]),
        cuda_runtime=row["cuda_runtime"],
        cudnn=_version(row["cudnn"]),
        nccl=_version(row["nccl"]),
        triton=row["triton"],
        torchvision=_version(row["torchvision"]),
        torchaudio=row["torchaudio"],
        wheel_mb=int(row["wheel_mb"]),
        sm=_capabilities(row["sm"]),
        source=row["source"],
    )


def _build(row: Mapping[str, str]) -> Build:
    if row["channel"] not in CHANNELS:
        raise ValueError(f"channel is {row['channel']!r}")
    unknown = row["sm"] == UNKNOWN
    if not row["sm"] and row["cuda_tag"] != CPU:
        raise ValueError("sm is empty; write ? where it is not known")
    return Build(
        series=_series(row["series"]),
        arch=row["arch"],
        tag=row["cuda_tag"],
        sm=None if unknown else _capabilities(row["sm"]),
        ptx=() if unknown else _capabilities(row["ptx"]),
        cudnn="" if row["cudnn"] in ("", UNKNOWN) else _version(row["cudnn"]),
        channel=row["channel"],
        source=row["source"],
    )


def _gpu(row: Mapping[str, str]) -> GpuModel:
    return GpuModel(
        gpu=row["gpu"],
        sm=int(row["sm"]),
        pattern=re.compile(rf"(?<![A-Z0-9])(?:{row['names']})(?![A-Z0-9])"),
        runs_cubins=_capabilities(row["runs_cubins"]),
        pypi_torch_range=row["pypi_torch_range"],
        any_index_range=row["any_index_range"],
        source=row["source"],
        note=row["note"],
    )


def _driver(row: Mapping[str, str]) -> DriverFloor:
    least, full = _version(row["min_compat"]), _version(row["toolkit_driver"])
    if numbers(least) > numbers(full):
        raise ValueError(f"min_compat {least} is newer than toolkit_driver {full}")
    return DriverFloor(_version(row["cuda"]), least, full, row["source"])


def _version(text: str) -> str:
    numbers(text)
    return text


def _capabilities(text: str) -> tuple[int, ...]:
    return tuple(int(one) for one in text.split())


def _series(text: str) -> tuple[str, ...]:
    """`2.9-2.10` is every series from the one to the other, which share their major number."""
    first, _, last = text.partition("-")
    major, low = first.split(".")
    high = last.split(".")[1] if last else low
    return tuple(f"{major}.{minor}" for minor in range(int(low), int(high) + 1))


def _floor(tag: str) -> str:
    if tag in _OLD_TAGS:
        return _OLD_TAGS[tag]
    found = _WHEEL_TAG.fullmatch(tag)
    if found is None:
        raise ValueError(f"wheel_tag is {tag!r}")
    return f"{found[1]}.{found[2]}"
