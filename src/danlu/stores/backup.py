"""A copy of everything that a server keeps, made while it runs.

```
DEST/danlu.sqlite        the records, as they were at one moment
DEST/secret.key          the key of the secrets in them, unless it was left out
DEST/ssh_host_key        the key by which clients of SSH know the server, as secret.key
DEST/danlu.toml          the settings, and admin-password: where they are there
DEST/objects/…           the objects, where they were wanted
DEST/manifest.json       written last: every file with its size and SHA-256, and the versions
```

The records are copied through SQLite, which waits for no writer and makes none wait. Content of
objects never changes, so a bucket's index as of one moment is enough to know what to copy.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from danlu.model.errors import PlatformError, Refused, Unavailable
from danlu.stores import disk
from danlu.stores.damage import damage

FORMAT = 1
MANIFEST = "manifest.json"
CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Parts:
    """What a data directory holds, by the names that its files have there and in a backup."""

    data: Path
    database: str = "danlu.sqlite"
    key: str = "secret.key"
    host_key: str = "ssh_host_key"
    others: tuple[str, ...] = ("danlu.toml", "admin-password")
    objects: str = "objects"


@dataclass(frozen=True, slots=True)
class File:
    """A file of a backup. `path` is relative to it, `size` in bytes."""

    path: str
    size: int
    sha256: str


@dataclass(slots=True)
class Manifest:
    """What a backup holds. `schema` is the database's revision, `created_at` UTC milliseconds."""

    danlu: str
    schema: str
    created_at: int
    key: bool
    objects: bool
    files: list[File] = field(default_factory=list)
    format: int = FORMAT

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def back_up(
    parts: Parts, dest: Path, *, key: bool, objects: bool, version: str, now: int
) -> Manifest:
    """Write a backup to the new directory `dest`; it has that name only when it is whole.

    Raises Refused where `dest` exists or lies in the data directory, where there is nothing to
    back up, and where the disk is full; Unavailable where a file cannot be read or written.
    """
    dest = dest.absolute()
    if os.path.lexists(dest):
        raise Refused("backup-exists", path=dest)
    if dest.resolve().is_relative_to(parts.data.resolve()):
        raise Refused("backup-inside", path=dest, data=parts.data)
    if not (parts.data / parts.database).is_file():
        raise Refused("backup-nothing", path=parts.data / parts.database)
    draft = dest.with_name(f".{dest.name}.{secrets.token_hex(4)}")
    with told(dest):
        dest.parent.mkdir(parents=True, exist_ok=True)
        draft.mkdir(mode=0o700)
        try:
            manifest = _filled(parts, draft, key=key, objects=objects, version=version, now=now)
            write_json(draft / MANIFEST, asdict(manifest))
            disk.sync_tree(draft)
            draft.rename(dest)
            disk.sync(dest.parent)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return manifest


def _filled(
    parts: Parts, draft: Path, *, key: bool, objects: bool, version: str, now: int
) -> Manifest:
    made = Manifest(version, "", now, key, objects)
    # The key first: it is made once and never changes, and the records that need it come later.
    for name in ((parts.key, parts.host_key) if key else ()) + parts.others:
        if (parts.data / name).is_file():
            made.files.append(copy_file(parts.data / name, draft, name))
    made.schema = _database(parts.data / parts.database, draft / parts.database)
    made.files.append(_file(draft, parts.database))
    if objects and (parts.data / parts.objects).is_dir():
        for bucket in sorted((parts.data / parts.objects).iterdir()):
            if (bucket / "index.db").is_file():
                made.files.extend(_bucket(bucket, draft, f"{parts.objects}/{bucket.name}"))
    made.key = any(file.path == parts.key for file in made.files)
    return made


def _database(source: Path, target: Path) -> str:
    """Copy the records as of now; their schema's revision."""
    copy_database(source, target)
    with contextlib.closing(sqlite3.connect(target)) as connection:
        if found := damage(connection):
            raise Refused("database-damaged", path=source, detail=found)
        query = "SELECT version_num FROM danlu_revision"
        return str(connection.execute(query).fetchone()[0])


