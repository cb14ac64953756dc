"""The packages of an environment, read from what installers leave. Nothing of it is run."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from danlu.images.definition import normal
from danlu.model.installed import Distribution, Source

OWN = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json")
"""What installers note beside a package: not the package's own."""
INFO = ".dist-info"
LEGACY = (".egg-info", ".egg-link")
_FIELD = re.compile(r"^(Name|Version|Tag): *(.+?)\s*$", re.MULTILINE)
_LINE_END = re.compile(r"\r?\n\r?\n")


class Tree(Protocol):
    """An environment's files, by their paths from its root; empty where there is nothing."""

    def names(self, path: str) -> list[str]:
        """The names in a directory."""

    def text(self, path: str) -> str:
        """A text file."""


class Plain:
    """The files of an environment of ours."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def names(self, path: str) -> list[str]:
        """The names in a directory."""
        with suppress(OSError):
            return sorted(one.name for one in (self._root / path).iterdir())
        return []

    def text(self, path: str) -> str:
        """A text file."""
        with suppress(OSError, UnicodeDecodeError):
            return (self._root / path).read_text("utf-8")
        return ""


@dataclass(frozen=True, slots=True)
class Package:
    """What is installed under one name: the directory of its facts, and its files with their
    digests (empty = none is listed).
    """

    about: Distribution
    folder: str
    files: Mapping[str, str]


def sites(root: Path) -> list[str]:
    """Where an environment has its packages."""
    return [str(one.relative_to(root)) for one in sorted(root.glob("lib/python3*/site-packages"))]


def packages(tree: Tree, sites: Sequence[str]) -> Iterator[tuple[str, Package]]:
    """Every package, by its one spelling."""
    for site in sites:
        for name in tree.names(site):
            if name.endswith(INFO) and not name.startswith("~"):
                found = _package(tree, site, name)
                if found is not None:
                    yield found.about.name, found
            elif name.endswith(LEGACY):
                stem = name.rpartition(".")[0]
                one = Distribution(
                    normal(stem.split("-")[0]), _after(stem), source=Source.DIRECTORY
                )
                yield one.name, Package(one, f"{site}/{name}", {})


def _package(tree: Tree, site: str, folder: str) -> Package | None:
    place = f"{site}/{folder}"
    head = _LINE_END.split(tree.text(f"{place}/METADATA"), maxsplit=1)[0]
    fields = dict(reversed(_FIELD.findall(head)))
    if not {"Name", "Version"} <= fields.keys():
        return None
    tags = [value for key, value in _FIELD.findall(tree.text(f"{place}/WHEEL")) if key == "Tag"]
    source, url, sha256 = _source(tree.text(f"{place}/direct_url.json"))
    files = dict(_listed(tree.text(f"{place}/RECORD"), site))
    content = _content(files, place) if files else ""
    name = normal(fields["Name"])
    found = Distribution(name, fields["Version"], tuple(tags), source, url, sha256, content)
    return Package(found, place, files)


def _source(noted: str) -> tuple[Source, str, str]:
    """Where a package came from, as its installer noted (PEP 610)."""
    data: Any = None
    with suppress(ValueError, RecursionError):
        data = json.loads(noted)
    if not isinstance(data, dict) or not isinstance(data.get("url"), str):
        return Source.INDEX, "", ""
    url = data["url"]
    folder = data.get("dir_info")
    if isinstance(folder, dict):
        return (Source.EDITABLE if folder.get("editable") else Source.DIRECTORY), url, ""
    if "vcs_info" in data:
        return Source.VCS, url, ""
    archive = data.get("archive_info")
    hashes = archive.get("hashes") if isinstance(archive, dict) else None
    sha256 = str(hashes.get("sha256", "")) if isinstance(hashes, dict) else ""
    return Source.ARCHIVE, url, sha256


def _listed(record: str, site: str) -> Iterator[tuple[str, str]]:
    """The files that a package lists, from the environment's root, with their digests."""
    with suppress(csv.Error):
        for row in csv.reader(io.StringIO(record)):
            if row and not row[0].startswith("/"):
                code = row[1].removeprefix("sha256=") if len(row) > 1 else ""
                with suppress(ValueError):
                    raw = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))
                    yield posixpath.normpath(f"{site}/{row[0]}"), raw.hex()


def _content(files: Mapping[str, str], folder: str) -> str:
    """One digest of what a package holds below its site: programs begin with the name of the place
    where they were installed.
    """
    base = f"{folder.rpartition('/')[0]}/"
    lines = [
        f"{path}\0{sha256}\n"
        for path, sha256 in sorted(files.items())
        if sha256 and path.startswith(base) and path not in {f"{folder}/{one}" for one in OWN}
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _after(stem: str) -> str:
    parts = stem.split("-")
    return parts[1] if len(parts) > 1 else ""
