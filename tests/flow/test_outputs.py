"""What was delivered, as its manifests say, and what is left of it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from danlu.flow import outputs
from danlu.flow.sweep import clear
from danlu.model.codec import to_json
from danlu.model.job import JobView, Output
from danlu.model.manifest import (
    Delivery,
    File,
    Manifest,
    Owner,
    Problem,
    manifest_name,
)
from danlu.model.url import ObjectUrl
from tests.flow.house import House


@pytest.fixture
def view(house: House) -> JobView:
    """A job of two tasks with an output."""
    output = Output("model", ObjectUrl("danlu", "runs/"))
    return house.view(house.submit(outputs=(output,), node_count=2))


def deliver(house: House, view: JobView, task: str, files: dict[str, bytes]) -> None:
    listed = tuple(
        File(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in files.items()
    )
    manifest = Manifest(view.job.id, 1, task, "t", "model", Delivery.COMMITTED, 1, 0, listed)
    data = json.dumps(to_json(manifest)).encode()
    house.objects.put("danlu", f"runs/{manifest_name(view.job.id, task, 0)}", data)
    for name, content in files.items():
        house.objects.put("danlu", f"runs/{name}", content)


def problems(house: House, view: JobView) -> dict[str, Problem]:
    return {one.name: one.problem for one in outputs.check(house.platform, view) if one}


def test_what_is_not_delivered_has_no_manifest(house: House, view: JobView) -> None:
    found = outputs.delivered(house.platform, view)
    assert [(one.task, one.manifest) for one in found] == [("worker-0", None), ("worker-1", None)]
    assert problems(house, view) == {}


def test_what_is_no_manifest_counts_as_none(house: House, view: JobView) -> None:
    name = f"runs/{manifest_name(view.job.id, 'worker-0', 0)}"
    for data in (b"", b"{", b"[]", b"{}", b"\xff", b'{"files": 3}'):
        house.objects.put("danlu", name, data)
        assert outputs.delivered(house.platform, view)[0].manifest is None, data


def test_every_file_is_compared(house: House, view: JobView) -> None:
    """(faults 24, 25)"""
    deliver(house, view, "worker-0", {"a": b"aaa", "b": b"bbb", "c": b"ccc", "d": b"ddd"})
    assert set(problems(house, view).values()) == {Problem.NONE}
    house.objects.put("danlu", "runs/b", b"bbB")
    house.objects.put("danlu", "runs/c", b"cc")
    house.objects.delete("danlu", ["runs/d"])
    assert problems(house, view) == {
        "a": Problem.NONE, "b": Problem.CONTENT, "c": Problem.SIZE, "d": Problem.MISSING,
    }  # fmt: skip


def test_a_large_file_is_not_read_in_one_go(
    house: House, view: JobView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks has one thread for many files, and others that want it."""
    monkeypatch.setattr(outputs, "REST_BYTES", 1 << 20)
    deliver(house, view, "worker-0", {"small": b"s", "large": bytes(5 << 20)})
    told = list(outputs.check(house.platform, view))
    assert told.count(None) >= 3
    assert {one.name: one.problem for one in told if one} == {
        "small": Problem.NONE,
        "large": Problem.NONE,
    }


def test_a_name_that_several_tasks_wrote_is_what_one_of_them_delivered(
    house: House, view: JobView
) -> None:
    deliver(house, view, "worker-0", {"same": b"of 0", "own-0": b"0"})
    deliver(house, view, "worker-1", {"same": b"of 1!", "own-1": b"1"})
    assert set(problems(house, view).values()) == {Problem.NONE}
    house.objects.put("danlu", "runs/same", b"of 2")
    assert problems(house, view)["same"] is Problem.CONTENT


def test_a_manifest_cannot_name_what_lies_elsewhere(
    house: House, view: JobView, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("x")
    deliver(house, view, "worker-0", {"../secret": b"x", str(tmp_path / "secret"): b"x"})
    # Keys of objects mean nothing but themselves: both are read from below the prefix.
    assert set(problems(house, view).values()) == {Problem.NONE}


def test_who_sweeps_second_finds_nothing_and_takes_nothing(
    house: House, view: JobView, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(case 70) Another removes the dead uploads just after they were listed."""
    dead = f"runs/{Owner(view.job.id, 1, 'worker-0', 't').staged(b'a')}"
    house.objects.put("danlu", dead, b"half")
    deliver(house, view, "worker-0", {"a": b"aaa"})
    listed = list(house.objects.walk("danlu", dead))
    house.objects.delete("danlu", [dead])
    monkeypatch.setattr(house.objects, "walk", lambda *_: iter(listed))

    clear(house.objects, view.job.id, view.job.spec.outputs)

    monkeypatch.undo()
    assert problems(house, view) == {"a": Problem.NONE}
