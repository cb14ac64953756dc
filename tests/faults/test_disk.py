"""Faults of the database's disk under a whole server: calls that fail, pages that rot."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.fuse import stuck
from tests.faults.house import House, opened
from tests.faults.jobs import until, users, waiting
from tests.faults.preload import built

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

FAILED_FSYNC_EXIT = 75


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library that makes calls fail."""
    return built("faulty", tmp_path_factory.mktemp("faulty"))


def environment(root: Path, library: str) -> dict[str, str]:
    return {
        "LD_PRELOAD": library,
        "FAULTY_MATCH": "danlu.sqlite",
        "FAULTY_ORDERS": str(root / "faults"),
    }


def test_a_failed_fsync_ends_the_server(tmp_path: Path, faulty: str) -> None:
    """(fault 23) fsync of the database fails with EIO, in a library that is preloaded: the server
    ends with status 75 and acknowledges nothing; the next one goes on, the job never noticed.
    """
    house = House(tmp_path, environment=environment(tmp_path, faulty))
    try:
        house.start_cold()
        assert house.await_ready(), house.said()
        with users(house) as jobs:
            job = jobs.steps("going", steps=30, pause_s=0.3)
            until(lambda: jobs.starts(job) == 1)
            until(lambda: jobs.show(job)["state"] == "running")
            (tmp_path / "faults").write_text("fsync")
            with pytest.raises((OSError, AssertionError)):
                assert jobs.submit_once("lost")[0] < 500
            until(lambda: not house.alive())
            assert house.ended() == FAILED_FSYNC_EXIT
            (tmp_path / "faults").unlink()

            house.start_cold()
            assert house.await_ready(), house.said()
            assert jobs.until(job)["state"] == "succeeded"
            assert jobs.starts(job) == 1
            assert jobs.log(job).count(b"\n") == 30
            assert house.integrity() == "ok"
    finally:
        house.close()


def test_a_failed_write_is_refused_and_passes(tmp_path: Path, faulty: str) -> None:
    """(fault 23) write to the database fails with EIO: 503 with the reason, reads go on, and all is
    well when the disk is.
    """
    preloaded = environment(tmp_path, faulty)
    with opened(tmp_path, cold=True, environment=preloaded) as house, users(house) as jobs:
        job = jobs.steps("first", steps=1)
        jobs.until(job)
        (tmp_path / "faults").write_text("write")
        status, _ = jobs.submit_once("refused")
        assert status == 503
        assert jobs.show(job)["state"] == "succeeded"
        (tmp_path / "faults").unlink()

        assert jobs.until(jobs.steps("after", steps=1))["state"] == "succeeded"
        assert house.integrity() == "ok"


def test_a_rotten_page_stops_the_start(tmp_path: Path) -> None:
    """(fault 26) Pages in the middle of the file are overwritten while no server runs: the next one
    refuses to start, names the file, and leaves it as it is.
    """
    with opened(tmp_path) as house, users(house) as jobs:
        for number in range(40):
            jobs.client.call("POST", "jobs", waiting(f"w-{number}"), token=f"w-{number}")
        house.close_server()
        with house.database(write=True) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        file = house.data / "danlu.sqlite"
        content = bytearray(file.read_bytes())
        middle = len(content) // 2 // 4096 * 4096
        content[middle : middle + 8192] = b"\xa5" * 8192
        file.write_bytes(content)
        status, said = house.refused()

        assert status == 5, said
        assert str(file) in said
        assert file.read_bytes() == bytes(content)


def test_a_log_that_was_deleted_stops_the_start(tmp_path: Path) -> None:
    """(fault 27) The server is killed, and somebody deletes the write-ahead log, which holds
    the last commits: the next one does not go on as if they had never been.
    """
    with opened(tmp_path) as house, users(house) as jobs:
        jobs.client.call("POST", "jobs", waiting("kept"), token="kept")
        house.kill()
        log = house.data / "danlu.sqlite-wal"
        assert log.stat().st_size > 0
        kept = log.rename(tmp_path / "wal")
        status, said = house.refused()
        assert status == 5, said
        assert "danlu.sqlite-wal" in said

        kept.rename(log)
        house.start()
        assert [one["name"] for one in jobs.client.get("jobs")["jobs"]] == ["kept"]


def test_a_database_on_fuse_is_refused(tmp_path: Path) -> None:
    """(fault 28) The database is to lie on a file system in user space (FUSE), which answers no
    more: refused by its kind, before anything waits for it.
    """
    with stuck(tmp_path / "mounted") as broken:
        house = House(tmp_path, f'database = "{broken.place}/danlu.sqlite"\n')
        status, said = house.refused()

        assert status == 5, said
        assert str(broken.place) in said
        assert "fuse" in said.lower()
        assert not broken.waiting.is_set()
