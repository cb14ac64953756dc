"""New releases of torch for the matrix, read from an index: rows to look at, never taken over."""

from __future__ import annotations

import csv
import difflib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from danlu.images.definition import normal
from danlu.images.matrix import UNKNOWN, Matrix
from danlu.images.remote import Offered, RemoteWheel, offered
from danlu.images.versions import cuda_tag, numbers, series
from danlu.model.errors import Unavailable

PYPI_INDEX = "https://pypi.org/simple"
RELEASES, BUILDS = "torch_pypi.csv", "torch_builds.csv"
MOST_NEW = 20
ARCH = "x86_64"

_FLAGS = re.compile(rb"(?:sm|compute)_\d{2,3}[a-z]?(?: (?:sm|compute)_\d{2,3}[a-z]?)+")
_CUDA = re.compile(r"^cuda\s*(?::[^=]+)?=\s*['\"]([\d.]+)['\"]", re.MULTILINE)
_LIBRARY = "torch/lib/libtorch_python.so"


@dataclass(frozen=True, slots=True)
class Refreshed:
    """New rows for the two tables, and how many bytes of how many the wheels were read."""

    releases: tuple[Mapping[str, str], ...]
    builds: tuple[Mapping[str, str], ...]
    fetched: int
    size: int

    def diff(self) -> str:
        """What the tables would become, as a unified diff; empty where there is nothing new."""
        return "".join(
            _diff(name, rows) for name, rows in ((RELEASES, self.releases), (BUILDS, self.builds))
        )


def refresh(matrix: Matrix, index: str = PYPI_INDEX) -> Refreshed:
    """Read the releases that the matrix does not know. Unavailable if the index cannot be read."""
    known = {release.torch for release in matrix.releases}
    by_version: dict[str, list[Offered]] = {}
    for one in offered(index, "torch"):
        found = _version(one)
        if found is not None and str(found) not in known:
            by_version.setdefault(str(found), []).append(one)
    oldest = matrix.releases[0].order
    new = sorted((one for one in by_version if numbers(one) > oldest), key=numbers)[-MOST_NEW:]
    pairs = _pairs(index, new) if new else {}
    releases, builds = [], []
    fetched = size = 0
    series_known = {(one, build.tag) for build in matrix.builds for one in build.series
                    if build.arch == ARCH}  # fmt: skip
    for version in new:
        files = sorted(by_version[version], key=lambda one: one.filename)
        wheel = RemoteWheel(files[0].url)
        row = _release(version, files, wheel, pairs.get(version, {}))
        releases.append(row)
        key = (series(version), cuda_tag(row["cuda"]))
        if key not in series_known:
            series_known.add(key)
            builds.append(_build(key, row, wheel))
        fetched, size = fetched + wheel.fetched, size + wheel.size
    return Refreshed(tuple(releases), tuple(builds), fetched, size)


def _version(one: Offered) -> Version | None:
    """The release of a wheel for Linux on our architecture; None for all others."""
    try:
        _, version, _, tags = parse_wheel_filename(one.filename)
    except (InvalidWheelFilename, InvalidVersion):
        return None
    fits = any(tag.platform.startswith("manylinux") and tag.platform.endswith(ARCH) for tag in tags)
    return version if fits and not version.is_prerelease and version.local is None else None


