"""What the rows of an index say, and how it is written there."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from danlu.ports.objects import ObjectInfo

if TYPE_CHECKING:
    from danlu.stores.folder.index import Connection

PUT = """
INSERT OR REPLACE INTO objects
(key, blob, size, etag, parts, sha256, modified_at, metadata, headers, tags)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


@dataclass(frozen=True, slots=True)
class About:
    """What is kept with an object beside its content; `tags` as they stand in the index."""

    metadata: Mapping[str, str]
    headers: Mapping[str, str]
    tags: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """An object, and its row."""

    info: ObjectInfo
    blob: str
    tags: str | None

    @property
    def about(self) -> About:
        """What is kept beside the content."""
        return About(self.info.metadata, self.info.headers, self.tags)


def now() -> int:
    """UTC milliseconds."""
    return time.time_ns() // 1_000_000


def dumped(texts: Mapping[str, str]) -> str | None:
    """Texts as the index keeps them."""
    return json.dumps(texts, separators=(",", ":")) if texts else None


def loaded(texts: str | None) -> dict[str, str]:
    """Texts that the index keeps."""
    return json.loads(texts) if texts else {}


def put(connection: Connection, info: ObjectInfo, blob: str, tags: str | None) -> None:
    """Write the row of an object, in place of the one that its key had."""
    digest, _, parts = info.etag.partition("-")
    row = (
        info.key.encode(),
        blob,
        info.size,
        bytes.fromhex(digest),
        int(parts or 0),
        bytes.fromhex(info.sha256),
        info.modified_at,
        dumped(info.metadata),
        dumped(info.headers),
        tags,
    )
    connection.execute(PUT, row)


def bury(connection: Connection, blobs: Sequence[str]) -> None:
    """Note, in the same transaction, which content has lost its row."""
    if blobs:
        connection.executemany("INSERT INTO dead VALUES (?)", [(blob,) for blob in blobs])
