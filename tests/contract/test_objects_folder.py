"""What the folder store promises beyond the port: places, crashes, a full disk."""

from __future__ import annotations

import errno
import hashlib
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from danlu.model.errors import EngineError, PlatformError, Refused
from danlu.stores.folder import FolderStore
from danlu.stores.folder.blobs import Blobs
from danlu.stores.folder.index import Index
from tests.contract.objects import ODD_KEYS, content, in_memory


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FolderStore]:
    made = FolderStore(tmp_path / "objects", leftover_age_s=0)
    made.create_bucket("danlu")
    yield made
    made.close()


def blob_files(store_dir: Path, bucket: str = "danlu") -> set[Path]:
    return {path for path in (store_dir / bucket / "blobs").rglob("*") if path.is_file()}


def incoming(store_dir: Path, bucket: str = "danlu") -> list[str]:
    return [path.name for path in (store_dir / bucket / "incoming").iterdir()]


# ---------------------------------------------------------------------- places


def test_no_key_leaves_the_root_or_becomes_a_name(store: FolderStore, tmp_path: Path) -> None:
    def outside() -> set[Path]:
        root = tmp_path / "objects"
        return {path for path in tmp_path.rglob("*") if root not in path.parents}

    before = outside()
    for key in ODD_KEYS:
        store.put("danlu", key, b"x", metadata={key[:50]: key[:50]})
        store.copy("danlu", key, "danlu", f"{key[:500]}+")
    assert outside() == before
    for path in blob_files(tmp_path / "objects"):
        assert len(path.name) == 32
        assert set(path.name) <= set("0123456789abcdef")
    assert {path.name for path in (tmp_path / "objects" / "danlu").iterdir()} <= {
        "blobs",
        "incoming",
        "reserve",
        "index.db",
        "index.db-wal",
        "index.db-shm",
    }


