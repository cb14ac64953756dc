"""Faults of the clock: what people set jumps, what machines count does not."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

import pytest

from tests.faults.client import Client
from tests.faults.house import House
from tests.faults.jobs import Jobs, until
from tests.faults.preload import built

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]


class Clock:
    """A house whose server's wall clock can be set; the client's goes along, as a user's would."""

    def __init__(self, root: Path, offset_s: float = 0, speed: float = 1) -> None:
        self._file = root / "clock"
        self._since = time.time()
        self._write(offset_s, speed)
        variables = {
            "LD_PRELOAD": built("clock", root),
            "CLOCK_ORDERS": str(self._file),
            "TZ": "America/New_York",
        }
        self.house = House(root, environment=variables)
        self.house.start_cold()
        assert self.house.await_ready(), self.house.said()
        self.jobs = Jobs(self.house)
        self.set(offset_s, speed)

    def set(self, offset_s: float, speed: float = 1) -> None:
        self._write(offset_s, speed)
        self.jobs.client.offset_s = offset_s
        self.jobs.client.drift = (self._since, speed)

    def _write(self, offset_s: float, speed: float) -> None:
        draft = self._file.with_suffix(".new")
        draft.write_text(f"{offset_s} {speed} {self._since:.6f}\n")
        draft.rename(self._file)

    def close(self) -> None:
        self.jobs.close()
        self.house.close()


@pytest.mark.parametrize("offset_s", [3600, -3600, 400 * 86400], ids=["+1h", "-1h", "+400d"])
def test_a_clock_that_jumps(tmp_path: Path, offset_s: float) -> None:
    """(fault 32) The wall clock jumps while jobs run, one of them under a time limit: nothing ends
    early, nothing lasts less than no time, and new jobs run.
    """
    clock = Clock(tmp_path)
    try:
        jobs = clock.jobs
        limited = jobs.steps("limited", steps=8, pause_s=0.5, limit_s=600)
        until(lambda: jobs.starts(limited) == 1)
        until(lambda: jobs.show(limited)["state"] == "running")
        clock.set(offset_s)

        shown = jobs.until(limited)
        assert (shown["state"], shown["attempt"]) == ("succeeded", 1)
        assert [one["started_at"] is not None for one in shown["tasks"]] == [True]
        assert shown["duration_ms"] >= 0
        after = jobs.until(jobs.steps("after", steps=1))
        assert after["state"] == "succeeded"
        assert after["duration_ms"] >= 0
        events = jobs.client.get(f"jobs/{limited}/events?limit=100")["events"]
        assert [event["sequence"] for event in events] == sorted(e["sequence"] for e in events)
    finally:
        clock.close()


def test_a_clock_that_drifts(tmp_path: Path) -> None:
    """(fault 32) The wall clock runs ten times too fast: a limit of 20 s is not reached by a job of
    5, for limits follow the clock that nobody can set.
    """
    clock = Clock(tmp_path, speed=10)
    try:
        jobs = clock.jobs
        job = jobs.steps("limited", steps=8, pause_s=0.6, limit_s=20)
        assert jobs.until(job)["state"] == "succeeded"
    finally:
        clock.close()


@pytest.mark.parametrize(
    "moment", ["2038-01-19T03:14:00+00:00", "2026-11-01T05:59:50+00:00"], ids=["2038", "dst"]
)
def test_moments_at_which_clocks_stumble(tmp_path: Path, moment: str) -> None:
    """(fault 33) A server started 8 s before 32 bits run out, and 10 s before an hour is lived
    twice (in New York, where the server thinks it is).
    """
    offset_s = datetime.fromisoformat(moment).timestamp() - time.time()
    clock = Clock(tmp_path, offset_s)
    try:
        jobs = clock.jobs
        job = jobs.steps("over", steps=25, pause_s=0.6)
        shown = jobs.until(job)
        assert shown["state"] == "succeeded"
        assert shown["duration_ms"] >= 0
        assert abs(shown["created_at"] / 1000 - time.time() - offset_s) < 3600
    finally:
        clock.close()


def test_the_client_signs_with_the_clock_that_it_is_given() -> None:
    ready = {"project_id": "p", "access_key": "a", "secret_key": "s"}
    client = Client(ready, 1)
    client.offset_s = 86400.0
    assert client.moment() - time.time() > 80000
