"""A disk without room, and one that cannot be written to: on real file systems, small ones."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.engines.memory import ManualClock
from danlu.model.attempt import AttemptKey, Event, State
from danlu.model.errors import PlatformError, Refused, Unavailable
from danlu.model.event import JobEvent, Level
from danlu.model.reason import Reason, ReasonCode
from danlu.ports.records import EventQuery, JobQuery, Move, Records
from danlu.stores.sql import open_records
from danlu.stores.sql.room import Room
from tests import mounts
from tests.contract.samples import WAIT, WORKSPACE, brought_to, full_spec, submission, submitted

WS = WORKSPACE.id
RESERVE = 64 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with mounts.tmpfs(tmp_path / "disk", "size=64m") as where:
        yield where


@pytest.fixture
def records(disk: Path) -> Iterator[Records]:
    opened = at(disk)
    yield opened
    opened.close()


def at(disk: Path, reserve: int = RESERVE) -> Records:
    key_file = disk.parent / "key"
    return open_records(disk / "records.db", key_file, ManualClock(), reserve_bytes=reserve)


def reserve(disk: Path) -> int:
    return (disk / "records.db.reserve").stat().st_size


def fail(key: AttemptKey, at: int = 9) -> Move:
    reason = Reason(ReasonCode.OUTPUT_FAILED, {"detail": "No space left on device", "path": "/x"})
    event = JobEvent(at, "job-failed", reason.told(), Level.ERROR)
    return Move(key, Event.BAD, at, events=(event,), reason=reason)


def refused(records: Records) -> Refused:
    """What a submit is told until the disk is really full to the last page."""
    for _ in range(10_000):
        problem = records.submit(submission(full_spec())).exception(WAIT)
        if problem is not None:
            assert isinstance(problem, Refused)
            return problem
    raise AssertionError("the disk never filled up")


def test_a_small_disk_spares_a_small_part(disk: Path, records: Records) -> None:
    assert reserve(disk) == (64 << 20) // 16
    assert records.trouble() is None


def test_ends_are_recorded_on_a_full_disk_and_new_work_is_refused(
    disk: Path, records: Records
) -> None:
    """(fault 19) With the reserve, bit by bit; and everything goes on when there is room again."""
    live = [brought_to(records, State.COLLECTING) for _ in range(20)]
    ballast = mounts.fill(disk)

    full = refused(records)

    assert (full.key, full.http) == ("disk-full", 507)
    assert full.params["path"] == str(disk / "records.db")
    assert int(str(full.params["needed_bytes"])) > reserve(disk)
    assert str(full.params["needed_bytes"]) in full.message("zh")
    before = records.jobs(WS, JobQuery()).total
    for key in live:
        assert records.move(fail(key)).result(WAIT) is State.FAILED
        assert records.events(WS, key.job_id, EventQuery())[-1].params["because"] == "output-failed"
        assert refused(records).http == 507
    trouble = records.trouble()
    assert trouble is not None
    assert trouble.key == "disk-full"
    assert records.jobs(WS, JobQuery()).total == before
    assert not records.live() or records.live()[0].attempt.state is State.QUEUED

    ballast.unlink()

    assert records.trouble() is None
    assert records.submit(submission()).result(WAIT).created
    assert reserve(disk) == (64 << 20) // 16
    records.close()
    again = at(disk)
    assert again.jobs(WS, JobQuery()).total == before + 1
    again.close()


def test_a_start_on_a_full_disk_reads_and_refuses(disk: Path) -> None:
    """(fault 19) What was given back before the restart is not there to be taken."""
    records = at(disk)
    key = brought_to(records, State.COLLECTING)
    records.close()
    (disk / "records.db.reserve").unlink()
    ballast = mounts.fill(disk)
    with ballast.open("r+b") as file:
        file.truncate(ballast.stat().st_size - (1 << 20))

    again = at(disk)

    assert again.trouble() is not None
    assert again.job(WS, key.job_id).attempt.state is State.COLLECTING
    assert refused(again).http == 507
    ballast.unlink()
    assert again.submit(submission()).result(WAIT).created
    assert again.move(fail(key)).result(WAIT) is State.FAILED
    again.close()


def test_without_a_reserve_a_full_disk_is_told_all_the_same(disk: Path) -> None:
    records = at(disk, 0)
    ballast = mounts.fill(disk)
    assert refused(records).key == "disk-full"
    ballast.unlink()
    assert records.submit(submission()).result(WAIT).created
    assert not (disk / "records.db.reserve").exists()
    records.close()


def test_the_reserve_is_given_back_in_bits(disk: Path) -> None:
    """Whoever filled the disk may take what is free: not all of it at once."""
    room = Room(disk / "records.db", RESERVE)
    assert room.restore() is None
    whole = reserve(disk)
    steps = 0
    while room.spend():
        steps += 1
        assert reserve(disk) < whole
    assert 4 <= steps <= 16
    assert reserve(disk) == 0
    assert room.restore() is None
    assert reserve(disk) == whole


def test_a_disk_without_inodes_says_so(tmp_path: Path) -> None:
    """(fault 21) Bytes are free; what to free is another thing then."""
    with mounts.tmpfs(tmp_path / "disk", "size=8m,nr_inodes=6") as disk:
        room = Room(disk / "records.db", 1 << 20)
        made = 0
        while made < 10:
            try:
                (disk / str(made)).touch()
            except OSError:
                break
            made += 1
        assert made < 10
        problem = room.restore()
        assert problem is not None
        assert (problem.key, problem.http) == ("inodes-full", 507)
        (disk / "0").unlink()
        assert room.restore() is None


def test_a_disk_that_the_kernel_made_read_only(tmp_path: Path) -> None:
    """(fault 22) ext4 does so after an error of the disk: reads go on, writes say why not."""
    with mounts.ext4(tmp_path / "disk", 32 << 20) as disk:
        records = at(disk)
        (key,) = submitted(records, submission())
        subprocess.run(["mount", "-o", "remount,abort", disk], check=False, capture_output=True)

        problem = records.submit(submission()).exception(WAIT)

        assert isinstance(problem, PlatformError)
        assert (problem.key, problem.http) == ("database-read-only", 503)
        assert str(disk) in str(problem)
        assert records.job(WS, key.job_id).attempt.state is State.QUEUED
        trouble = records.trouble()
        assert trouble is not None
        assert trouble.key == "database-read-only"
        with pytest.raises(Unavailable):
            records.move(Move(key, Event.STOP, 1)).result(WAIT)
        records.close()
