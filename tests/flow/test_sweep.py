"""What deleted jobs left is freed: whatever dies meanwhile, and however long a store is away."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from danlu.flow.delete import delete
from danlu.flow.loop import SWEEP_EVERY_S
from danlu.flow.sweep import AGAIN_S
from danlu.model.errors import Unavailable
from danlu.model.job import Output
from danlu.model.manifest import Owner
from danlu.model.url import LocalUrl, ObjectUrl
from tests.flow.house import House

OUTPUT = Output("model", ObjectUrl("danlu", "runs/"))


def deleted(house: House, *outputs: Output) -> str:
    """A job that has ended and was deleted, of which half an upload is left."""
    job_id = house.submit(outputs=outputs)
    while house.history(job_id)[-1] != "job-succeeded":
        house.turn(1)
    house.objects.put("danlu", half(job_id), b"half")
    assert delete(house.platform, house.caller, job_id).result()
    return job_id


def half(job_id: str) -> str:
    return f"runs/{Owner(job_id, 1, 'worker-0', 't').staged(b'a')}"


def stored(house: House) -> set[str]:
    return {info.key for info in house.objects.walk("danlu", "runs/")}


def unswept(house: House) -> set[str]:
    return {row[0] for row in house.records.swept()}


def test_a_deleted_job_leaves_no_upload_behind(house: House) -> None:
    """(faults 8, 37)"""
    other = half("another")
    for name in (other, "runs/a"):
        house.objects.put("danlu", name, b"content")
    job_id = deleted(house, OUTPUT)
    house.turn(SWEEP_EVERY_S)
    assert unswept(house) == {job_id}, "not before its uploads are gone"
    house.loop.sweeper.clear()
    assert stored(house) == {other, "runs/a"}
    assert not unswept(house)


def test_what_a_dead_server_had_not_removed_the_next_one_removes(house: House) -> None:
    job_id = deleted(house, OUTPUT)
    house.turn(SWEEP_EVERY_S)
    house.restart()
    assert unswept(house) == {job_id}
    house.turn(SWEEP_EVERY_S)
    house.loop.sweeper.clear()
    assert not stored(house)
    assert not unswept(house)


@pytest.mark.parametrize("outputs", [(), (Output("model", LocalUrl("/srv/models")),)])
def test_without_objects_no_store_is_asked(
    house: House, outputs: tuple[Output, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted(house, *outputs)
    monkeypatch.setattr(house.objects, "walk", away)
    house.turn(SWEEP_EVERY_S)
    assert not unswept(house)


def away(*_: object) -> Iterator[object]:
    raise Unavailable("s3-unavailable", endpoint="s3", tries=2, detail="nobody answers")


def test_a_store_that_is_away_is_asked_again_later(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(fault 34) One that is gone for good has nothing left."""
    job_id = deleted(house, OUTPUT)
    with monkeypatch.context() as broken:
        broken.setattr(house.objects, "walk", away)
        house.turn(SWEEP_EVERY_S)
        house.loop.sweeper.clear()
    for _ in range(2):
        house.turn(SWEEP_EVERY_S)
        house.loop.sweeper.clear()
        assert unswept(house) == {job_id}
    house.clock.advance(AGAIN_S)
    house.loop.sweeper.clear()
    assert not stored(house)
    assert not unswept(house)

    house.objects.create_bucket("gone")
    gone = deleted(house, Output("model", ObjectUrl("gone", "x/")))
    house.objects.delete_bucket("gone")
    house.turn(SWEEP_EVERY_S)
    house.loop.sweeper.clear()
    assert gone not in unswept(house)


def test_a_store_that_does_not_answer_holds_no_job_up(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(fault 34) Jobs begin and end while the thread for uploads waits; so does a close."""
    job_id = deleted(house, OUTPUT)
    asked, answer = threading.Event(), threading.Event()
    walk: Callable[..., Iterator[object]] = house.objects.walk

    def slow(*place: str) -> Iterator[object]:
        asked.set()
        answer.wait(60)
        return walk(*place)

    monkeypatch.setattr(house.objects, "walk", slow)
    house.loop.sweeper.start()
    house.turn(SWEEP_EVERY_S)
    assert asked.wait(60)
    other = house.submit("other")
    while house.history(other)[-1] != "job-succeeded":
        house.turn(SWEEP_EVERY_S)
    assert unswept(house) == {job_id}
    answer.set()
    while unswept(house):
        threading.Event().wait(0.01)
    assert not stored(house)
    house.loop.sweeper.close()