def copy_database(source: Path, target: Path) -> None:
    """A copy of an SQLite file as of one moment, its log included; a single file."""
    with (
        contextlib.closing(sqlite3.connect(source, timeout=10)) as read,
        contextlib.closing(sqlite3.connect(target)) as written,
    ):
        target.chmod(0o600)
        read.backup(written)
        written.execute("PRAGMA journal_mode = DELETE")
    disk.sync(target)


def _bucket(bucket: Path, draft: Path, name: str) -> list[File]:
    """Copy a bucket: an index, and all the content that this very index names. Most of it is copied
    while everybody works; who changes the bucket waits only for what came since.
    """
    source, index = bucket / "index.db", draft / name / "index.db"
    index.parent.mkdir(mode=0o700, parents=True)
    copied: dict[str, File] = {}

    def copy(blob: str) -> None:
        path = f"blobs/{blob[0]}/{blob}"
        copied[blob] = copy_file(bucket / path, draft, f"{name}/{path}")

    for blob in _named(source):
        with contextlib.suppress(FileNotFoundError):  # deleted since
            copy(blob)
    with contextlib.closing(sqlite3.connect(source, timeout=10, isolation_level=None)) as lock:
        # Content goes only after the change that no longer names it is committed.
        lock.execute("BEGIN IMMEDIATE")
        copy_database(source, index)
        _drop_uploads(index)
        named = _named(index)
        for blob in named - copied.keys():
            copy(blob)
        lock.execute("ROLLBACK")
    for blob in copied.keys() - named:
        (draft / copied.pop(blob).path).unlink()
    return [_file(draft, f"{name}/index.db"), *copied.values()]


def _named(index: Path) -> set[str]:
    with contextlib.closing(sqlite3.connect(index, timeout=10)) as connection:
        return {row[0] for row in connection.execute("SELECT blob FROM objects")}


def _drop_uploads(index: Path) -> None:
    """An upload that is not complete is no object: its parts are not copied."""
    with contextlib.closing(sqlite3.connect(index, isolation_level=None)) as connection:
        if connection.execute("PRAGMA user_version").fetchone() >= (2,):
            connection.execute("DELETE FROM parts")
            connection.execute("DELETE FROM uploads")


def copy_file(source: Path, root: Path, name: str) -> File:
    """Copy a file to `name` below `root`, onto the disk; what was written. Closed to others."""
    target = root / name
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with source.open("rb") as read, os.fdopen(os.open(target, flags, 0o600), "wb") as written:
        while chunk := read.read(CHUNK):
            digest.update(chunk)
            size += written.write(chunk)
        written.flush()
        os.fsync(written.fileno())
    return File(name, size, digest.hexdigest())


def _file(root: Path, name: str) -> File:
    with (root / name).open("rb") as read:
        digest = hashlib.file_digest(read, "sha256").hexdigest()
    return File(name, (root / name).stat().st_size, digest)


def write_json(path: Path, value: object) -> None:
    """A JSON file, on the disk under its name or not there."""
    draft = path.with_name(f".{path.name}.draft")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(value, file, ensure_ascii=False, indent=1)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    disk.sync(path.parent)


@contextlib.contextmanager
def told(path: Path) -> Iterator[None]:
    """Say in our words what the system said, met while writing to `path`."""
    try:
        yield
    except PlatformError:
        raise
    except OSError as error:
        detail = error.strerror or type(error).__name__
        if error.errno in disk.FULL:
            raise disk.full(path.parent, detail) from error
        raise Unavailable("backup-failed", path=error.filename or path, detail=detail) from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL or disk.is_full(path.parent):
            raise disk.full(path.parent, str(error)) from error
        raise Unavailable("backup-failed", path=path, detail=str(error)) from error