def test_nobody_else_may_look(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        store = FolderStore(tmp_path / "objects")
        store.create_bucket("danlu")
        store.put("danlu", "a", b"x")
        store.copy("danlu", "a", "danlu", "b")
    finally:
        os.umask(mask)
    for path in [tmp_path / "objects", *(tmp_path / "objects").rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path
    store.close()


def test_local_file_has_the_content(store: FolderStore) -> None:
    store.put("danlu", "../a", b"content")
    path = Path(store.local_file("danlu", "../a"))
    assert path.read_bytes() == b"content"
    store.delete("danlu", ["../a"])
    assert not path.exists()


def test_copy_shares_the_content(store: FolderStore) -> None:
    store.create_bucket("other")
    store.put("danlu", "a", b"content")
    store.copy("danlu", "a", "other", "b")
    assert Path(store.local_file("danlu", "a")).samefile(store.local_file("other", "b"))
    store.put("danlu", "a", b"changed")
    assert content(store, "other", "b") == b"content"


@pytest.mark.parametrize("number", [errno.EPERM, errno.EMLINK, errno.EXDEV])
def test_copy_without_hard_links(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    store.put("danlu", "a", b"content", metadata={"m": "1"})
    real = os.link

    def link(source: Path, target: Path) -> None:
        if number == errno.EPERM or Path(source).parent.parent.name == "blobs":
            raise OSError(number, os.strerror(number))
        real(source, target)

    monkeypatch.setattr(os, "link", link)
    copied = store.copy("danlu", "a", "danlu", "b")
    assert content(store, "danlu", "b") == b"content"
    assert copied.metadata == {"m": "1"}
    store.put("danlu", "a", b"changed")
    assert content(store, "danlu", "b") == b"content"


def test_nothing_is_left_after_overwrite_and_delete(store: FolderStore, tmp_path: Path) -> None:
    for turn in range(5):
        store.put("danlu", "a", b"%d" % turn)
        store.copy("danlu", "a", "danlu", "b")
    assert len(blob_files(tmp_path / "objects")) == 2
    store.delete("danlu", ["a", "b"])
    assert not blob_files(tmp_path / "objects")
    assert not incoming(tmp_path / "objects")
    store.put("danlu", "c", b"")
    rows = _index(tmp_path).execute("SELECT count(*) FROM dead").fetchone()
    assert rows == (0,)


def _index(tmp_path: Path) -> sqlite3.Connection:
    return sqlite3.connect(tmp_path / "objects" / "danlu" / "index.db")


# ---------------------------------------------------------------------- damage


def test_a_blob_that_is_gone_or_cut_is_damage(store: FolderStore) -> None:
    store.put("danlu", "gone", b"content")
    Path(store.local_file("danlu", "gone")).unlink()
    store.put("danlu", "cut", b"content")
    cut = Path(store.local_file("danlu", "cut"))
    cut.write_bytes(b"con")
    for key in ("gone", "cut"):
        for use in (store.read, store.local_file):
            with pytest.raises(EngineError) as damage:
                use("danlu", key)
            assert damage.value.key == "object-damaged"
            assert key in damage.value.message()
        store.head("danlu", key)
    store.put("danlu", "gone", b"healed")
    assert content(store, "danlu", "gone") == b"healed"


def test_a_blob_cut_while_it_is_read_is_damage(store: FolderStore) -> None:
    store.put("danlu", "a", bytes(1 << 20))
    reading = store.read("danlu", "a")
    next(reading)
    os.truncate(store.local_file("danlu", "a"), 300_000)
    with pytest.raises(EngineError):
        list(reading)


def test_a_damaged_index_says_so(store: FolderStore, tmp_path: Path) -> None:
    store.put("danlu", "a", b"x")
    store.close()
    index = tmp_path / "objects" / "danlu" / "index.db"
    index.write_bytes(b"not a database" * 1000)
    with pytest.raises(EngineError) as damage:
        store.head("danlu", "a")
    assert damage.value.key == "database-damaged"
    assert str(index) in damage.value.message()


def test_an_index_of_a_newer_version_is_not_touched(store: FolderStore, tmp_path: Path) -> None:
    store.close()
    with _index(tmp_path) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(EngineError) as newer:
        store.put("danlu", "a", b"x")
    assert newer.value.key == "objects-newer"


# ---------------------------------------------------------------------- crashes


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_killed_put_leaves_the_old_or_the_new_version() -> None:
    """100 children are killed at random moments while they overwrite, copy and delete."""
    with in_memory() as path:
        store = FolderStore(path / "objects", leftover_age_s=0)
        store.create_bucket("danlu")
        _kill_writers(store, path / "objects")
        store.close()


def _kill_writers(store: FolderStore, root: Path) -> None:
    dice = random.Random(int(os.environ.get("OBJECTS_SEED", "1")))
    versions = [bytes([number]) * dice.randrange(1, 400_000) for number in range(1, 6)]
    for version in versions:
        store.put("danlu", f"of/{version[0]}", version)
    seen = set()
    for turn in range(100):
        ready, begun = os.pipe()
        child = os.fork()
        if child == 0:
            _change_for_ever(root, versions, turn, begun)
        os.close(begun)
        assert os.read(ready, 1) == b"1"
        os.close(ready)
        time.sleep(dice.random() * 0.02)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for item in store.walk("danlu"):
            data = content(store, "danlu", item.key)
            assert data in versions
            assert hashlib.sha256(data).hexdigest() == item.sha256
            seen.add(item.key)
    assert seen >= {"a", "b"}
    assert incoming(root), "no child was killed in the middle of anything"
    store.sweep()
    assert not incoming(root)
    named = {Path(store.local_file("danlu", item.key)) for item in store.walk("danlu")}
    assert blob_files(root) == named
    assert _index(root.parent).execute("PRAGMA integrity_check").fetchone() == ("ok",)


def _change_for_ever(root: Path, versions: list[bytes], seed: int, begun: int) -> None:
    """The child. Never returns."""
    try:
        dice = random.Random(seed)
        store = FolderStore(root, leftover_age_s=3600)
        store.put("danlu", "ab"[seed % 2], dice.choice(versions))
        os.write(begun, b"1")
        while True:
            store.put("danlu", dice.choice("ab"), dice.choice(versions))
            store.copy("danlu", f"of/{dice.randrange(1, 6)}", "danlu", dice.choice("ab"))
            if dice.random() < 0.3:
                store.delete("danlu", ["a"])
    except PlatformError as problem:
        os.write(2, f"{problem!r}: {problem}\n".encode())
    finally:
        os._exit(1)


def test_the_sweep_leaves_what_is_young_or_being_written(tmp_path: Path) -> None:
    root = tmp_path / "objects"
    patient, hasty = FolderStore(root), FolderStore(root, leftover_age_s=0)
    patient.create_bucket("danlu")
    young = root / "danlu" / "incoming" / ("0" * 32)
    young.write_bytes(b"left by a crash")
    orphan = root / "danlu" / "blobs" / "0" / ("0" * 32)
    os.link(young, orphan)
    patient.sweep()
    assert young.exists()
    assert orphan.exists()

    class Sweeps:
        """A source in the middle of which everything is swept, however young."""

        parts = (b"one", b"two", b"")

        def read(self, _size: int = -1, /) -> bytes:
            hasty.sweep()
            part, *self.parts = self.parts  # type: ignore[assignment]  # a tuple becomes a list
            return part

    patient.put("danlu", "a", Sweeps())  # type: ignore[arg-type]  # `read` is all that is used
    assert content(patient, "danlu", "a") == b"onetwo"
    assert not young.exists()
    assert not orphan.exists()
    patient.close()
    hasty.close()


def test_a_leftover_that_a_row_names_is_kept(store: FolderStore, tmp_path: Path) -> None:
    """The crash came after the commit: the marker goes, the object stays."""
    store.put("danlu", "a", b"content")
    blob = Path(store.local_file("danlu", "a"))
    marker = tmp_path / "objects" / "danlu" / "incoming" / blob.name
    os.link(blob, marker)
    store.sweep()
    assert not marker.exists()
    assert content(store, "danlu", "a") == b"content"


def test_old_content_whose_removal_a_crash_prevented_is_swept(
    store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("danlu", "a", b"old")
    with monkeypatch.context() as crash:
        crash.setattr(Blobs, "remove", lambda *_: False)
        store.put("danlu", "a", b"new")
    assert len(blob_files(tmp_path / "objects")) == 2
    store.sweep()
    assert len(blob_files(tmp_path / "objects")) == 1
    assert content(store, "danlu", "a") == b"new"


@pytest.mark.parametrize("committed", [True, False])
def test_an_interrupt_around_the_commit_leaves_one_whole_version(
    store: FolderStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, committed: bool
) -> None:
    store.put("danlu", "a", b"old")
    real = Index.write

    def write(self: Index, change: Callable[[object], object], directory: Path) -> object:
        if committed:
            real(self, change, directory)
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupt:
        interrupt.setattr(Index, "write", write)
        with pytest.raises(KeyboardInterrupt):
            store.put("danlu", "a", b"new")
    assert content(store, "danlu", "a") == (b"new" if committed else b"old")
    store.sweep()
    assert content(store, "danlu", "a") == (b"new" if committed else b"old")
    assert not incoming(tmp_path / "objects")
    assert len(blob_files(tmp_path / "objects")) == 1


def test_an_interrupted_group_fails_and_the_next_one_works(
    store: FolderStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever leads a group is interrupted: nobody of it may wait for ever."""
    with monkeypatch.context() as interrupt:
        interrupt.setattr(Index, "_commit", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.put("danlu", "a", b"x")
    store.put("danlu", "a", b"y")
    assert content(store, "danlu", "a") == b"y"


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_in_the_middle_of_a_commit_harms_neither_side(store: FolderStore) -> None:
    """Another thread of the parent holds the lock and a connection of the index."""
    store.put("danlu", "a", b"x")
    index = store._here().buckets["danlu"]._index
    with index._turn, index._connection() as connection:
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM objects").fetchall()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            status = 1
            try:
                store.put("danlu", "b", b"of the child")
                status = int(content(store, "danlu", "a") != b"x")
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        connection.execute("COMMIT")
    store.put("danlu", "c", b"of the parent")
    assert [item.key for item in store.walk("danlu")] == ["a", "b", "c"]
    assert content(store, "danlu", "b") == b"of the child"


def test_a_bucket_half_made_by_a_crash_does_not_exist(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "objects")
    half = tmp_path / "objects" / "danlu"
    half.mkdir()
    (half / "blobs").mkdir()
    (half / "index.db.new").write_bytes(b"half")
    assert not store.buckets()
    assert store.create_bucket("danlu")
    store.put("danlu", "a", b"x")
    assert store.buckets() == ["danlu"]
    store.close()


# ---------------------------------------------------------------------- limits


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    place = tmp_path / "small"
    place.mkdir()
    options = ["-t", "tmpfs", "-o", "size=1m", "danlu-test", str(place)]
    mounted = subprocess.run(["mount", *options], capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"this machine does not let us mount: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_refuses_and_recovers(small_disk: Path) -> None:
    store = FolderStore(small_disk / "objects")
    store.create_bucket("danlu")
    store.put("danlu", "kept", b"content")
    for source in (bytes(2 << 20), (small_disk.parent / "big").open("w+b")):
        if not isinstance(source, bytes):
            source.truncate(2 << 20)
        with pytest.raises(Refused) as full:
            store.put("danlu", "big", source)
        assert (full.value.key, full.value.http) == ("disk-full", 507)
        assert not incoming(small_disk / "objects")
        if not isinstance(source, bytes):
            source.close()
    assert content(store, "danlu", "kept") == b"content"
    stored = _fill(store)
    assert stored
    assert not incoming(small_disk / "objects")
    store.delete("danlu", stored)
    store.put("danlu", "after", bytes(100_000))
    assert [item.key for item in store.list("danlu").objects] == ["after", "kept"]
    store.close()


def _fill(store: FolderStore) -> list[str]:
    """Put small objects until the disk is full."""
    stored: list[str] = []
    for number in range(5000):
        try:
            store.put("danlu", f"fill/{number}", bytes(2000))
        except Refused as full:
            assert full.key == "disk-full"  # noqa: PT017 - the loop ends by it
            return stored
        stored.append(f"fill/{number}")
    raise AssertionError("a disk of 1 MiB never became full")


MEMORY_SCRIPT = """
import resource, sys
from danlu.stores.folder import FolderStore

class Zeros:
    left = 64 << 20
    def read(self, size):
        size = min(size, self.left)
        self.left -= size
        return bytes(size)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

store = FolderStore(sys.argv[1])
store.create_bucket("danlu")
store.put("danlu", "warm", bytes(6 << 20))
store.put("danlu", "warm", open(store.local_file("danlu", "warm"), "rb"))
before = peak()
store.put("danlu", "big", Zeros())
for chunk in store.read("danlu", "big"):
    pass
store.copy("danlu", "big", "danlu", "again")
print(peak() - before)
"""


def test_memory_stays_small(tmp_path: Path) -> None:
    """(case 98)"""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY_SCRIPT, str(tmp_path / "objects")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 16 << 20
    shutil.rmtree(tmp_path / "objects")


def test_importing_the_store_needs_no_sqlite() -> None:
    code = "import sys, danlu.stores.folder; print('sqlite3' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
