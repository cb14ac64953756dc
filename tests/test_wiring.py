"""The composition root: a start that is killed or fails anywhere is followed by one that works."""

from __future__ import annotations

import os
import re
import threading
import time
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from danlu import settings, wiring
from danlu.engines.memory import ManualClock
from danlu.faces.http.serve import serve
from danlu.images.store import digits
from danlu.model.errors import Invalid, Unavailable
from danlu.model.job import EngineChoice
from danlu.ports.records import Records
from danlu.settings import Settings
from danlu.stores import restore as restoring
from danlu.stores.folder import FolderStore
from danlu.stores.sql import open_records
from danlu.wiring import open_platform, recovery
from danlu.wiring.admin import PASSWORD_FILE, first_admin
from danlu.wiring.tidy import Tidier
from tests import mounts
from tests.images import small

WRITES = ("add_workspace", "add_user", "add_access_key", "set_setting")


class Killed(BaseException):
    """What ends a process ends it here."""


class Fatal:
    """Records of a server that is killed at one of its writes, before or after it is on disk."""

    def __init__(self, records: Records, write: str, *, stored: bool) -> None:
        self._records, self._write, self._stored = records, write, stored

    def __getattr__(self, name: str) -> Any:
        known = getattr(self._records, name)
        if name != self._write:
            return known

        def killed(*arguments: object) -> Future[bool]:
            if self._stored:
                known(*arguments).result()
            raise Killed

        return killed


def opened(data: Path) -> Records:
    return open_records(str(data / "danlu.sqlite"), data / "secret.key", ManualClock())


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("write", WRITES)
def test_a_first_start_that_was_killed_is_done_by_the_next_one(
    tmp_path: Path, write: str, when: str
) -> None:
    """(case 28) At any of its writes, before or after it is on disk."""
    loaded = settings.load(tmp_path, {}, {}).settings
    records = opened(tmp_path)
    with pytest.raises(Killed):
        first_admin(Fatal(records, write, stored=when == "after"), loaded)
    records.close()

    records = opened(tmp_path)
    workspace, key = first_admin(records, loaded)
    again, same = first_admin(records, loaded)

    assert (again, same.access_key) == (workspace, key.access_key)
    assert same.secret.reveal() == key.secret.reveal()
    assert [one.id for one in records.workspaces()] == [workspace.id]
    assert key.user.workspace == workspace.id
    assert list(records.access_keys(key.user.id)) == [key.access_key]
    assert fits((tmp_path / PASSWORD_FILE).read_text().strip(), key.user.password_hash)
    records.close()


def fits(password: str, hashed: str) -> bool:
    from argon2 import PasswordHasher

    return PasswordHasher().verify(hashed, password)


def test_a_start_that_fails_lets_go_of_the_data_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever step it is that fails; the same process may then try again."""
    none_such = settings.load(tmp_path, {"engine": "no-such"}, {}).settings
    loaded = settings.load(tmp_path, {"engine": "memory"}, {}).settings
    with pytest.raises(Invalid):
        open_platform(none_such)
    open_platform(loaded).close()

    def full(*_: object) -> None:
        raise Unavailable("busy", detail="x")

    with monkeypatch.context() as patched:
        patched.setattr(wiring, "first_admin", full)
        with pytest.raises(Unavailable):
            open_platform(loaded)
    open_platform(loaded).close()


def test_a_restore_that_was_killed_is_finished_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(fault 4) It was decided: the server must not make a new database where one is missing."""
    data = tmp_path / "data"
    loaded = settings.load(data, {"engine": "memory"}, {}).settings
    first = open_platform(loaded)
    key = first.admin.access_key
    first.close()
    recovery.back_up(loaded, tmp_path / "b", key=True, objects=True)
    (data / "danlu.sqlite").unlink()
    (data / "danlu.sqlite.last").unlink()

    def killed(_: Path) -> bool:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(restoring, "finish", killed)
        with pytest.raises(Killed):
            recovery.restore(loaded, tmp_path / "b", force=False)
    with monkeypatch.context() as patched:
        patched.setattr(restoring, "finish", lambda data: killed(data) if marked(data) else False)
        with pytest.raises(Killed):
            recovery.restore(loaded, tmp_path / "b", force=False)
    assert not (data / "danlu.sqlite").exists()

    running = open_platform(loaded)

    assert running.admin.access_key == key
    assert running.platform.restored_at
    assert not marked(data)
    running.close()


def marked(data: Path) -> bool:
    return (data / wiring.RESTORE_MARKER).exists()


def test_a_data_directory_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    """(fault 22) A file system that is read-only at the start."""
    with mounts.tmpfs(tmp_path / "disk", "size=1m,ro") as disk:
        for data in (disk, disk / "new"):
            loaded = settings.load(data, {"engine": "memory"}, {}).settings
            with pytest.raises(Unavailable) as told:
                open_platform(loaded)
            assert told.value.key == "data-dir-unusable"
            assert "Read-only file system" in str(told.value)


