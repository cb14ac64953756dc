"""What the files of an environment are, and whether they still are that.

Every wheel lists its files with their digests (RECORD). A seal holds those of a whole environment,
with size, time and inode of each file as they were when its digest was last read. Environments are
hard links to one cache, so a file that was changed anywhere is changed everywhere. An environment
is only given away when each of its files has been read, or is the very file that was read before
and has not been written since.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from danlu.images.store import RECORD as OWN
from danlu.images.uv import Check, nothing
from danlu.model.image import Damage

BYTECODE = "__pycache__"
UNLISTED = frozenset({OWN, "pyvenv.cfg", "uv_cache.json", ".lock", ".gitignore", "CACHEDIR.TAG"})
"""Names of files that say where and when something was made."""
AT_ONCE = 64


class File(NamedTuple):
    """One file as it was when it was read. There are tens of thousands."""

    sha256: str
    size: int
    mtime_ns: int
    inode: int
    mode: int


Seal = Mapping[str, File]
NONE: Seal = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found in an environment: its seal, what of it is damaged, what may be written to
    (absolute paths), and whether all is as it was the last time.
    """

    seal: Seal
    damaged: list[Damage]
    writable: list[str]
    folders: list[str]
    known: bool


def make(root: Path, earlier: Seal, check: Check = nothing, trusted: Seal = NONE) -> Looked:
    """Look at an environment, and hold it against what its wheels list, or against `earlier` where
    it was sealed before: the lists themselves may have been changed with their files. Scripts are
    the installer's, who may be another one now. Bytecode is nobody's word but the seal's. `trusted`
    is the seal of another environment: what is the very file that was read for that is not read
    again.
    """
    found, folders, writable = _stats(root)
    listed: dict[str, tuple[str, str]] = {}
    if earlier:
        wanted = {path: one.sha256 for path, one in earlier.items() if path.startswith("lib/")}
    else:
        listed = dict(_listed(root))
        wanted = {path: sha256 for path, (sha256, _) in listed.items()}
    before = earlier or trusted
    fresh = {path: info for path, info in found.items() if not _same(before.get(path), info)}
    read = {path: one for path, one in before.items() if path in found and path not in fresh}
    read |= _read(root, fresh, check)
    bad = [path for path in wanted if path not in read or read[path].sha256 != wanted[path]]
    if bad and not listed:
        listed = dict(_listed(root))
    damaged = [
        Damage(
            path, package_of(path, listed), wanted[path], read[path].sha256 if path in read else ""
        )
        for path in sorted(bad)
    ]
    known = bool(earlier) and all(
        path in earlier and read[path].sha256 == earlier[path].sha256 for path in fresh
    )
    return Looked(read, damaged, writable, folders, known=known)


def check_all(root: Path, seal: Seal, check: Check = nothing) -> list[Damage]:
    """What of an environment is not as its seal has it, every byte read. A file that was added is
    named as well.
    """
    found, _, _ = _stats(root)
    read = _read(root, found, check)
    listed = dict(_listed(root))
    changed = [path for path in seal if path not in read or read[path].sha256 != seal[path].sha256]
    added = [path for path in read if path not in seal]
    return [
        Damage(path, package_of(path, listed), seal[path].sha256 if path in seal else "",
               read[path].sha256 if path in read else "")
        for path in sorted([*changed, *added])
    ]  # fmt: skip


def digest(seal: Seal) -> str:
    """One digest of path, mode and content of every file; equal for equal packages, wherever and
    whenever they were installed. Left out are bytecode, which depends on the host's Python, and the
    lists of files, which hold the digest of when a wheel was found.
    """
    lines = [
        f"{path}\0{file.mode & 0o111 and 'x'}\0{file.sha256}\n"
        for path, file in sorted(seal.items())
        if not is_bytecode(path) and not path.endswith(".dist-info/RECORD")
    ]
    return f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}"


def package_of(path: str, listed: Mapping[str, tuple[str, str]]) -> str:
    """The package that has a file; for a module's bytecode the module's."""
    if path in listed:
        return listed[path][1]
    folder, _, name = path.rpartition(f"/{BYTECODE}/")
    module = f"{folder}/{name.split('.')[0]}.py"
    return listed[module][1] if module in listed else ""


def is_bytecode(path: str) -> bool:
    """Whether a file is a compiled module."""
    return f"/{BYTECODE}/" in path


def load(path: Path) -> Seal:
    """A seal from its file; an empty one where there is none that can be read."""
    try:
        data = json.loads(path.read_bytes())
        return {name: File(*values) for name, values in data.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def save(path: Path, seal: Seal) -> None:
    """Write a seal to a file, whole or not at all."""
    data = {
        name: [one.sha256, one.size, one.mtime_ns, one.inode, one.mode]
        for name, one in sorted(seal.items())
    }
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    fresh.write_text(json.dumps(data, separators=(",", ":")), "utf-8")
    fresh.rename(path)


def _listed(root: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    """Every file that a wheel lists with its digest: path from the root, digest, package."""
    for record in root.glob("lib/python3*/site-packages/*.dist-info/RECORD"):
        base = record.parent.parent
        package = record.parent.name.rpartition(".dist-info")[0].partition("-")[0]
        with record.open(encoding="utf-8", newline="") as file:
            for row in csv.reader(file):
                if len(row) < 2 or not row[1].startswith("sha256=") or _unlisted(row[0]):
                    continue
                code = row[1].removeprefix("sha256=")
                raw = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))
                path = os.path.relpath(os.path.normpath(base / row[0]), root)
                yield path, (raw.hex(), package)


def _unlisted(path: str) -> bool:
    return path.rpartition("/")[2] in UNLISTED


def _stats(root: Path) -> tuple[dict[str, os.stat_result], list[str], list[str]]:
    """Every regular file that matters below an environment, by its path from there; every
    directory, and the files that may be written to.
    """
    start = len(str(root)) + 1
    folders = [str(root)]
    found: dict[str, os.stat_result] = {}
    writable: list[str] = []
    for folder in folders:  # it grows
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file(follow_symlinks=False):
                    info = entry.stat(follow_symlinks=False)
                    if info.st_mode & 0o222:
                        writable.append(entry.path)
                    if entry.name not in UNLISTED:
                        found[entry.path[start:]] = info
    return found, folders, writable


def _same(before: File | None, now: os.stat_result) -> bool:
    """Whether a file is the very one that was read before, and was not written since."""
    return before is not None and (before.inode, before.mtime_ns, before.size) == (
        now.st_ino, now.st_mtime_ns, now.st_size,
    )  # fmt: skip


def is_same(before: File, path: Path) -> bool:
    """Whether a file is there, and is the very one that was read before."""
    try:
        return _same(before, path.lstat())
    except OSError:
        return False


def _read(root: Path, files: Mapping[str, os.stat_result], check: Check) -> dict[str, File]:
    """The digests of files, as many at a time as there are processors."""
    names = list(files)
    packs = [names[at : at + AT_ONCE] for at in range(0, len(names), AT_ONCE)]

    def pack(paths: list[str]) -> list[tuple[str, File]]:
        check()
        return [(path, _file(f"{root}/{path}", files[path])) for path in paths]

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        return {path: one for done in pool.map(pack, packs) for path, one in done}


def _file(path: str, info: os.stat_result) -> File:
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 -- tens of thousands of them
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    mode = stat.S_IMODE(info.st_mode)
    return File(sha256, info.st_size, info.st_mtime_ns, info.st_ino, mode)
