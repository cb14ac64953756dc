"""Uploads in parts: each part is a blob of its own until the upload is complete.

complete: content of all parts to disk as one blob -> object row instead of the rows of the parts
-> the parts' content removed. The upload's own row stays for a while, so that whoever lost the
answer may complete it again.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from danlu.model.errors import Invalid, Missing
from danlu.ports.objects import MAX_PARTS, ObjectInfo, Part, Parts, Upload
from danlu.ports.objects import Uploads as Page
from danlu.stores.folder import listing
from danlu.stores.folder.reading import Chain
from danlu.stores.folder.rows import About, bury, dumped, loaded, now
from danlu.stores.folder.writing import CHUNK, Source

if TYPE_CHECKING:
    from danlu.stores.folder.blobs import Blobs, Incoming
    from danlu.stores.folder.condition import Condition
    from danlu.stores.folder.index import Connection, Index

_PARTS = """
SELECT number, size, md5, modified_at, blob FROM parts
WHERE upload = ? AND number > ? ORDER BY number LIMIT ?
"""
_UPLOADS = """
SELECT key, id, created_at, metadata, headers FROM uploads
WHERE etag IS NULL AND key >= ? ORDER BY key, id
"""


class Holder(Protocol):
    """What uploads need of their bucket, whose methods say what these are."""

    name: str

    def check_alive(self, connection: Connection) -> None: ...

    def head(self, key: bytes) -> ObjectInfo: ...

    def info(
        self, key: bytes, incoming: Incoming, about: About, etag: str | None = None
    ) -> ObjectInfo: ...

    def commit(
        self,
        info: ObjectInfo,
        incoming: Incoming,
        condition: Condition,
        *,
        also: Callable[[Connection], list[str]],
    ) -> None: ...

    def land(self, incoming: Incoming, change: Callable[[Connection], list[str]]) -> None: ...

    def take_away(self, blobs: Sequence[str]) -> None: ...


class Uploads:
    """The uploads to one bucket."""

    def __init__(self, bucket: Holder, index: Index, blobs: Blobs) -> None:
        self._bucket = bucket
        self._index = index
        self._blobs = blobs

    def create(self, key: bytes, about: About) -> Upload:
        """Begin an upload."""
        upload, at = secrets.token_hex(16), now()
        row = (upload, key, at, at, dumped(about.metadata), dumped(about.headers))

        def change(connection: Connection) -> None:
            self._bucket.check_alive(connection)
            connection.execute("INSERT INTO uploads VALUES (?, ?, ?, ?, ?, ?, NULL)", row)

        self._index.write(change)
        name = self._bucket.name
        return Upload(name, key.decode(), upload, at, dict(about.metadata), dict(about.headers))

    def put(self, key: bytes, upload: str, number: int, source: bytes | Source) -> Part:
        """Store a part."""
        if not 1 <= number <= MAX_PARTS:
            raise Invalid("upload-part-number", number=number, limit=MAX_PARTS)
        self._index.read(lambda connection: self._open(connection, key, upload))
        with self._blobs.receive(source) as incoming:
            at = now()
            row = (upload, number, incoming.blob, incoming.size, incoming.md5, at)

            def change(connection: Connection) -> list[str]:
                self._open(connection, key, upload)
                sql = "SELECT blob FROM parts WHERE upload = ? AND number = ?"
                old = [blob for (blob,) in connection.execute(sql, (upload, number)).fetchall()]
                connection.execute("INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?, ?, ?)", row)
                connection.execute("UPDATE uploads SET used_at = ? WHERE id = ?", (at, upload))
                return old

            self._bucket.land(incoming, change)
        return Part(number, incoming.size, incoming.md5.hex(), at)

    def parts(self, key: bytes, upload: str, after: int, limit: int) -> Parts:
        """One page of the parts of an upload."""

        def run(connection: Connection) -> list[listing.Row]:
            self._open(connection, key, upload)
            return connection.execute(_PARTS, (upload, after, limit + 1)).fetchall()

        rows = self._index.read(run)
        found = [Part(row[0], row[1], row[2].hex(), row[3]) for row in rows[:limit]]
        return Parts(found, found[-1].number if found and len(rows) > limit else None)

    def page(self, prefix: bytes, delimiter: bytes, after: tuple[str, str], limit: int) -> Page:
        """One page of the uploads that are open."""
        skip = max(after[0].encode(), prefix)

        def run(connection: Connection) -> Page:
            self._bucket.check_alive(connection)
            found = (self._upload(row) for row in connection.execute(_UPLOADS, (skip,)))
            return listing.uploads(found, prefix, delimiter, after, limit)

        return self._index.read(run)

    def complete(
        self, key: bytes, upload: str, wanted: Sequence[tuple[int, str]], condition: Condition
    ) -> ObjectInfo:
        """Make an object of parts."""

        def run(connection: Connection) -> tuple[About, str | None, list[listing.Row]]:
            about, done = self._known(connection, key, upload)
            return about, done, connection.execute(_PARTS, (upload, 0, -1)).fetchall()

        about, done, rows = self._index.read(run)
        if done is not None:
            return self._again(key, upload, done)
        chosen = listing.chosen(wanted, {row[0]: row for row in rows}, lambda row: row[2].hex())
        digest = hashlib.md5(b"".join(row[2] for row in chosen), usedforsecurity=False)
        etag = f"{digest.hexdigest()}-{len(chosen)}"

        def also(connection: Connection) -> list[str]:
            self._open(connection, key, upload)
            if connection.execute(_PARTS, (upload, 0, -1)).fetchall() != rows:
                raise Invalid("upload-changed", upload=upload)
            connection.execute("DELETE FROM parts WHERE upload = ?", (upload,))
            sql = "UPDATE uploads SET etag = ?, used_at = ? WHERE id = ?"
            connection.execute(sql, (etag, now(), upload))
            return [row[-1] for row in rows]

        content = Chain(self._content([row[-1] for row in chosen], upload))
        with self._blobs.receive(content, md5=False) as incoming:
            info = self._bucket.info(key, incoming, about, etag)
            self._bucket.commit(info, incoming, condition, also=also)
        return info

    def abort(self, key: bytes, upload: str) -> None:
        """Drop an upload."""

        def change(connection: Connection) -> list[str]:
            self._open(connection, key, upload)
            blobs = self.drop(connection, [upload])
            bury(connection, blobs)
            return blobs

        self._bucket.take_away(self._index.write(change))

    def sweep(self, age_s: float) -> None:
        """Drop uploads in which nothing has happened for `age_s`."""
        before = now() - int(age_s * 1000)

        def old(connection: Connection) -> list[str]:
            sql = "SELECT id FROM uploads WHERE used_at <= ?"
            return [upload for (upload,) in connection.execute(sql, (before,))]

        def change(connection: Connection) -> list[str]:
            blobs = self.drop(connection, old(connection))
            bury(connection, blobs)
            return blobs

        if self._index.read(old):
            self._bucket.take_away(self._index.write(change))

    def drop(self, connection: Connection, uploads: Sequence[str] | None = None) -> list[str]:
        """Take uploads (None = all) and their parts out of the index; the parts' content."""
        if uploads is None:
            rows = connection.execute("SELECT id FROM uploads").fetchall()
            uploads = [upload for (upload,) in rows]
        blobs: list[str] = []
        for upload in uploads:
            sql = "DELETE FROM parts WHERE upload = ? RETURNING blob"
            blobs.extend(blob for (blob,) in connection.execute(sql, (upload,)).fetchall())
            connection.execute("DELETE FROM uploads WHERE id = ?", (upload,))
        return blobs

    # ------------------------------------------------------------------ inside

    def _known(self, connection: Connection, key: bytes, upload: str) -> tuple[About, str | None]:
        """What an upload was begun with, and the etag of the object that it has become."""
        self._bucket.check_alive(connection)
        sql = "SELECT metadata, headers, etag FROM uploads WHERE id = ? AND key = ?"
        row = connection.execute(sql, (upload, key)).fetchone()
        if row is None:
            raise Missing("no-such-upload", bucket=self._bucket.name, key=key.decode(), id=upload)
        return About(loaded(row[0]), loaded(row[1])), row[2]

    def _open(self, connection: Connection, key: bytes, upload: str) -> None:
        """Raise Missing unless parts may be added."""
        _, done = self._known(connection, key, upload)
        if done is not None:
            raise Missing("no-such-upload", bucket=self._bucket.name, key=key.decode(), id=upload)

    def _upload(self, row: listing.Row) -> Upload:
        key, upload, at, metadata, headers = row
        name = self._bucket.name
        return Upload(name, key.decode(), upload, at, loaded(metadata), loaded(headers))

    def _again(self, key: bytes, upload: str, etag: str) -> ObjectInfo:
        """The object that an upload has become, if it is still there."""
        info = self._bucket.head(key)
        if info.etag != etag:
            raise Missing("no-such-upload", bucket=self._bucket.name, key=key.decode(), id=upload)
        return info

    def _content(self, blobs: Sequence[str], upload: str) -> Iterator[bytes]:
        for blob in blobs:
            try:
                with self._blobs.path(blob).open("rb") as part:
                    while chunk := part.read(CHUNK):
                        yield chunk
            except FileNotFoundError as problem:  # replaced, or aborted, in between
                raise Invalid("upload-changed", upload=upload) from problem