def test_a_server_whose_disk_forgets_says_so_and_ends_with_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(fault 23) Its starter and its supervisor shall not take it for a stop that was asked for."""
    loaded: Settings = settings.load(tmp_path, {"engine": "memory", "port": 0}, {}).settings

    def run(running: wiring.Running, *_: object) -> None:
        running.ending.problem = Unavailable("database-failed", path="/x", detail="EIO")

    monkeypatch.setattr("danlu.faces.http.serve.run", run)

    with pytest.raises(Unavailable) as ended:
        serve(loaded)

    assert ended.value.key == "database-failed"
    assert ended.value.exit != 0


def test_a_start_sweeps_what_uploads_have_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(fault 37)"""
    store = FolderStore(str(tmp_path / "objects"), leftover_age_s=0)
    store.create_bucket("other")
    bucket = tmp_path / "objects" / "other"
    for place in ("incoming", "blobs/a"):
        (bucket / place / ("a" * 32)).write_bytes(b"half an upload")
    made = partial(FolderStore, leftover_age_s=0)
    monkeypatch.setattr("danlu.stores.folder.FolderStore", made)
    loaded = settings.load(tmp_path, {"engine": "memory"}, {}).settings
    open_platform(loaded).close()
    assert not list(bucket.glob("incoming/*"))
    assert not list(bucket.glob("blobs/*/*"))


def test_what_a_server_keeps_is_given_to_no_job_but_what_lies_beside_it_is(tmp_path: Path) -> None:
    loaded = settings.load(tmp_path / "data", {"engine": "memory"}, {}).settings
    running = open_platform(loaded)
    try:
        closed = running.platform.closed
        data = tmp_path / "data"
        names = ("engine/tasks", "secret.key", "server.json", "danlu.sqlite-wal", "environments/x",
                 "before-restore-1/secret.key", "restore.json", "anything")  # fmt: skip
        for path in (data, tmp_path, *(data / name for name in names)):
            assert closed(str(path)).startswith(str(data))
        assert closed(str(data / "demo" / "1")) == ""
        assert closed("/etc/shadow") == "/etc/shadow"
    finally:
        running.close()


def test_jobs_that_name_no_image_run_in_the_default_one(tmp_path: Path) -> None:
    flags = {"engine": "memory", "default_image": "pytorch-2.13-cpu"}
    running = open_platform(settings.load(tmp_path, flags, {}).settings)
    try:
        catalog = running.platform.catalog
        image = catalog.check(EngineChoice(), "algorithm.engine", "any")
        assert image is not None
        assert image.name == "pytorch-2.13-cpu"
        # Who asks for the environment by its name gets that.
        assert catalog.check(EngineChoice("default"), "algorithm.engine", "any") is None
    finally:
        running.close()


def test_a_default_image_that_there_is_not_stops_the_start(tmp_path: Path) -> None:
    flags = {"engine": "memory", "default_image": "pytorch-9"}
    with pytest.raises(Invalid, match=r"default_image.*pytorch-9.*pytorch-2\.13-cpu"):
        open_platform(settings.load(tmp_path, flags, {}).settings)


@pytest.mark.parametrize(
    ("days", "gib", "kept"), [(30, 0, True), (1, 0, False), (0, 1, True), (0, 0, True)]
)
def test_the_server_removes_images_that_were_not_used_for_long(
    tmp_path: Path, days: int, gib: int, *, kept: bool
) -> None:
    images = small.World(tmp_path)
    images.realise()
    used = images.store.part("uses") / digits(images.id)
    two_days_ago = time.time() - 2 * 86_400
    os.utime(used, (two_days_ago, two_days_ago))
    record = images.environment() / "danlu-image.json"
    record.chmod(0o644)
    record.write_text(re.sub(r'"made_at": \d+', '"made_at": 0', record.read_text()))
    flags = {"engine": "memory", "image_unused_days": days, "image_budget_gib": gib}

    Tidier(settings.load(tmp_path, flags, {}).settings).tidy()

    assert (images.store.realised(images.id) is not None) is kept


def test_the_server_tidies_by_itself_and_what_goes_wrong_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "images").mkdir()
    tidier = Tidier(settings.load(tmp_path, {"engine": "memory"}, {}).settings, 0.0, 0.0)
    calls = threading.Semaphore(0)

    def tidy() -> None:
        calls.release()
        raise OSError

    monkeypatch.setattr(tidier, "tidy", tidy)
    tidier.start()
    try:
        for _ in range(3):
            assert calls.acquire(timeout=60)
    finally:
        tidier.close()
