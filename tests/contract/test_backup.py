"""Backups: made while everything is written to, verified before anything is replaced."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from danlu.engines.memory import ManualClock
from danlu.model.errors import Invalid, PlatformError, Refused
from danlu.model.identity import AccessKey, Secret
from danlu.ports.records import JobQuery, Records
from danlu.stores import backup
from danlu.stores import restore as restoring
from danlu.stores.backup import MANIFEST, Manifest, Parts, back_up
from danlu.stores.folder import FolderStore
from danlu.stores.restore import Restored, restore
from danlu.stores.sql import open_records
from danlu.stores.sql.schema import REVISIONS
from tests import mounts
from tests.contract.samples import USER, WORKSPACE, submission, submitted

WS = WORKSPACE.id
NOW = 1_700_000_000_000
KEY = AccessKey("AK1", Secret("canary-secret"), USER)


def opened(data: Path) -> Records:
    data.mkdir(exist_ok=True)
    return open_records(data / "danlu.sqlite", data / "secret.key", ManualClock())


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """What a server keeps: records with a log that was never brought home, a key, objects."""
    where = tmp_path / "数据 data"
    records = opened(where)
    records.add_workspace(WORKSPACE).result()
    records.add_user(USER).result()
    records.add_access_key(KEY).result()
    submitted(records, *(submission() for _ in range(20)))
    store = FolderStore(where / "objects")
    store.create_bucket("danlu")
    for number in range(10):
        store.put("danlu", f"runs/a/{number}", bytes([number]) * 5000)
    store.put("danlu", "empty", b"")
    (where / "danlu.toml").write_text('region = "here"\n')
    yield where
    records.close()
    store.close()


def made(data: Path, dest: Path, **changes: bool) -> Manifest:
    wanted = {"key": True, "objects": True, **changes}
    return back_up(Parts(data), dest, version="1.2.3", now=NOW, **wanted)


def put_back(data: Path, source: Path, *, force: bool = False) -> Restored:
    data.mkdir(exist_ok=True)
    return restore(Parts(data), source, known=REVISIONS, now=NOW + 1, force=force)


def jobs(data: Path) -> int:
    records = opened(data)
    try:
        return records.jobs(WS, JobQuery()).total
    finally:
        records.close()


def test_everything_comes_back_elsewhere(data: Path, tmp_path: Path) -> None:
    manifest = made(data, tmp_path / "b")

    done = put_back(tmp_path / "new", tmp_path / "b")

    assert done.aside is None
    assert (manifest.schema, manifest.danlu, manifest.key) == (REVISIONS[-1], "1.2.3", True)
    records = opened(tmp_path / "new")
    assert records.jobs(WS, JobQuery()).total == 20
    found = records.access_key("AK1")
    assert found is not None
    assert found.secret.reveal() == "canary-secret"
    assert records.setting("restored-at") == str(NOW + 1)
    records.close()
    store = FolderStore(tmp_path / "new" / "objects")
    assert len(list(store.walk("danlu", ""))) == 11
    assert b"".join(store.read("danlu", "runs/a/7")) == b"\x07" * 5000
    store.put("danlu", "more", b"x")
    store.close()
    assert (tmp_path / "new" / "danlu.toml").read_text() == 'region = "here"\n'
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        "danlu.sqlite", "danlu.toml", "objects", "secret.key"
    }  # fmt: skip


def test_it_is_closed_to_others(data: Path, tmp_path: Path) -> None:
    made(data, tmp_path / "b")
    put_back(tmp_path / "new", tmp_path / "b")
    for root in (tmp_path / "b", tmp_path / "new"):
        for folder, _, names in os.walk(root):
            for name in names:
                path = Path(folder, name)
                if path.name != MANIFEST:
                    assert path.stat().st_mode & 0o077 == 0, path
    assert (tmp_path / "b").stat().st_mode & 0o077 == 0


def test_a_copy_made_while_everything_changes_is_of_one_moment(data: Path, tmp_path: Path) -> None:
    """Neither side waits for the other; every object that the index names is there, whole."""
    records, store = opened(data), FolderStore(data / "objects")
    over = threading.Event()
    counts: list[int] = []

    def change() -> None:
        number = 0
        while not over.is_set():
            number += 1
            futures = [records.submit(submission()) for _ in range(10)]
            store.put("danlu", f"runs/b/{number}", os.urandom(3000))
            store.delete("danlu", [f"runs/b/{number - 1}", f"runs/a/{number % 10}"])
            store.put("danlu", f"runs/a/{number % 10}", os.urandom(100))
            counts.extend(future.result(60).job.sequence for future in futures)

    worker = threading.Thread(target=change)
    worker.start()
    try:
        for number in range(3):
            before = len(counts)
            made(data, tmp_path / f"b{number}")
            put_back(tmp_path / f"new{number}", tmp_path / f"b{number}")
            assert 20 + before <= jobs(tmp_path / f"new{number}")
            copy = FolderStore(tmp_path / f"new{number}" / "objects")
            for info in copy.walk("danlu", ""):
                assert len(b"".join(copy.read("danlu", info.key))) == info.size
            copy.close()
    finally:
        over.set()
        worker.join(60)
        records.close()
        store.close()
    assert counts, "nothing changed meanwhile"


# ---------------------------------------------------------------- what is refused


def test_a_changed_byte_of_any_file_is_found_before_anything_is_replaced(
    data: Path, tmp_path: Path
) -> None:
    """(fault 26)"""
    manifest = made(data, tmp_path / "b")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "secret.key").write_bytes(b"own")
    for file in manifest.files:
        path = tmp_path / "b" / file.path
        content = path.read_bytes()
        if not content:
            continue
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        with pytest.raises(Refused) as refused:
            put_back(tmp_path / "new", tmp_path / "b")
        assert refused.value.key == "backup-damaged"
        assert file.path in str(refused.value)
        path.unlink()
        with pytest.raises(Refused, match="missing"):
            put_back(tmp_path / "new", tmp_path / "b")
        path.write_bytes(content)
        assert [entry.name for entry in (tmp_path / "new").iterdir()] == ["secret.key"]
    put_back(tmp_path / "new", tmp_path / "b")
    assert jobs(tmp_path / "new") == 20


LIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "a path that leads out": lambda said: said["files"].append(
        {"path": "../../x", "size": 1, "sha256": ""}
    ),
    "an absolute path": lambda said: said["files"][0].update(path="/etc/passwd"),
    "no files": lambda said: said.pop("files"),
    "a number for a list": lambda said: said.update(files=3),
    "no records": lambda said: said.update(
        files=[one for one in said["files"] if one["path"] != "danlu.sqlite"]
    ),
}


@pytest.mark.parametrize("lie", sorted(LIES))
def test_a_manifest_that_lies_is_refused(data: Path, tmp_path: Path, lie: str) -> None:
    made(data, tmp_path / "b")
    path = tmp_path / "b" / MANIFEST
    said = json.loads(path.read_text())
    LIES[lie](said)
    path.write_text(json.dumps(said))
    with pytest.raises(Invalid) as refused:
        put_back(tmp_path / "new", tmp_path / "b")
    assert refused.value.key == "backup-unreadable"
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b'{"format": 1}'])
def test_what_is_no_backup_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / MANIFEST).write_bytes(content)
    with pytest.raises(Invalid):
        put_back(tmp_path / "new", tmp_path / "b")
    with pytest.raises(Invalid):
        put_back(tmp_path / "new", tmp_path / "nowhere")


def test_a_backup_of_a_newer_program_is_refused_with_both_versions(
    data: Path, tmp_path: Path
) -> None:
    """(case 107)"""
    made(data, tmp_path / "b")
    (tmp_path / "new").mkdir()
    with pytest.raises(Refused) as refused:
        restore(Parts(tmp_path / "new"), tmp_path / "b", known=("0000",), now=1, force=False)
    assert refused.value.key == "backup-newer"
    assert REVISIONS[-1] in str(refused.value)
    assert "1.2.3" in str(refused.value)


def test_without_its_key_a_backup_waits_for_the_key(data: Path, tmp_path: Path) -> None:
    manifest = made(data, tmp_path / "b", key=False)
    assert not manifest.key
    for folder, _, names in os.walk(tmp_path / "b"):
        for name in names:
            assert b"canary-secret" not in Path(folder, name).read_bytes()
    with pytest.raises(Refused) as refused:
        put_back(tmp_path / "new", tmp_path / "b")
    assert refused.value.key == "restore-key"
    (tmp_path / "new" / "secret.key").write_bytes((data / "secret.key").read_bytes())
    (tmp_path / "new" / "secret.key").chmod(0o600)
    put_back(tmp_path / "new", tmp_path / "b")
    records = opened(tmp_path / "new")
    assert records.access_key("AK1") is not None
    records.close()


def test_a_backup_has_a_place_of_its_own(data: Path, tmp_path: Path) -> None:
    made(data, tmp_path / "b")
    for dest, key in (
        (tmp_path / "b", "backup-exists"),
        (data / "b", "backup-inside"),
        (data / "objects" / ".." / "x", "backup-inside"),
    ):
        with pytest.raises(Refused) as refused:
            made(data, dest)
        assert refused.value.key == key
    with pytest.raises(Refused) as refused:
        made(tmp_path / "nothing", tmp_path / "c")
    assert refused.value.key == "backup-nothing"


def test_a_disk_too_small_for_a_backup_is_told_and_left_clean(data: Path, tmp_path: Path) -> None:
    """(fault 19)"""
    store = FolderStore(data / "objects")
    store.put("danlu", "large", bytes(4 << 20))
    store.close()
    with mounts.tmpfs(tmp_path / "disk", "size=2m") as disk:
        with pytest.raises(Refused) as refused:
            made(data, disk / "b")
        assert (refused.value.key, refused.value.http) == ("disk-full", 507)
        assert list(disk.iterdir()) == []
        made(data, disk / "b", objects=False)
        (disk / "new").mkdir()
        mounts.fill(disk)
        with pytest.raises(Refused) as refused:
            put_back(disk / "new", disk / "b")
        assert refused.value.http == 507
        assert list((disk / "new").iterdir()) == []


# ---------------------------------------------------------------- what is in the way


def test_what_is_in_the_way_is_replaced_only_if_wanted_and_kept(data: Path, tmp_path: Path) -> None:
    made(data, tmp_path / "b")
    records = opened(data)
    submitted(records, submission())
    records.close()
    with pytest.raises(Refused) as refused:
        put_back(data, tmp_path / "b")
    assert refused.value.key == "restore-occupied"
    assert "--force" in str(refused.value)

    done = put_back(data, tmp_path / "b", force=True)

    assert done.aside is not None
    assert jobs(data) == 20
    assert (done.aside / "objects" / "danlu" / "index.db").exists()
    assert jobs(done.aside) == 21


def test_a_restore_that_is_killed_at_any_step_leaves_the_old_or_the_new(
    data: Path, tmp_path: Path
) -> None:
    """(faults 4, 30) One child a step; whoever comes next finishes what was decided."""
    made(data, tmp_path / "b")
    steps = -1
    while True:
        steps += 2
        here = tmp_path / f"t{steps}"
        put_back(here, tmp_path / "b")
        records = opened(here)
        submitted(records, submission(), submission())
        records.close()
        ended = killed_at(steps, here, tmp_path / "b")
        decided = (here / restoring.MARKER).exists()
        finished = restoring.finish(here)
        assert finished == decided
        found = jobs(here)
        assert found in (20, 22)
        if decided or ended == 0:
            assert found == 20
            kept = here / f"before-restore-{NOW + 1}"
            assert jobs(kept) == 22
        if ended == 0:
            break
        assert ended == signal.SIGKILL
    assert steps > 20


def killed_at(step: int, data: Path, source: Path) -> int:
    child = os.fork()
    if child == 0:
        try:
            left = step

            def counted(function: Any) -> Any:
                def call(*arguments: Any, **named: Any) -> Any:
                    nonlocal left
                    left -= 1
                    if left == 0:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return function(*arguments, **named)

                return call

            for name in ("rename", "replace", "unlink", "fsync", "rmdir", "mkdir"):
                setattr(os, name, counted(getattr(os, name)))
            put_back(data, source, force=True)
            os._exit(0)
        except BaseException:
            os._exit(99)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def test_settings_that_are_there_stay(data: Path, tmp_path: Path) -> None:
    """They are the other machine's: its ports, its certificates."""
    made(data, tmp_path / "b")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "danlu.toml").write_text("port = 9\n")
    put_back(tmp_path / "new", tmp_path / "b")
    assert (tmp_path / "new" / "danlu.toml").read_text() == "port = 9\n"


