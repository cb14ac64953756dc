"""Lays an environment out as the directories of an image's layers.

They are taken from the environment that was made and proved of the same lock, file by file, so the
packages of container and environment are equal to the byte. What says when or where the environment
was made stays out: bytecode, and uv's note of when a wheel was found.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator
from pathlib import Path

from danlu.images.definition import normal
from danlu.images.lock import Lock, canonical
from danlu.images.oci import recipe
from danlu.images.seal import BYTECODE
from danlu.images.store import RECORD as OWN
from danlu.model.errors import Refused

LEFT_OUT = frozenset({OWN, "pyvenv.cfg", "uv_cache.json", ".lock", ".gitignore", "CACHEDIR.TAG"})
DRIVERS = ("libcuda.so", "libnvidia-ml.so")


def lay_out(environment: Path, lock: Lock, context: Path) -> set[str]:
    """Make the directories of the layers below `context`; which there are. Refused where a package
    brings a driver of its own.
    """
    owners = dict(_owners(environment))
    parts = set()
    for path in _files(environment):
        name = path.relative_to(environment).as_posix()
        if path.name.startswith(DRIVERS) and "stubs" not in path.parts:
            raise Refused("image-has-driver", file=name)
        layer = recipe.layer_of(owners.get(name, ""))
        parts.add(layer)
        place = context / layer / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            place.symlink_to(os.readlink(path))  # noqa: PTH115 -- as it is written
        elif _is_list(path):
            place.write_text(_listed(path), "utf-8")
            place.chmod(0o444)
        else:
            os.link(path, place)
    _entry(lock, context / "entry")
    return parts


def _is_list(path: Path) -> bool:
    """Whether a file is an installed wheel's list; packages carry lists of what they hold, too."""
    folder = path.parent
    own = folder.name.endswith(".dist-info") and folder.parent.name == "site-packages"
    return path.name == "RECORD" and own


def _entry(lock: Lock, place: Path) -> None:
    for name, (text, mode) in recipe.entry(lock).items():
        _write(place / name.lstrip("/"), text, mode)
    _write(place / recipe.PLACE.lstrip("/") / "lock.json", canonical(lock), 0o644)


def _write(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    path.chmod(mode)


def _files(environment: Path) -> Iterator[Path]:
    """All that belongs into an image. Interpreters are the base's."""
    for folder, names, files in os.walk(environment):
        names[:] = [name for name in names if name != BYTECODE]
        for name in (*names, *files):
            path = Path(folder, name)
            if path.is_dir() and not path.is_symlink():
                continue
            own = path.parent.name == "bin" and name.startswith("python")
            links = path.parent == environment and path.is_symlink()  # lib64 -> lib
            if name not in LEFT_OUT and not own and not links and not name.endswith(".pyc"):
                yield path


def _owners(environment: Path) -> Iterator[tuple[str, str]]:
    """The files that wheels list, with the names of their packages."""
    for record in environment.glob("lib/python3*/site-packages/*.dist-info/RECORD"):
        package = normal(record.parent.name.removesuffix(".dist-info").rpartition("-")[0])
        site = record.parent.parent
        for row in csv.reader(record.read_text("utf-8").splitlines()):
            if row:
                path = os.path.normpath(site / row[0])
                yield os.path.relpath(path, environment), package


def _listed(record: Path) -> str:
    """A wheel's list without what is left out; equal for equal wheels, whenever they came."""
    rows = sorted(
        row
        for row in csv.reader(record.read_text("utf-8").splitlines())
        if row and Path(row[0]).name not in LEFT_OUT and not row[0].endswith(".pyc")
    )
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
