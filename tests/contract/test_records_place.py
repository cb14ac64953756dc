"""Where a SQLite database may lie, and whether all of it is still there."""

from __future__ import annotations

import contextlib
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from danlu import settings
from danlu.engines.memory import ManualClock
from danlu.model.errors import Refused
from danlu.ports.records import JobQuery
from danlu.stores.mounts import Mount, mount_of
from danlu.stores.sql import open_records
from danlu.wiring import open_platform
from tests.contract.samples import WORKSPACE, submission, submitted
from tests.fakes import fuse
from tests.services import ROOT

WS = WORKSPACE.id

TABLE = """\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
30 22 0:40 / /home rw,noatime shared:7 - nfs4 server:/home rw
31 30 0:41 / /home/me/a\\040b rw - fuse.sshfs me@there: rw
32 22 0:42 / /srv rw - cifs //s/x rw
33 22 8:2 / /srv rw master:1 propagate_from:2 - xfs /dev/sdb rw
34 22 0:43 / /shared rw - 9p host rw
35 22 0:44 / /box rw - fuse.fuse-overlayfs fuse-overlayfs rw
36 22 0:45 / /mem rw - tmpfs none rw
torn line
"""


@pytest.mark.parametrize(
    ("path", "kind", "refused"),
    [
        ("/var/lib/danlu", "ext4", False),
        ("/home", "nfs4", True),
        ("/home/you/data", "nfs4", True),
        ("/home/me/a b/data", "fuse.sshfs", True),
        ("/home/me/a bc", "nfs4", True),
        ("/homes", "ext4", False),
        ("/srv/data", "xfs", False),
        ("/shared/x", "9p", True),
        ("/box/data", "fuse.fuse-overlayfs", False),
        ("/mem", "tmpfs", False),
        ("/", "ext4", False),
    ],
)
def test_the_file_system_of_a_path(path: str, kind: str, refused: bool) -> None:  # noqa: FBT001 - a table
    """(fault 28) By the longest mount point; of two on one place the later one."""
    found = mount_of(Path(path), TABLE)
    assert found is not None
    assert (found.kind, found.is_network) == (kind, refused)


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse", "fuse.s3fs", "fuse.glusterfs", "ceph"]
)
def test_networks_are_known_by_name(kind: str) -> None:
    assert Mount(kind, "/x").is_network


def test_where_nothing_is_known_nothing_is_refused(tmp_path: Path) -> None:
    assert mount_of(tmp_path, "") is None
    found = mount_of(tmp_path)
    assert found is not None
    assert not found.is_network


def test_a_real_file_system_in_user_space_is_refused_with_the_ways_out(tmp_path: Path) -> None:
    """(fault 28) Before anything is made there; the server's own start says the same."""
    with fuse.stuck(tmp_path / "away") as mounted:
        away = mounted.place
        with pytest.raises(Refused) as refused:
            open_records(away / "records.db", tmp_path / "key", ManualClock())
        assert refused.value.key == "database-network"
        for word in (str(away), "fuse", "--data", "PostgreSQL", "allow_network_disk"):
            assert word in str(refused.value)
        # The key file of a link that leads there is as bad.
        (tmp_path / "link").symlink_to(away)
        with pytest.raises(Refused):
            open_records(tmp_path / "link" / "records.db", tmp_path / "key", ManualClock())


def test_the_setting_takes_the_risk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    everywhere = Mount("nfs4", "/")
    monkeypatch.setattr("danlu.stores.sql.sqlite.mount_of", lambda _: everywhere)
    refusing = settings.load(tmp_path, {"engine": "memory"}, {}).settings
    with pytest.raises(Refused, match="nfs4"):
        open_platform(refusing)
    daring = settings.load(tmp_path, {"engine": "memory", "allow_network_disk": True}, {}).settings
    open_platform(daring).close()


# ---------------------------------------------------------------- all of it

DIES = """
import os, signal, sys
from pathlib import Path
from tests.contract.samples import *
store = Store(Path(sys.argv[1]), Path(sys.argv[2]), ManualClock())
records = store.open()
records.set_setting("server-id", "own").result()
submitted(records, *(submission() for _ in range(30)))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def dead(tmp_path: Path) -> Path:
    """The database of a server that was killed: much of it is in its log only."""
    path = tmp_path / "records.db"
    command = [sys.executable, "-c", DIES, str(path), str(tmp_path / "key")]
    done = subprocess.run(command, check=False, cwd=ROOT, timeout=100)
    assert done.returncode == -signal.SIGKILL
    assert path.with_name("records.db-wal").stat().st_size > 0
    return path


def jobs(path: Path) -> int:
    records = open_records(path, path.with_name("key"), ManualClock())
    try:
        return records.jobs(WS, JobQuery()).total
    finally:
        records.close()


def test_a_killed_server_loses_nothing_and_is_not_refused(dead: Path) -> None:
    assert jobs(dead) == 30
    assert jobs(dead) == 30


def test_a_log_that_was_deleted_is_missed(dead: Path) -> None:
    """(fault 27) SQLite would open what is left without a word."""
    log = dead.with_name("records.db-wal")
    content = log.read_bytes()
    log.unlink()

    with pytest.raises(Refused) as refused:
        jobs(dead)

    assert refused.value.key == "database-behind"
    for word in (str(dead), "-wal", "danlu restore", "records.db.last"):
        assert word in str(refused.value)
    for left in dead.parent.glob("records.db-*"):
        left.unlink()
    log.write_bytes(content)
    assert jobs(dead) == 30, "with the log put back all of it is there"


def test_who_wants_what_is_left_says_so(dead: Path) -> None:
    for left in dead.parent.glob("records.db-*"):
        left.unlink()
    with pytest.raises(Refused):
        jobs(dead)
    dead.with_name("records.db.last").unlink()
    assert jobs(dead) < 30


def test_an_older_copy_in_its_place_is_noticed(tmp_path: Path) -> None:
    """(fault 27) As after a snapshot of a virtual machine, or a careless cp."""
    path = tmp_path / "records.db"
    records = open_records(path, tmp_path / "key", ManualClock())
    submitted(records, submission())
    records.close()
    shutil.copy(path, tmp_path / "older")
    records = open_records(path, tmp_path / "key", ManualClock())
    submitted(records, submission())
    records.close()
    shutil.copy(tmp_path / "older", path)

    with pytest.raises(Refused) as refused:
        jobs(path)

    assert refused.value.key == "database-behind"
    path.unlink()
    with pytest.raises(Refused, match="had come to"):
        jobs(path)


def test_another_program_may_bring_the_log_home(dead: Path) -> None:
    """Whoever looks with sqlite3 after a crash checkpoints and removes the log: nothing is lost."""
    with contextlib.closing(sqlite3.connect(dead)) as other:
        assert other.execute("SELECT count(*) FROM jobs").fetchone() == (30,)
    assert not dead.with_name("records.db-wal").exists()
    assert jobs(dead) == 30


def test_a_log_of_another_database_does_no_silent_harm(dead: Path, tmp_path: Path) -> None:
    """(fault 27) Copied there by mistake, it would become this database's content."""
    other = tmp_path / "other" / "records.db"
    records = open_records(other, tmp_path / "key", ManualClock())
    records.set_setting("server-id", "other").result()
    submitted(records, *(submission() for _ in range(10)))
    shutil.copy(dead.with_name("records.db-wal"), tmp_path / "wal")
    records.close()
    shutil.copy(tmp_path / "wal", other.with_name("records.db-wal"))

    with pytest.raises(Refused) as refused:
        jobs(other)

    assert refused.value.key == "database-other"
    assert "-wal" in str(refused.value)
