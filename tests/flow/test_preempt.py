from __future__ import annotations

from pathlib import Path

import pytest

from danlu.engines.memory_script import Script
from danlu.flow.preempt import preempt
from danlu.model.attempt import State
from danlu.model.errors import Missing, Refused
from danlu.model.reason import ReasonCode
from tests.flow.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def running(house: House) -> str:
    house.scripts["job"] = Script(duration_s=1000)
    job = house.submit()
    for _ in range(5):
        house.turn(1)
    assert house.state(job) is State.RUNNING
    return job


def take(house: House, job: str, grace_s: int = 0) -> None:
    future = preempt(house.platform, house.board, house.caller, job, grace_s, lambda: None)
    assert future.result(timeout=30) is State.STOPPING


def reasons(house: House, job: str) -> list[ReasonCode | None]:
    known = house.records.attempts("p1", job)
    return [one.reason.code if one.reason else None for one, _ in known]


def until(house: House, job: str, *states: State) -> None:
    for _ in range(200):
        house.turn(1)
        if house.state(job) in states:
            return
    raise AssertionError(house.state(job))


def test_a_job_that_loses_its_place_begins_again(house: House) -> None:
    job = running(house)
    take(house, job)
    house.scripts["job"] = Script()
    until(house, job, State.SUCCEEDED)

    assert reasons(house, job) == [ReasonCode.PREEMPTED, ReasonCode.COMPLETED]
    assert "job-stopping" in house.history(job)


def test_it_is_carried_out_by_the_next_server(house: House) -> None:
    """The intent is on record before anything is done."""
    job = running(house)
    take(house, job)
    house.restart()
    house.scripts["job"] = Script()
    until(house, job, State.SUCCEEDED)

    assert reasons(house, job) == [ReasonCode.PREEMPTED, ReasonCode.COMPLETED]


def test_a_stop_in_between_wins(house: House) -> None:
    job = running(house)
    take(house, job, grace_s=5)
    assert house.stop(job)
    until(house, job, State.CANCELLED)

    assert reasons(house, job) == [ReasonCode.STOPPED]


def test_what_does_not_run_has_no_place_to_lose(house: House) -> None:
    with pytest.raises(Missing):
        take(house, "nobody")
    job = running(house)
    take(house, job)
    with pytest.raises(Refused, match="stopping"):
        take(house, job)
    waiting = house.submit("waits", flavor="danlu.cpu.8u")
    with pytest.raises(Refused, match="queued"):
        take(house, waiting)
