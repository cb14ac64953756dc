"""One bucket: its index and its blobs, and the order in which the two change.

put:     content and its name to disk -> index row -> old content removed
delete:  index row -> content removed
A crash in between leaves the old or the new version; what is left over is swept later.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, TypeVar

from danlu.model.errors import Missing, PlatformError, Refused
from danlu.ports.crash import crash_point
from danlu.ports.objects import Listing, ObjectInfo
from danlu.stores.folder import listing
from danlu.stores.folder.blobs import Blobs, Incoming
from danlu.stores.folder.failures import damaged, from_os
from danlu.stores.folder.index import Connection, Index, alive
from danlu.stores.reserve import Reserve

T = TypeVar("T")
RESERVE_BYTES = 256 << 10
"""Kept back so that deleting works on a full disk: the index has to grow a little first."""
BATCH = 16
"""Keys whose deletion fits into the reserve, wherever in the index they are."""
SWEEP_EVERY_S = 3600.0
LEFTOVERS = 1000
"""Dead blobs that one sweep removes; the next one goes on."""


@dataclass(frozen=True, slots=True)
class Condition:
    """What must hold of a key when its new version becomes visible."""

    absent: bool = False
    etag: str | None = None

    def check(self, bucket: str, key: str, etag: str | None) -> None:
        """Raise Refused (412) unless it holds of a key whose etag (None = no object) this is."""
        broken = ""
        if self.absent and etag is not None:
            broken = "if absent: it exists"
        elif self.etag is not None and etag != self.etag:
            found = f"it has {etag}" if etag is not None else "it does not exist"
            broken = f"if etag is {self.etag}: {found}"
        if broken:
            raise Refused("object-condition", http=412, bucket=bucket, key=key, condition=broken)


ALWAYS = Condition()


class Bucket:
    """A bucket as one process uses it. Methods raise Missing once it is deleted."""

    def __init__(self, name: str, index: Path, leftover_age_s: float) -> None:
        self.name = name
        self._directory = index.parent
        self._index = Index(index)
        self._blobs = Blobs(index.parent)
        self._reserve = Reserve(index.parent / "reserve", RESERVE_BYTES)
        self._leftover_age_s = leftover_age_s
        self._next_sweep = 0.0
        self._gone: deque[str] = deque()

    def close(self) -> None:
        """Close what is open and idle."""
        self._index.close()

    def alive(self) -> bool:
        """Whether it exists."""
        return self._index.read(alive)

    def revive(self) -> bool:
        """Make it exist; False if it did."""

        def change(connection: Connection) -> bool:
            if alive(connection):
                return False
            connection.execute("UPDATE bucket SET deleted = 0")
            return True

        return self._index.write(change)

    def delete(self) -> None:
        """Make it not exist, if it is empty."""

        def change(connection: Connection) -> None:
            self._check_alive(connection)
            if connection.execute("SELECT 1 FROM objects LIMIT 1").fetchone():
                raise Refused("bucket-not-empty", bucket=self.name)
            connection.execute("UPDATE bucket SET deleted = 1")

        self._index.write(change)
        self.sweep()

    # ------------------------------------------------------------------ reading

    def head(self, key: bytes) -> ObjectInfo:
        """What is known of an object."""
        return self._find(key)[0]

    def page(self, prefix: bytes, delimiter: bytes, after: bytes, limit: int) -> Listing:
        """One page of a listing."""

        def run(connection: Connection) -> Listing:
            self._check_alive(connection)
            return listing.page(connection, self.name, prefix, delimiter, after, limit)

        return self._index.read(run)

    def open(self, key: bytes) -> tuple[ObjectInfo, int]:
        """An object, and a descriptor from which its content is read."""

        def use(info: ObjectInfo, path: Path) -> tuple[ObjectInfo, int]:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            if os.fstat(descriptor).st_size != info.size:
                os.close(descriptor)
                raise damaged(self.name, info.key, _WRONG_SIZE)
            return info, descriptor

        return self._located(key, use)

    def file(self, key: bytes) -> Path:
        """The path of an object's content."""

        def use(info: ObjectInfo, path: Path) -> Path:
            if path.lstat().st_size != info.size:
                raise damaged(self.name, info.key, _WRONG_SIZE)
            return path

        return self._located(key, use)

    # ------------------------------------------------------------------ writing

    def put(
        self,
        key: bytes,
        source: bytes | BinaryIO,
        metadata: Mapping[str, str],
        condition: Condition = ALWAYS,
    ) -> ObjectInfo:
        """Store a new version of a key."""
        self._sweep_if_due()
        if condition != ALWAYS:  # the content need not come at all where this fails already
            self._index.read(lambda connection: self._replaced(connection, key, condition))
        with self._blobs.receive(source) as incoming:
            info = ObjectInfo(
                bucket=self.name,
                key=key.decode(),
                size=incoming.size,
                etag=incoming.md5.hex(),
                modified_at=time.time_ns() // 1_000_000,
                metadata=dict(metadata),
                sha256=incoming.sha256.hex(),
            )
            self._commit(info, incoming, condition)
        return info

    def adopt(self, source: ObjectInfo, path: Path, key: bytes) -> ObjectInfo:
        """Store the content of the blob file `path` under a key, as a hard link where possible."""
        self._sweep_if_due()
        info = ObjectInfo(
            bucket=self.name,
            key=key.decode(),
            size=source.size,
            etag=source.etag,
            modified_at=time.time_ns() // 1_000_000,
            metadata=source.metadata,
            sha256=source.sha256,
        )
        try:
            with self._blobs.adopt(path) as incoming:
                self._commit(info, incoming, ALWAYS)
            return info
        except FileNotFoundError:
            raise
        except OSError:
            with path.open("rb") as content:
                return self.put(key, content, source.metadata)

    def copy(self, key: bytes, target: Bucket, to_key: bytes) -> ObjectInfo:
        """Copy an object, with its metadata, into `target`."""
        return self._located(key, lambda info, path: target.adopt(info, path, to_key))

    def remove(self, keys: Sequence[bytes]) -> None:
        """Remove keys in one transaction; on a full disk in several small ones."""
        self._sweep_if_due()
        try:
            self._remove(keys)
        except Refused:
            self._reserve.release()
            try:
                for start in range(0, len(keys), BATCH):
                    self._remove(keys[start : start + BATCH])
            finally:
                self._reserve.fill()

    def _remove(self, keys: Sequence[bytes]) -> None:
        def change(connection: Connection) -> list[str]:
            self._check_alive(connection)
            self._forget(connection)
            blobs: list[str] = []
            for key in keys:
                sql = "DELETE FROM objects WHERE key = ? RETURNING blob"
                blobs.extend(blob for (blob,) in connection.execute(sql, (key,)).fetchall())
            _bury(connection, blobs)
            return blobs

        self._take_away(self._index.write(change))

    def sweep(self) -> None:
        """Remove what crashed writers left behind. A failure is not worth telling: it stays."""
        self._next_sweep = time.monotonic() + SWEEP_EVERY_S
        self._reserve.fill()
        try:
            self._blobs.sweep(self._leftover_age_s, self._named)
            dead = self._index.read(_dead)
            self._take_away(dead)
            if dead:
                self._index.write(self._forget)
        except (OSError, PlatformError):
            return

    # ------------------------------------------------------------------ inside

    def _check_alive(self, connection: Connection) -> None:
        if not alive(connection):
            raise Missing("no-such-bucket", bucket=self.name)

    def _find(self, key: bytes) -> tuple[ObjectInfo, str]:
        def run(connection: Connection) -> listing.Row:
            row: listing.Row | None = connection.execute(listing.ONE, (key,)).fetchone()
            if row is None:
                self._check_alive(connection)
                raise Missing("no-such-object", bucket=self.name, key=key.decode())
            return row

        row = self._index.read(run)
        return listing.info(self.name, row), row[-1]

    def _located(self, key: bytes, use: Callable[[ObjectInfo, Path], T]) -> T:
        """Use the file of an object; again where it was replaced in between."""
        info, blob = self._find(key)
        while True:
            try:
                return use(info, self._blobs.path(blob))
            except FileNotFoundError as problem:
                newer, other = self._find(key)
                if other == blob:
                    raise damaged(self.name, info.key, "its content is gone") from problem
                info, blob = newer, other
            except OSError as problem:
                raise from_os(problem, self._directory) from problem

    def _replaced(self, connection: Connection, key: bytes, condition: Condition) -> str | None:
        """The blob that a put to `key` replaces, if the bucket and the condition let it."""
        self._check_alive(connection)
        sql = "SELECT blob, etag FROM objects WHERE key = ?"
        row = connection.execute(sql, (key,)).fetchone()
        condition.check(self.name, key.decode(), row[1].hex() if row else None)
        return row[0] if row else None

    def _commit(self, info: ObjectInfo, incoming: Incoming, condition: Condition) -> None:
        key = info.key.encode()
        metadata = json.dumps(info.metadata, separators=(",", ":")) if info.metadata else None
        row = (
            key,
            incoming.blob,
            info.size,
            bytes.fromhex(info.etag),
            bytes.fromhex(info.sha256),
            info.modified_at,
            metadata,
        )

        def change(connection: Connection) -> list[str]:
            old = self._replaced(connection, key, condition)
            self._forget(connection)
            connection.execute("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?, ?)", row)
            blobs = [old] if old else []
            _bury(connection, blobs)
            return blobs

        incoming.risk()
        crash_point("objects.before-index")
        try:
            replaced = self._index.write(change, incoming.directory)
        except (Refused, Missing):
            incoming.discard()
            raise
        crash_point("objects.after-index")
        incoming.keep()
        self._take_away(replaced)

    def _take_away(self, blobs: Sequence[str]) -> None:
        """Remove content that no row names; the next transaction forgets it."""
        self._gone.extend(blob for blob in blobs if self._blobs.remove(blob))

    def _forget(self, connection: Connection) -> None:
        gone = [(self._gone.popleft(),) for _ in range(len(self._gone))]
        if gone:
            connection.executemany("DELETE FROM dead WHERE blob = ?", gone)

    def _named(self, blobs: Sequence[str]) -> set[str]:
        """Which of these a row names. Looks at every row: only a crash makes it necessary."""
        wanted = set(blobs)

        def run(connection: Connection) -> set[str]:
            rows = connection.execute("SELECT blob FROM objects")
            return {blob for (blob,) in rows if blob in wanted}

        return self._index.read(run)

    def _sweep_if_due(self) -> None:
        if time.monotonic() >= self._next_sweep:
            self.sweep()


_WRONG_SIZE = "its content has another size than the index says"


def _bury(connection: Connection, blobs: Sequence[str]) -> None:
    """Note, in the same transaction, which content has lost its row."""
    if blobs:
        connection.executemany("INSERT INTO dead VALUES (?)", [(blob,) for blob in blobs])


def _dead(connection: Connection) -> list[str]:
    rows = connection.execute("SELECT blob FROM dead LIMIT ?", (LEFTOVERS,))
    return [blob for (blob,) in rows]
