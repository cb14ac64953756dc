"""What only the folder store promises of uploads, and of indexes that older versions made."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.model.errors import Missing, PlatformError
from danlu.stores.backup import Parts, back_up
from danlu.stores.folder import FolderStore
from danlu.stores.folder.index import VERSION
from tests.contract.objects import content, in_memory, names


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FolderStore]:
    made = FolderStore(tmp_path / "objects", leftover_age_s=0)
    made.create_bucket("danlu")
    yield made
    made.close()


def files(root: Path) -> set[Path]:
    """Content, and what is being written."""
    return {path for path in (root / "danlu").rglob("*") if path.is_file() and len(path.name) == 32}


def test_a_stale_upload_is_swept_with_its_parts(tmp_path: Path, store: FolderStore) -> None:
    """(reliability row 37)"""
    root = tmp_path / "objects"
    upload = store.create_upload("danlu", "a").id
    store.put_part("danlu", "a", upload, 1, b"x")
    empty = store.create_upload("danlu", "b").id
    store.sweep()
    assert len(store.uploads("danlu").uploads) == 2
    assert len(files(root)) == 1
    hasty = FolderStore(root, upload_age_s=0)
    hasty.sweep()
    assert not store.uploads("danlu").uploads
    assert not files(root)
    for key, name in (("a", upload), ("b", empty)):
        with pytest.raises(Missing):
            store.put_part("danlu", key, name, 2, b"y")
    hasty.close()


def test_parts_do_not_outlive_what_they_were_for(tmp_path: Path, store: FolderStore) -> None:
    root = tmp_path / "objects"
    for end in ("complete", "abort", "delete"):
        upload = store.create_upload("danlu", "a").id
        store.put_part("danlu", "a", upload, 1, b"replaced")
        part = store.put_part("danlu", "a", upload, 1, b"x")
        store.put_part("danlu", "a", upload, 2, b"never named")
        assert len(files(root)) == 2
        if end == "complete":
            store.complete_upload("danlu", "a", upload, [(1, part.etag)])
            assert len(files(root)) == 1
            store.delete("danlu", ["a"])
        elif end == "abort":
            store.abort_upload("danlu", "a", upload)
        else:
            store.delete_bucket("danlu")
        assert not files(root)


def test_an_index_of_version_1_is_brought_up(tmp_path: Path) -> None:
    """Everything that it held is there, and it takes what is new."""
    root = tmp_path / "objects"
    store = FolderStore(root)
    store.create_bucket("danlu")
    kept = store.put("danlu", "文/a", b"content", metadata={"m": "1"})
    store.close()
    index = root / "danlu" / "index.db"
    _to_version_1(index)
    old, beside = FolderStore(root), FolderStore(root)
    assert old.head("danlu", "文/a") == kept
    assert content(beside, "danlu", "文/a") == b"content"
    assert old.bucket("danlu").created_at == kept.modified_at
    old.put("danlu", "b", b"2", headers={"content-type": "text/x"})
    old.set_tags("danlu", "文/a", {"k": "v"})
    upload = beside.create_upload("danlu", "c").id
    part = beside.put_part("danlu", "c", upload, 1, b"3")
    assert old.complete_upload("danlu", "c", upload, [(1, part.etag)]).etag.endswith("-1")
    assert names(old.list("danlu")) == ["b", "c", "文/a"]
    for each in (old, beside):
        each.close()
    with sqlite3.connect(index) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def _to_version_1(index: Path) -> None:
    """Make of an index what the first version would have made."""
    connection = sqlite3.connect(index)
    for table, column in (
        ("bucket", "created_at"),
        ("bucket", "tags"),
        ("objects", "parts"),
        ("objects", "headers"),
        ("objects", "tags"),
    ):
        connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    connection.execute("DROP TABLE uploads")
    connection.execute("DROP TABLE parts")
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    assert len(connection.execute("SELECT * FROM objects").fetchone()) == 7
    connection.close()


def test_a_backup_leaves_uploads_out(tmp_path: Path, store: FolderStore) -> None:
    upload = store.create_upload("danlu", "a").id
    store.put_part("danlu", "a", upload, 1, b"x")
    store.put("danlu", "kept", b"content")
    data = tmp_path
    sqlite3.connect(data / "danlu.sqlite").executescript(
        "CREATE TABLE danlu_revision (version_num TEXT); INSERT INTO danlu_revision VALUES ('1')"
    )
    dest = tmp_path.parent / f"{tmp_path.name}-backup"
    back_up(Parts(data), dest, key=False, objects=True, version="1", now=1)
    copy = FolderStore(dest / "objects")
    assert not copy.uploads("danlu").uploads
    assert content(copy, "danlu", "kept") == b"content"
    assert len(files(dest / "objects")) == 1
    assert len(store.uploads("danlu").uploads) == 1
    copy.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_killed_uploads_leave_whole_objects_and_no_stray_parts() -> None:
    """60 children are killed at random moments while they upload in parts, append and rename."""
    with in_memory() as path:
        root = path / "objects"
        store = FolderStore(root, leftover_age_s=0, upload_age_s=0)
        store.create_bucket("danlu")
        _kill_uploaders(store, root)
        store.close()


PIECES = [bytes([number]) * (50_000 * number) for number in range(1, 5)]


def _kill_uploaders(store: FolderStore, root: Path) -> None:
    dice = random.Random(int(os.environ.get("OBJECTS_SEED", "1")))
    whole, doubled = b"".join(PIECES), PIECES[0] + PIECES[1]
    left, seen = 0, set()
    for turn in range(60):
        ready, begun = os.pipe()
        child = os.fork()
        if child == 0:
            _upload_for_ever(root, turn, begun)
        os.close(begun)
        assert os.read(ready, 1) == b"1"
        os.close(ready)
        time.sleep(dice.random() * 0.02)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        for item in store.walk("danlu"):
            data = content(store, "danlu", item.key)
            assert data in (whole, doubled, PIECES[0])
            assert hashlib.sha256(data).hexdigest() == item.sha256
            seen.add(item.key)
        left += len(store.uploads("danlu").uploads)
    assert seen >= {"whole", "log", "moved"}
    assert left, "no child was killed in the middle of an upload"
    store.sweep()
    assert not store.uploads("danlu").uploads
    assert not list((root / "danlu" / "incoming").iterdir())
    named = {Path(store.local_file("danlu", item.key)) for item in store.walk("danlu")}
    assert files(root) == named


def _upload_for_ever(root: Path, seed: int, begun: int) -> None:
    """The child. Never returns."""
    try:
        dice = random.Random(seed)
        store = FolderStore(root)
        told = False
        while True:
            upload = store.create_upload("danlu", "whole").id
            numbers = list(range(1, 5))
            dice.shuffle(numbers)
            etags = {
                number: store.put_part("danlu", "whole", upload, number, PIECES[number - 1]).etag
                for number in numbers
            }
            if not told:
                os.write(begun, b"1")
                told = True
            store.complete_upload("danlu", "whole", upload, sorted(etags.items()))
            store.delete("danlu", ["log"])
            store.append("danlu", "log", PIECES[0], 0)
            store.append("danlu", "log", PIECES[1], len(PIECES[0]))
            store.copy("danlu", "log", "danlu", "copied")
            store.rename("danlu", "copied", "moved")
    except PlatformError as problem:
        os.write(2, f"{problem!r}: {problem}\n".encode())
    finally:
        os._exit(1)
