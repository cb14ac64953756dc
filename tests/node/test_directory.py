"""The task directory's files: whole or not there, whatever was written or broken off."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from pathlib import Path

import pytest

from danlu.model.codec import to_json
from danlu.model.script import Layout, TaskPlan
from danlu.node import directory, wake
from danlu.node.directory import TaskDirectory, publish_json, read_json
from danlu.ports import task_directory as files
from danlu.ports.task_directory import AgentPlan


@pytest.fixture
def task(tmp_path: Path) -> TaskDirectory:
    return TaskDirectory(str(tmp_path), token="t")


def test_what_is_published_is_read(task: TaskDirectory) -> None:
    task.publish(files.EXIT, {"text": "中文 \udcff", "number": 1})
    assert task.read(files.EXIT) == {"text": "中文 ?", "number": 1}
    assert [path.name for path in Path(task.path).iterdir()] == [files.EXIT]


def test_a_shorter_file_replaces_a_longer_one(task: TaskDirectory) -> None:
    task.reserve(files.EXIT)
    assert not task.exists(files.EXIT)
    task.publish(files.EXIT, {"text": "x" * 100})
    task.publish(files.EXIT, {})
    assert task.read(files.EXIT) == {}


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b"1", b"[" * 100_000, b'{"a": "' + b"x" * 70_000],
)
def test_what_makes_no_sense_is_not_there(task: TaskDirectory, content: bytes) -> None:
    Path(task.file(files.EXIT)).write_bytes(content)
    assert task.read(files.EXIT) is None


def test_links_and_special_files_are_not_read(task: TaskDirectory, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("{}")
    Path(task.file(files.EXIT)).symlink_to(tmp_path / "secret")
    assert task.read(files.EXIT) is None
    Path(task.file(files.DONE)).mkdir()
    assert task.read(files.DONE) is None
    assert read_json("/dev/zero") is None
    Path(task.file(files.TOLD)).mkdir()
    os.mkfifo(task.file(files.NOTICE))
    assert task.read(files.NOTICE) is None


def test_a_plan_comes_back_as_it_went(task: TaskDirectory) -> None:
    layout = Layout("/h", "/c", "/t", "/p", "/b")
    environments = {"a": "line\nbreak=\r"}
    plan = TaskPlan("j", 1, 0, "t2", "n", command="x", environments=environments, time_limit_s=7)
    whole = AgentPlan(plan, layout, {"kind": "folder"}, {"TZ": "UTC"}, "/bell")
    publish_json(task.path, files.PLAN, to_json(whole))
    assert task.plan() == whole
    assert (task.token, task.limit_s, task.bell) == ("t2", 7, "/bell")


@pytest.mark.parametrize("content", ["{}", '{"plan": 1}', '{"plan": {"job_id": "x"}}', "x"])
def test_a_plan_that_is_none_is_none(task: TaskDirectory, content: str) -> None:
    Path(task.file(files.PLAN)).write_text(content)
    assert task.plan() is None


def test_notes_are_bounded(task: TaskDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "MOST_NOTES", 3)
    for number in range(5):
        task.note("input-linked", name=str(number), url="line\nbreak")
    lines = Path(task.file(files.NOTES)).read_text("utf-8").splitlines()
    assert [json.loads(line)["params"]["name"] for line in lines] == ["0", "1", "2"]


def test_a_lock_is_held_once(task: TaskDirectory) -> None:
    first = task.take(files.LOCK)
    assert first is not None
    assert task.take(files.LOCK) is None
    os.close(first)
    second = task.take(files.LOCK)
    assert second is not None
    os.close(second)


def test_a_lock_in_a_directory_that_was_moved_away_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(fault 5): between opening and locking somebody fenced the task off."""
    path = tmp_path / "task"
    path.mkdir()
    task = TaskDirectory(str(path))
    real = fcntl.flock

    def fenced(descriptor: int, operation: int) -> None:
        path.rename(tmp_path / "trash")
        path.mkdir()
        (path / files.LOCK).touch()
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", fenced)
    assert task.take(files.LOCK) is None


def test_a_lock_needs_its_directory(tmp_path: Path) -> None:
    assert TaskDirectory(str(tmp_path / "gone")).take(files.LOCK) is None


def test_a_ring_is_heard_however_long_the_path_is(tmp_path: Path) -> None:
    deep = tmp_path / ("数据 " * 20)
    deep.mkdir()
    with wake.listen(f"{deep}/wake") as bell:
        bell.settimeout(30)
        wake.send(f"{deep}/wake")
        assert bell.recv(10) == b"\n"
    with wake.listen(f"{deep}/wake") as again:
        assert again.family == socket.AF_UNIX


def test_a_ring_that_nobody_hears_is_nothing(tmp_path: Path) -> None:
    wake.send("")
    wake.send(f"{tmp_path}/wake")
    wake.send(f"{tmp_path}/gone/wake")
    with wake.listen(f"{tmp_path}/wake"):
        for _ in range(10_000):  # more than any queue holds
            wake.send(f"{tmp_path}/wake")
    wake.send(f"{tmp_path}/wake")
