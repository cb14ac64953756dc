"""replay and diff against a real server: a job again, and what is not the same."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from danlu.faces.cli import repository
from danlu.faces.cli.repository import COMMIT, DIFF, DIRTY
from tests.faces.cli.house import House

SCRIPT = """\
import os, sys
out = dict(arg[2:].split("=", 1) for arg in sys.argv[1:])["out"]
with open(os.path.join(out, "seen.txt"), "w", encoding="utf-8") as file:
    print(sys.argv[1:-1], os.environ["NOTE"], file=file)
"""


@pytest.fixture
def first(house: House) -> Any:
    """A job that has ended, with parameters, a variable and an output."""
    script = house.script(SCRIPT)
    words = ("--param", "lr=0.1", "--param", "名=值", "--env", "NOTE=a b", "--output", "out")
    house.good("run", "--name", "first", *words, script)
    return house.json("ps", "--all")["jobs"][0]


def again(house: House, *words: str) -> Any:
    return house.json("replay", *words, "--detach")


def outputs_of(job: Any) -> list[str]:
    return [one["url"] for one in job["outputs"]]


def test_a_job_runs_again_as_it_was_asked_for(house: House, first: Any) -> None:
    assert house.run("replay", first["id"], "--name", "second").returncode == 0
    second = house.json("ps", "--all")["jobs"][0]
    assert (second["name"], second["state"]) == ("second", "succeeded")
    assert second["parameters"] == first["parameters"]
    assert second["command"] == first["command"]
    assert second["annotations"]["danlu/replay-of"] == first["id"]
    assert outputs_of(second) != outputs_of(first), "the first one's results stay"
    assert house.good("outputs", first["id"], "--verify")
    assert house.good("outputs", second["id"], "--verify")


def test_only_what_is_not_the_same_is_listed(house: House, first: Any) -> None:
    second = again(house, first["id"])
    house.good("logs", "-f", second["id"])
    done = house.run("diff", first["id"], second["id"], "--json")
    assert done.returncode == 1
    listed = {one["what"]: one for one in json.loads(done.stdout)["differences"]}
    listed.pop("duration", None)
    assert listed.keys() == {
        "metadata.annotations.danlu/replay-of",
        "algorithm.outputs.out.remote.obs.obs_url",
    }
    same = house.run("diff", first["id"], first["id"])
    assert (same.returncode, same.stdout) == (0, b"")


def test_a_parameter_a_variable_and_an_end_are_told_apart(house: House) -> None:
    """(A parameter may stand twice: each is compared with its like.)"""
    script = house.script("import sys; sys.exit(int(sys.argv[-1].split('=')[1]))")
    ids = []
    for value in ("0", "3"):
        words = ("--param", "x=1", "--param", f"x={value}", "--env", f"V={value}")
        house.run("run", *words, script)
        ids.append(house.json("ps", "--all")["jobs"][0]["id"])
    done = house.run("diff", *ids, "--json")
    listed = {one["what"]: one for one in json.loads(done.stdout)["differences"]}
    assert listed["algorithm.parameters.x#2"] == {
        "what": "algorithm.parameters.x#2", "first": "0", "second": "3",
    }  # fmt: skip
    assert listed["algorithm.environments.V"]["second"] == "3"
    assert listed["exit"]["second"] == "3"
    assert (listed["state"]["first"], listed["state"]["second"]) == ("succeeded", "failed")
    assert "algorithm.parameters.x" not in listed


def test_a_place_that_was_chosen_is_not_written_over(
    house: House, first: Any, tmp_path: Path
) -> None:
    script = house.script(SCRIPT)
    place, other = house.shared / "chosen", house.shared / "other"
    place.mkdir()
    other.mkdir()
    house.good("run", "--env", "NOTE=n", "--output", f"out={place}", script)
    job = house.json("ps", "--all")["jobs"][0]
    done = house.run("replay", job["id"])
    assert done.returncode == 2
    assert "--output out=PATH" in done.stderr.decode()
    assert str(place) in done.stderr.decode()
    house.good("replay", job["id"], "--output", f"out={other}")
    assert (other / "seen.txt").exists()
    done = house.run("replay", first["id"], "--output", "nope")
    assert done.returncode == 4
    assert "its outputs are: out" in done.stderr.decode()


def git(directory: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(directory), "-c", "user.name=n", "-c", "user.email=e@e", *words],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_commit_and_what_was_changed_since_are_on_record(house: House) -> None:
    script = Path(house.script("print('a')\n"))
    git(script.parent, "init", "-q")
    git(script.parent, "add", ".")
    git(script.parent, "commit", "-qm", "first")
    commit = git(script.parent, "rev-parse", "HEAD").strip()
    house.good("run", str(script))
    clean = house.json("ps", "--all")["jobs"][0]
    assert clean["annotations"] == {COMMIT: commit, DIRTY: "false"}
    script.write_text("print('训练')\n", encoding="utf-8")
    house.good("run", str(script))
    job = house.json("ps", "--all")["jobs"][0]
    assert job["annotations"][DIRTY] == "true"
    assert job["annotations"][DIFF].endswith(f"/{repository.DIFF_FILE}")
    shown = house.good("show", job["id"])
    assert f"{commit[:12]} with uncommitted changes" in shown
    state = repository.look(str(script.parent))
    assert state is not None
    assert state.diff is not None
    git(script.parent, "checkout", "-q", ".")
    (script.parent / "kept.diff").write_bytes(state.diff)
    git(script.parent, "apply", "kept.diff")
    assert script.read_text("utf-8") == "print('训练')\n"


def test_a_directory_outside_any_repository_costs_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository, "_git", lambda *_: pytest.fail("git was asked"))
    assert repository.look(str(tmp_path)) is None


def test_a_repository_without_a_commit_or_a_broken_one_says_nothing(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    assert repository.look(str(tmp_path)) is None
    (tmp_path / ".git" / "HEAD").write_text("nonsense")
    assert repository.look(str(tmp_path)) is None


def test_a_diff_that_is_too_large_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("a")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    (tmp_path / "a").write_text("b" * 1000)
    monkeypatch.setattr(repository, "DIFF_BYTES", 100)
    state = repository.look(str(tmp_path))
    assert state is not None
    assert state.diff is None


def test_no_program_that_a_repository_names_for_diffs_is_run(tmp_path: Path) -> None:
    """Its configuration may be somebody else's."""
    (tmp_path / "a").write_text("a")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    (tmp_path / "a").write_text("b")
    trap, mark = tmp_path / "trap.sh", tmp_path / "mark"
    trap.write_text(f'#!/bin/sh\ntouch {mark}\ncat "$1" 2>/dev/null\n')
    trap.chmod(0o755)
    git(tmp_path, "config", "diff.external", str(trap))
    git(tmp_path, "config", "core.fsmonitor", str(trap))
    git(tmp_path, "config", "diff.x.textconv", str(trap))
    (tmp_path / ".gitattributes").write_text("a diff=x\n")
    state = repository.look(str(tmp_path))
    assert state is not None
    assert not mark.exists()
