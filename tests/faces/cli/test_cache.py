"""`danlu cache`: what stays on this machine, and what may go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from danlu.faces.cli.main import main
from danlu.ports import task_directory as files
from danlu.wiring import host


def kept(data: Path, digest: str, size: int) -> Path:
    """A data set that a task uses; the task's directory."""
    from danlu.node.datasets import DataSets

    task = data / f"task-{digest[0]}"
    task.mkdir(parents=True)
    about: dict[str, str | int] = {"files": 1, "size": size, "url": "obs://b/k/"}
    DataSets(data / host.DATASETS, 1 << 30).use(
        digest, str(task), about, lambda _: None, lambda: None
    )
    return task


def test_what_is_used_stays_and_the_rest_may_go(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--data", str(tmp_path), "cache"]

    def run(*more: str) -> tuple[int, str, str]:
        status = main([*words, *more])
        said = capsys.readouterr()
        return status, said.out, said.err

    assert run("ls") == (0, "", "")
    first = kept(tmp_path, "a" * 64, 1 << 20)
    (kept(tmp_path, "b" * 64, 2 << 20) / files.DONE).touch()
    listed = [json.loads(line) for line in run("ls", "--json")[1].splitlines()]
    assert {(one["digest"][0], one["tasks"]) for one in listed} == {("a", 1), ("b", 0)}
    assert "obs://b/k/" in run("ls")[1]
    status, _, said = run("rm", "a")
    assert (status, str(first) in said) == (5, True)
    assert run("rm", "c")[0] == 4
    assert run("rm", "bbb")[0] == 0
    assert json.loads(run("gc", "--json")[1]) == {"removed": [], "bytes": 0}
    (first / files.DONE).touch()
    assert json.loads(run("gc", "--to", "1M", "--json")[1])["removed"] == []
    assert json.loads(run("gc", "--json")[1])["removed"] == ["a" * 64]
    assert run("ls") == (0, "", "")
    assert run("gc", "--to", "much")[0] == 2