def test_an_object_that_goes_while_it_is_copied_is_no_part_of_the_copy(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(data / "objects")
    copy_file = backup.copy_file
    gone: list[str] = []

    def hindered(source: Path, root: Path, name: str) -> backup.File:
        if "blobs" in name and not gone:
            gone.append(name)
            store.delete("danlu", [f"runs/a/{number}" for number in range(10)])
        return copy_file(source, root, name)

    monkeypatch.setattr(backup, "copy_file", hindered)
    manifest = made(data, tmp_path / "b")
    store.close()
    assert [file.path for file in manifest.files if "blobs" in file.path]
    put_back(tmp_path / "new", tmp_path / "b")
    copy = FolderStore(tmp_path / "new" / "objects")
    assert [info.key for info in copy.walk("danlu", "")] == ["empty"]
    copy.close()


def test_a_damaged_database_is_not_backed_up_as_if_it_were_whole(
    data: Path, tmp_path: Path
) -> None:
    """(fault 26) A backup of damage would push the good ones out."""
    records = opened(data)
    submitted(records, *(submission() for _ in range(300)))
    records.close()
    path = data / "danlu.sqlite"
    with contextlib.closing(open_raw(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 8192] = bytes(b"\xa5" * 8192)
    path.write_bytes(content)
    with pytest.raises(PlatformError):
        made(data, tmp_path / "b")
    assert not (tmp_path / "b").exists()


def open_raw(path: Path) -> Any:
    import sqlite3

    return sqlite3.connect(path)


def test_sizes_add_up(data: Path, tmp_path: Path) -> None:
    manifest = made(data, tmp_path / "b")
    assert manifest.size == sum(
        (tmp_path / "b" / file.path).stat().st_size for file in manifest.files
    )
    assert replace(manifest, files=[]).size == 0