def _release(
    version: str, files: Sequence[Offered], wheel: RemoteWheel, pairs: Mapping[str, str]
) -> dict[str, str]:
    needs = dict(_needs(wheel.text(".dist-info/METADATA")))
    cuda = _CUDA.search(wheel.text("torch/version.py"))
    if cuda is None:
        raise Unavailable(
            "index-unreadable", url=files[0].url, detail="torch/version.py names no CUDA"
        )
    tags = [parse_wheel_filename(one.filename)[3] for one in files]
    pythons = {next(iter(tag)).abi.removeprefix("cp") for tag in tags}
    platforms = sorted(tag.platform for tag in tags[0])
    return {
        "torch": version,
        "released": min(one.uploaded for one in files),
        "pythons": " ".join(sorted(pythons, key=lambda one: (int(one[1:].rstrip("t")), one))),
        "wheel_tag": platforms[0].removesuffix(f"_{ARCH}"),
        "cuda": cuda[1],
        "cuda_runtime": _runtime(needs),
        "cudnn": _needed(needs, "nvidia-cudnn"),
        "nccl": _needed(needs, "nvidia-nccl"),
        "triton": _needed(needs, "triton"),
        "torchvision": pairs.get("torchvision", UNKNOWN),
        "torchaudio": pairs.get("torchaudio", UNKNOWN),
        "wheel_mb": str(round(wheel.size / 1e6)),
        "sm": " ".join(_flags(wheel, "sm")),
        "source": "M",
    }


def _build(key: tuple[str, str], row: Mapping[str, str], wheel: RemoteWheel) -> dict[str, str]:
    return {
        "series": key[0],
        "arch": ARCH,
        "cuda_tag": key[1],
        "sm": row["sm"],
        "ptx": " ".join(_flags(wheel, "compute")),
        "cudnn": row["cudnn"],
        "channel": "pypi",
        "source": "M",
    }


def _flags(wheel: RemoteWheel, kind: str) -> list[str]:
    """The capabilities that the library was built for: binary kernels (sm) or PTX (compute)."""
    found = wheel.find(_LIBRARY, _FLAGS).decode()
    if not found:
        return [UNKNOWN] if kind == "sm" else []
    return re.findall(rf"\b{kind}_(\d+)", found)


def _needs(metadata: str) -> Iterator[tuple[str, str]]:
    """What a wheel requires, extras left out: names with their versions, `~` before loose ones."""
    head = metadata.partition("\n\n")[0]
    for line in re.findall(r"^Requires-Dist: (.+)$", head, re.MULTILINE):
        try:
            wanted = Requirement(line)
        except InvalidRequirement:
            continue
        if "extra" in str(wanted.marker or ""):
            continue
        for one in wanted.specifier:
            if one.operator in ("==", "~="):
                loose = "~" if one.operator == "~=" else ""
                yield normal(wanted.name), f"{loose}{one.version}"


def _needed(needs: Mapping[str, str], name: str) -> str:
    """Its version under its own name, or under that name with a CUDA version behind it."""
    for one in (name, f"{name}-cu13", f"{name}-cu12", f"{name}-cu11"):
        if one in needs:
            return needs[one]
    return UNKNOWN


def _runtime(needs: Mapping[str, str]) -> str:
    toolkit = needs.get("cuda-toolkit")
    return f"toolkit {toolkit}" if toolkit else _needed(needs, "nvidia-cuda-runtime")


def _pairs(index: str, versions: Sequence[str]) -> dict[str, dict[str, str]]:
    """The companions whose own metadata names exactly one of these releases of torch."""
    found: dict[str, dict[str, str]] = {}
    for project in ("torchvision", "torchaudio"):
        newest: dict[Version, Offered] = {}
        for one in sorted(offered(index, project), key=lambda one: one.filename):
            version = _version(one)
            if version is not None:
                newest.setdefault(version, one)
        for version in sorted(newest, reverse=True)[:MOST_NEW]:
            metadata = RemoteWheel(newest[version].url).text(".dist-info/METADATA")
            torch = dict(_needs(metadata)).get("torch", "")
            if torch in versions:
                found.setdefault(torch, {}).setdefault(project, str(version))
    return found


def _diff(name: str, rows: Sequence[Mapping[str, str]]) -> str:
    old = (resources.files("danlu.images") / "data" / name).read_text("utf-8")
    added = io.StringIO()
    csv.DictWriter(added, list(rows[0]) if rows else [], lineterminator="\n").writerows(rows)
    lines = old.splitlines(keepends=True)
    new = [*lines, *added.getvalue().splitlines(keepends=True)]
    return "".join(difflib.unified_diff(lines, new, name, name))
