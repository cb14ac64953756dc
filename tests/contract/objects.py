"""The object stores that the contract suite runs against, and what its tests share."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import HealthCheck, settings

from danlu.ports.objects import Listing, ObjectStore
from danlu.stores.folder import FolderStore

STORES: dict[str, Callable[[Path], ObjectStore]] = {
    "folder": lambda path: FolderStore(path / "objects"),
}
"""A new store joins the suite by a line here."""

ODD_KEYS = [
    "a",
    "a/",
    "a/b",
    "a//b",
    "/",
    "//",
    "/a",
    ".",
    "..",
    "../a",
    "../../../../etc/passwd",
    "a/../b",
    "a/./b",
    "a\0b",
    "\0",
    "a\nb",
    "a\r",
    "a\\b",
    "-rf",
    " ",
    "a b ",
    "a?b#c%2F",
    "index.db",
    "incoming/x",
    "e\u0301",
    "\u00e9",
    "丹炉/模型.pt",
    "🔥",
    "\uffff",
    "\U0010ffff",
    "'; DROP TABLE objects; --",
    "x" * 1024,
    "é" * 512,
]


stored = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

_buckets = itertools.count()


@contextmanager
def in_memory() -> Iterator[Path]:
    """A directory where an fsync costs nothing, if there is one. The promises are the same."""
    memory = Path("/dev/shm")
    base = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="danlu-objects-", dir=base) as path:
        yield Path(path)


@contextmanager
def opened(name: str) -> Iterator[ObjectStore]:
    """A store for all tests of a module: each takes a bucket of its own."""
    with in_memory() as path:
        made = STORES[name](path)
        yield made
        if isinstance(made, FolderStore):
            made.close()


def new_bucket(store: ObjectStore) -> str:
    name = f"bucket-{next(_buckets)}"
    assert store.create_bucket(name)
    return name


def content(store: ObjectStore, bucket: str, key: str) -> bytes:
    return b"".join(store.read(bucket, key))


def names(listing: Listing) -> list[str]:
    return [item.key for item in listing.objects]
