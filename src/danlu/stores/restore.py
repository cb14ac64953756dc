"""Puts a backup in the place of what a data directory holds.

Everything is copied beside it and verified first; what follows are renames, and the list of them
is on disk before the first one. A restore that is killed is therefore either not begun or
finished by whoever comes next: `finish`.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from danlu.model.errors import Invalid, Refused
from danlu.stores import disk
from danlu.stores.backup import (
    FORMAT,
    MANIFEST,
    File,
    Manifest,
    Parts,
    copy_file,
    told,
    write_json,
)
from danlu.stores.damage import damage

STAGED = ".restoring"
MARKER = "restore.json"
SIDE_FILES = ("-wal", "-shm", "-journal", ".last")
MANIFEST_BYTES = 256 << 20
RESTORED_AT = "restored-at"


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put in place; `aside` is where what was there before lies, if anything was."""

    manifest: Manifest
    aside: Path | None


def restore(parts: Parts, source: Path, *, known: Sequence[str], now: int, force: bool) -> Restored:
    """Restore the backup in `source`. The caller holds the data directory's lock.

    `known` are the schemas that this program can read. Raises Invalid for what is no backup,
    Refused for one that is damaged or of a newer program, and, without `force`, where the data
    directory has records already.
    """
    finish(parts.data)
    manifest = read(source)
    if manifest.schema not in known:
        raise Refused(
            "backup-newer", path=source, found=manifest.schema, version=manifest.danlu,
            known=known[-1],
        )  # fmt: skip
    occupied = (parts.data / parts.database).exists()
    if occupied and not force:
        raise Refused("restore-occupied", path=parts.data / parts.database)
    if not manifest.key and not (parts.data / parts.key).exists():
        raise Refused("restore-key", path=parts.data / parts.key)
    staged = parts.data / STAGED
    with told(parts.data / parts.database):
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(mode=0o700)
        try:
            names = _stage(parts, source, manifest, staged, now)
        except BaseException:
            shutil.rmtree(staged, ignore_errors=True)
            raise
        aside = f"before-restore-{now}"
        leaving = [f"{parts.database}{suffix}" for suffix in SIDE_FILES]
        write_json(parts.data / MARKER, {"names": names, "leaving": leaving, "aside": aside})
        finish(parts.data)
    kept = parts.data / aside
    return Restored(manifest, kept if kept.exists() else None)


def finish(data: Path) -> bool:
    """Do what is left of a restore that was decided; False if there is none."""
    try:
        order = json.loads((data / MARKER).read_text("utf-8"))
    except FileNotFoundError:
        return False
    staged = data / STAGED
    aside = data / order["aside"]
    aside.mkdir(mode=0o700, exist_ok=True)
    for name in order["leaving"]:
        # The log of the old database must never meet the new one.
        with contextlib.suppress(FileNotFoundError):
            (data / name).rename(aside / name)
    for name in order["names"]:
        if not (staged / name).exists():
            continue  # it is in its place already
        with contextlib.suppress(FileNotFoundError):
            (data / name).rename(aside / name)
        (staged / name).rename(data / name)
    disk.sync(aside)
    with contextlib.suppress(OSError):
        aside.rmdir()  # where nothing was in the way
    disk.sync(data)
    (data / MARKER).unlink()
    disk.sync(data)
    shutil.rmtree(staged, ignore_errors=True)
    return True


def read(source: Path) -> Manifest:
    """The manifest of a backup; Invalid where there is none that can be read."""
    path = source / MANIFEST
    try:
        with path.open(encoding="utf-8") as file:
            data = json.loads(file.read(MANIFEST_BYTES))
        if data["format"] != FORMAT:
            raise Refused(
                "backup-format",
                path=source,
                found=data["format"],
                version=data["danlu"],
                known=FORMAT,
            )
        return _manifest(data)
    except (OSError, ValueError, KeyError, TypeError) as error:
        detail = f"{type(error).__name__}: {error}"
        raise Invalid("backup-unreadable", path=path, detail=detail) from error


def _manifest(data: dict[str, Any]) -> Manifest:
    files = [File(str(one["path"]), int(one["size"]), str(one["sha256"])) for one in data["files"]]
    for file in files:
        parts = PurePosixPath(file.path).parts
        if not parts or file.path.startswith("/") or ".." in parts or "\0" in file.path:
            raise ValueError(f"a path that leads out of the backup: {file.path!r}")
    return Manifest(
        str(data["danlu"]), str(data["schema"]), int(data["created_at"]), bool(data["key"]),
        bool(data["objects"]), files,
    )  # fmt: skip


def _stage(parts: Parts, source: Path, manifest: Manifest, staged: Path, now: int) -> list[str]:
    """Copy every file that the manifest lists, and compare; the names at the top that are ready.
    Settings and a host key that the data directory has already stay: they are this machine's.
    """
    own = (*parts.others, parts.host_key)
    kept = {name for name in own if (parts.data / name).exists()}
    for file in manifest.files:
        if file.path in kept:
            continue
        try:
            found = copy_file(source / file.path, staged, file.path)
        except FileNotFoundError as error:
            raise Refused("backup-damaged", path=source / file.path, detail="missing") from error
        if found != file:
            detail = f"{found.size} bytes, SHA-256 {found.sha256[:16]}…; {file.size} bytes, SHA-256"
            raise Refused(
                "backup-damaged",
                path=source / file.path,
                detail=f"{detail} {file.sha256[:16]}… expected",
            )
    if not (staged / parts.database).exists():
        raise Invalid("backup-unreadable", path=source / MANIFEST, detail=parts.database)
    _mark(staged / parts.database, source, now)
    _buckets_complete(staged / parts.objects)
    # Before the marker says that they are there.
    disk.sync_tree(staged)
    return sorted(entry.name for entry in staged.iterdir())


def _mark(database: Path, source: Path, now: int) -> None:
    """Check the records, and note in them when they were restored."""
    with contextlib.closing(sqlite3.connect(database, isolation_level=None)) as connection:
        if found := damage(connection):
            raise Refused("backup-damaged", path=source / database.name, detail=found)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(
            "INSERT INTO settings (key, value) VALUES (?, ?)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (RESTORED_AT, str(now)),
        )
    disk.sync(database)


def _buckets_complete(objects: Path) -> None:
    """Buckets need their directories, which a backup has only where there is a file in them."""
    if not objects.is_dir():
        return
    for bucket in objects.iterdir():
        (bucket / "incoming").mkdir(mode=0o700, exist_ok=True)
        for digit in "0123456789abcdef":
            (bucket / "blobs" / digit).mkdir(mode=0o700, parents=True, exist_ok=True)
