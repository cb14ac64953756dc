"""One bucket: its index and its blobs, and the order in which the two change.

put:     content and its name to disk -> index row -> old content removed
delete:  index row -> content removed
A crash in between leaves the old or the new version; what is left over is swept later.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, TypeVar

from danlu.model.errors import Invalid, Missing, PlatformError, Refused
from danlu.ports.crash import crash_point
from danlu.ports.objects import BucketInfo, Listing, ObjectInfo, Usage
from danlu.stores.folder import listing, rows
from danlu.stores.folder.blobs import Blobs, Incoming
from danlu.stores.folder.condition import ALWAYS, Condition
from danlu.stores.folder.failures import damaged, from_os
from danlu.stores.folder.index import Connection, Index, alive
from danlu.stores.folder.reading import Chain, Reading
from danlu.stores.folder.rows import About, Found, bury, dumped, loaded, now
from danlu.stores.folder.uploads import Uploads
from danlu.stores.folder.writing import Source
from danlu.stores.reserve import Reserve

T = TypeVar("T")
RESERVE_BYTES = 256 << 10
"""Kept back so that deleting works on a full disk: the index has to grow a little first."""
BATCH = 16
"""Keys whose deletion fits into the reserve, wherever in the index they are."""
SWEEP_EVERY_S = 3600.0
LEFTOVERS = 1000
"""Dead blobs that one sweep removes; the next one goes on."""


class Bucket:
    """A bucket as one process uses it. Methods raise Missing once it is deleted."""

    def __init__(self, name: str, index: Path, leftover_age_s: float, upload_age_s: float) -> None:
        self.name = name
        self._directory = index.parent
        self._index = Index(index)
        self._blobs = Blobs(index.parent)
        self._reserve = Reserve(index.parent / "reserve", RESERVE_BYTES)
        self._leftover_age_s = leftover_age_s
        self._upload_age_s = upload_age_s
        self._next_sweep = 0.0
        self._gone: deque[str] = deque()
        self.uploads = Uploads(self, self._index, self._blobs)

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
            connection.execute("UPDATE bucket SET deleted = 0, created_at = ?", (now(),))
            return True

        return self._index.write(change)

    def delete(self) -> None:
        """Make it not exist, if it is empty; uploads to it are dropped."""

        def change(connection: Connection) -> None:
            self.check_alive(connection)
            if connection.execute("SELECT 1 FROM objects LIMIT 1").fetchone():
                raise Refused("bucket-not-empty", bucket=self.name)
            bury(connection, self.uploads.drop(connection))
            connection.execute("UPDATE bucket SET deleted = 1, tags = NULL")

        self._index.write(change)
        self.sweep()

    # ------------------------------------------------------------------ reading

    def about(self) -> BucketInfo:
        """What is known of the bucket."""

        def run(connection: Connection) -> int:
            self.check_alive(connection)
            (created_at,) = connection.execute("SELECT created_at FROM bucket").fetchone()
            return int(created_at)

        return BucketInfo(self.name, self._index.read(run))

    def usage(self) -> Usage:
        """What it holds."""

        def run(connection: Connection) -> Usage:
            self.check_alive(connection)
            sql = "SELECT count(*), coalesce(sum(size), 0) FROM objects"
            return Usage(*connection.execute(sql).fetchone())

        return self._index.read(run)

    def head(self, key: bytes) -> ObjectInfo:
        """What is known of an object."""
        return self._find(key).info

    def tags(self, key: bytes | None) -> dict[str, str]:
        """The tags of an object, or of the bucket."""
        if key is not None:
            return loaded(self._find(key).tags)

        def run(connection: Connection) -> str | None:
            self.check_alive(connection)
            (tags,) = connection.execute("SELECT tags FROM bucket").fetchone()
            return str(tags) if tags else None

        return loaded(self._index.read(run))

    def page(self, prefix: bytes, delimiter: bytes, after: bytes, limit: int) -> Listing:
        """One page of a listing."""

        def run(connection: Connection) -> Listing:
            self.check_alive(connection)
            return listing.page(connection, self.name, prefix, delimiter, after, limit)

        return self._index.read(run)

    def open(self, key: bytes) -> tuple[ObjectInfo, int]:
        """An object, and a descriptor from which its content is read."""

        def use(found: Found, path: Path) -> tuple[ObjectInfo, int]:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            if os.fstat(descriptor).st_size != found.info.size:
                os.close(descriptor)
                raise damaged(self.name, found.info.key, _WRONG_SIZE)
            return found.info, descriptor

        return self._located(key, use)

    def file(self, key: bytes) -> Path:
        """The path of an object's content."""

        def use(found: Found, path: Path) -> Path:
            if path.lstat().st_size != found.info.size:
                raise damaged(self.name, found.info.key, _WRONG_SIZE)
            return path

        return self._located(key, use)

    # ------------------------------------------------------------------ writing

    def put(
        self,
        key: bytes,
        source: bytes | Source,
        about: About,
        condition: Condition = ALWAYS,
    ) -> ObjectInfo:
        """Store a new version of a key."""
        self._sweep_if_due()
        if condition != ALWAYS:  # the content need not come at all where this fails already
            self._index.read(lambda connection: self._replaced(connection, key, condition))
        with self._blobs.receive(source) as incoming:
            info = self.info(key, incoming, about)
            self.commit(info, incoming, condition, tags=about.tags)
        return info

    def info(
        self, key: bytes, incoming: Incoming, about: About, etag: str | None = None
    ) -> ObjectInfo:
        """What is said of content that has just come in."""
        return ObjectInfo(
            bucket=self.name,
            key=key.decode(),
            size=incoming.size,
            etag=etag or incoming.md5.hex(),
            modified_at=now(),
            metadata=dict(about.metadata),
            sha256=incoming.sha256.hex(),
            headers=dict(about.headers),
        )

    def append(self, key: bytes, source: bytes | BinaryIO, position: int, new: About) -> ObjectInfo:
        """Store the content of a key and `source` behind it as its new version."""
        try:
            found = self._find(key)
            old, descriptor = self.open(key)
        except Missing as missing:
            if missing.key != "no-such-object" or position:
                raise
            return self.put(key, source, new, Condition(absent=True))
        with Reading(old, descriptor, 0, old.size) as content:
            if position != old.size:
                raise Refused(
                    "object-position",
                    bucket=self.name,
                    key=old.key,
                    position=position,
                    size=old.size,
                )
            return self.put(key, Chain(content, source), found.about, Condition(etag=old.etag))

    def adopt(self, source: Found, path: Path, key: bytes, about: About) -> ObjectInfo:
        """Store the content of the blob file `path` under a key, as a hard link where possible."""
        self._sweep_if_due()
        info = replace(
            source.info,
            bucket=self.name,
            key=key.decode(),
            modified_at=now(),
            metadata=dict(about.metadata),
            headers=dict(about.headers),
        )
        try:
            with self._blobs.adopt(path) as incoming:
                self.commit(info, incoming, ALWAYS, tags=about.tags)
            return info
        except FileNotFoundError:
            raise
        except OSError:
            with path.open("rb") as content, self._blobs.receive(content) as incoming:
                self.commit(info, incoming, ALWAYS, tags=about.tags)
            return info

    def copy(self, key: bytes, target: Bucket, to_key: bytes, about: About | None) -> ObjectInfo:
        """Copy an object into `target`, with what belongs to it unless `about` is given."""

        def use(found: Found, path: Path) -> ObjectInfo:
            said = replace(about, tags=found.tags) if about else found.about
            return target.adopt(found, path, to_key, said)

        return self._located(key, use)

    def describe(self, key: bytes, about: About) -> ObjectInfo:
        """Replace metadata and headers of an object."""
        values = (dumped(about.metadata), dumped(about.headers), now(), key)

        def change(connection: Connection) -> None:
            self._row(connection, key)
            sql = "UPDATE objects SET metadata = ?, headers = ?, modified_at = ? WHERE key = ?"
            connection.execute(sql, values)

        self._index.write(change)
        return self.head(key)

    def set_tags(self, key: bytes | None, tags: Mapping[str, str]) -> None:
        """Replace the tags of an object, or of the bucket."""

        def change(connection: Connection) -> None:
            self.check_alive(connection)
            if key is None:
                connection.execute("UPDATE bucket SET tags = ?", (dumped(tags),))
            else:
                self._row(connection, key)
                values = (dumped(tags), key)
                connection.execute("UPDATE objects SET tags = ? WHERE key = ?", values)

        self._index.write(change)

    def rename(self, key: bytes, to_key: bytes) -> ObjectInfo:
        """Give an object another key, in one transaction."""

        def change(connection: Connection) -> list[str]:
            self._row(connection, key)
            if key == to_key:
                return []
            old = self._replaced(connection, to_key, ALWAYS)
            self._forget(connection)
            connection.execute("DELETE FROM objects WHERE key = ?", (to_key,))
            connection.execute("UPDATE objects SET key = ? WHERE key = ?", (to_key, key))
            blobs = [old] if old else []
            bury(connection, blobs)
            return blobs

        self.take_away(self._index.write(change))
        return self.head(to_key)

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
            self.check_alive(connection)
            self._forget(connection)
            blobs: list[str] = []
            for key in keys:
                sql = "DELETE FROM objects WHERE key = ? RETURNING blob"
                blobs.extend(blob for (blob,) in connection.execute(sql, (key,)).fetchall())
            bury(connection, blobs)
            return blobs

        self.take_away(self._index.write(change))

    def sweep(self) -> None:
        """Remove what crashed writers left behind. A failure is not worth telling: it stays."""
        self._next_sweep = time.monotonic() + SWEEP_EVERY_S
        self._reserve.fill()
        try:
            self._blobs.sweep(self._leftover_age_s, self._named)
            self.uploads.sweep(self._upload_age_s)
            dead = self._index.read(_dead)
            self.take_away(dead)
            if dead:
                self._index.write(self._forget)
        except (OSError, PlatformError):
            return

    # ------------------------------------------------------------------ inside

    def check_alive(self, connection: Connection) -> None:
        if not alive(connection):
            raise Missing("no-such-bucket", bucket=self.name)

    def _row(self, connection: Connection, key: bytes) -> listing.Row:
        row: listing.Row | None = connection.execute(listing.ONE, (key,)).fetchone()
        if row is None:
            self.check_alive(connection)
            raise Missing("no-such-object", bucket=self.name, key=key.decode())
        return row

    def _find(self, key: bytes) -> Found:
        row = self._index.read(lambda connection: self._row(connection, key))
        return Found(listing.info(self.name, row), row[-1], row[-2])

    def _located(self, key: bytes, use: Callable[[Found, Path], T]) -> T:
        """Use the file of an object; again where it was replaced in between."""
        found = self._find(key)
        while True:
            try:
                return use(found, self._blobs.path(found.blob))
            except FileNotFoundError as problem:
                newer = self._find(key)
                if newer.blob == found.blob:
                    raise damaged(self.name, found.info.key, "its content is gone") from problem
                found = newer
            except OSError as problem:
                raise from_os(problem, self._directory) from problem

    def _replaced(self, connection: Connection, key: bytes, condition: Condition) -> str | None:
        """The blob that a put to `key` replaces, if the bucket and the condition let it."""
        self.check_alive(connection)
        sql = "SELECT blob, etag, parts FROM objects WHERE key = ?"
        row = connection.execute(sql, (key,)).fetchone()
        condition.check(self.name, key.decode(), listing.etag_text(*row[1:]) if row else None)
        return row[0] if row else None

    def commit(
        self,
        info: ObjectInfo,
        incoming: Incoming,
        condition: Condition,
        *,
        tags: str | None = None,
        also: Callable[[Connection], list[str]] | None = None,
    ) -> None:
        """Make an object of `incoming`. `also` is done in the same transaction: it gives back
        content that has lost its row by it, or raises before it changes anything.
        """

        def change(connection: Connection) -> list[str]:
            old = self._replaced(connection, info.key.encode(), condition)
            blobs = also(connection) if also else []
            rows.put(connection, info, incoming.blob, tags)
            return [*blobs, old] if old else blobs

        self.land(incoming, change)

    def land(self, incoming: Incoming, change: Callable[[Connection], list[str]]) -> None:
        """Carry out `change`, after which a row names `incoming` and none the content that it
        gives back.
        """

        def run(connection: Connection) -> list[str]:
            blobs = change(connection)
            self._forget(connection)
            bury(connection, blobs)
            return blobs

        incoming.risk()
        crash_point("objects.before-index")
        try:
            replaced = self._index.write(run, incoming.directory)
        except (Invalid, Refused, Missing):
            incoming.discard()
            raise
        crash_point("objects.after-index")
        incoming.keep()
        self.take_away(replaced)

    def take_away(self, blobs: Sequence[str]) -> None:
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
            rows = connection.execute("SELECT blob FROM objects UNION ALL SELECT blob FROM parts")
            return {blob for (blob,) in rows if blob in wanted}

        return self._index.read(run)

    def _sweep_if_due(self) -> None:
        if time.monotonic() >= self._next_sweep:
            self.sweep()


_WRONG_SIZE = "its content has another size than the index says"


def _dead(connection: Connection) -> list[str]:
    rows = connection.execute("SELECT blob FROM dead LIMIT ?", (LEFTOVERS,))
    return [blob for (blob,) in rows]
