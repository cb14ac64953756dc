"""The board shows a live job as the records have it, or not at all."""

from __future__ import annotations

from danlu.engines.memory_script import Script
from danlu.model.attempt import State
from danlu.model.job import JobView
from tests.flow.house import House


def shown(house: House, job_id: str) -> JobView | None:
    """What the board shows; what it shows has to be what is on record."""
    view = house.board.settled(job_id)
    if view is not None:
        assert view == house.records.job(house.workspace.id, job_id)
    return view


def test_what_the_board_shows_is_on_record(house: House) -> None:
    house.scripts["job"] = Script(duration_s=100)
    job_id = house.submit()
    seen = []
    for _ in range(6):
        view = shown(house, job_id)
        seen.append(view.attempt.state if view else None)
        house.turn()

    assert seen[0] is State.QUEUED
    assert State.RUNNING in seen


def test_a_change_on_its_way_to_the_disk_is_not_shown(house: House) -> None:
    job_id = house.submit()
    house.turn()
    entry = house.board.get(job_id)
    assert entry is not None

    house.board.flag(entry, unreachable=True)

    assert house.board.settled(job_id) is None
    house.board.settle()
    view = shown(house, job_id)
    assert view is not None
    assert view.attempt.unreachable


def test_a_new_description_is_shown(house: House) -> None:
    job_id = house.submit()
    assert house.records.describe(house.workspace.id, job_id, "另一个").result()

    house.board.describe(job_id, "另一个")

    view = shown(house, job_id)
    assert view is not None
    assert view.job.spec.description == "另一个"


def test_a_job_that_has_ended_or_never_was_is_not_shown(house: House) -> None:
    assert house.board.settled("nobody") is None
