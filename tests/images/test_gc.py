"""What images take is freed: by last use, by budget, and never under a task's feet."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from danlu.images import gc, known
from danlu.images.store import digits, now_ms, usage
from danlu.model.errors import Invalid, Missing, Refused
from tests.images.small import World

pytestmark = pytest.mark.timeout(300)
DAY_S = 86_400


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def soon(condition: Callable[[], bool]) -> None:
    over = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < over
        time.sleep(0.02)


def other(world: World) -> str:
    return world.store.keep(replace(world.lock, wheels=world.lock.wheels[1:]))


def used_days_ago(world: World, image_id: str, days: float) -> None:
    at = now_ms() / 1000 - days * DAY_S
    os.utime(world.store.root / "uses" / digits(image_id), (at, at))
    record = world.environment(image_id) / "danlu-image.json"
    record.chmod(0o644)
    made = world.store.realised(image_id)
    assert made is not None
    record.write_text(record.read_text().replace(str(made.made_at), str(int(at * 1000))))


def test_what_was_not_used_for_long_goes_and_the_rest_stays(world: World) -> None:
    young = other(world)
    for image_id, days in ((world.id, 31.0), (young, 2.0)):
        world.realise(image_id)
        used_days_ago(world, image_id, days)

    would = gc.collect(world.store, unused_for_s=30 * DAY_S, budget=None, dry_run=True)
    freed = gc.collect(world.store, unused_for_s=30 * DAY_S, budget=None)

    assert [one.id for one in would.removed] == [one.id for one in freed.removed] == [world.id]
    assert world.store.realised(young)
    assert freed.after < freed.before


def test_over_its_budget_the_longest_unused_goes_first(world: World) -> None:
    young = other(world)
    for image_id, days in ((world.id, 3.0), (young, 2.0)):
        world.realise(image_id)
        used_days_ago(world, image_id, days)

    freed = gc.collect(world.store, unused_for_s=None, budget=world.store.usage() - 1)

    assert [one.id for one in freed.removed] == [world.id]
    assert world.store.realised(young)
    # The packages that another environment has are still in the cache.
    world.said.clear()
    world.store.remove(young)
    world.realise(young)
    assert "image-fetching" not in world.told()


def test_without_an_environment_the_cache_goes_as_well(world: World) -> None:
    world.realise()

    gc.collect(world.store, unused_for_s=None, budget=0)

    assert not list((world.store.root / "cache").rglob("data.bin"))
    assert world.realise().id == world.id


def test_what_a_task_uses_is_not_removed_until_it_is_over(world: World, tmp_path: Path) -> None:
    task = tmp_path / "job-1-0"
    task.mkdir()
    world.realise(holder=(task, "exit.json"))

    assert not gc.collect(world.store, unused_for_s=0, budget=0).removed
    with pytest.raises(Refused, match="job-1-0"):
        world.store.remove(world.id)

    (task / "exit.json").write_text("{}")
    assert [one.id for one in gc.collect(world.store, unused_for_s=0, budget=0).removed] == [
        world.id
    ]


def test_a_task_that_is_gone_uses_nothing(world: World, tmp_path: Path) -> None:
    task = tmp_path / "job-1-0"
    task.mkdir()
    world.realise(holder=(task, "exit.json"))
    task.rmdir()

    world.store.remove(world.id)

    with pytest.raises(Missing):
        world.store.remove(world.id)


def test_leftovers_are_swept_but_not_from_under_whoever_works(world: World) -> None:
    left = world.store.part("making") / f"{digits(world.id)}-dead"
    busy = world.store.part("making") / f"{digits(other(world))}-live"
    (left / "environment").mkdir(parents=True)
    busy.mkdir()

    with world.store.turn(other(world)):
        gc.collect(world.store, unused_for_s=None, budget=None)

    assert not left.exists()
    assert busy.exists()


# ---------------------------------------------------------------------- names


def test_an_image_is_found_by_name_id_and_the_beginning_of_one(world: World) -> None:
    made = known.register(world.store, "mine", world.lock, "for tests")

    for word in ("mine", made.id, made.id[:19], digits(made.id)[:8]):
        assert known.find(world.store, word).id == made.id
    assert known.find(world.store, "pytorch-2.13-cpu").torch == "2.13.0+cpu"
    with pytest.raises(Missing):
        known.find(world.store, digits(made.id)[:7])


def test_a_name_means_one_image(world: World) -> None:
    known.register(world.store, "mine", world.lock)
    known.register(world.store, "mine", world.lock)

    with pytest.raises(Refused, match="mine"):
        known.register(world.store, "mine", replace(world.lock, wheels=world.lock.wheels[1:]))
    with pytest.raises(Refused):
        known.register(world.store, "pytorch-2.13-cpu", world.lock)
    with pytest.raises(Invalid):
        known.register(world.store, "../mine", world.lock)
    known.unregister(world.store, known.find(world.store, "mine"))
    with pytest.raises(Missing):
        known.find(world.store, "mine")


def test_a_lock_that_was_changed_on_disk_is_not_used(world: World) -> None:
    path = world.store.root / "locks" / f"{digits(world.id)}.json"
    path.write_text(path.read_text().replace("0.8.1", "0.8.2"))

    with pytest.raises(Invalid):
        world.realise()


def test_whoever_removes_an_environment_does_not_wait_until_it_is_deleted(world: World) -> None:
    world.realise()
    place = world.environment()
    world.store.remove(world.id)
    thrown = list((world.store.root / "trash").iterdir())

    assert not place.exists()
    assert [one.name.partition("-")[0] for one in thrown] == [digits(world.id)]
    # It may be made again before, and what is being deleted counts no more.
    world.realise()
    assert usage(world.store.root) > world.store.usage()

    world.store.empty_trash()

    soon(lambda: not any(one.exists() for one in thrown))
    assert world.store.realised(world.id)


def test_where_no_process_can_be_started_what_was_thrown_away_is_deleted_here(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.realise()
    world.store.remove(world.id)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")

    world.store.empty_trash()

    assert not list((world.store.root / "trash").iterdir())


def test_what_a_killed_deletion_has_left_goes_with_the_next(world: World) -> None:
    left = world.store.part("trash") / "left" / "closed"
    left.mkdir(parents=True)
    (left / "file").write_text("")
    left.chmod(0o555)

    gc.collect(world.store, unused_for_s=DAY_S, budget=None)

    soon(lambda: not left.parent.exists())
