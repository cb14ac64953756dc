"""The promises page shows what the fault run wrote, the bad with the good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import promises
from tests.faults import checker, rows
from tests.faults.test_checker import DOCTORED

STAMP = {"commit": "abc123", "day": "2026-11-30"}
RUN: dict[str, Any] = {
    "figures": {
        "kills": {
            "jobs": 200,
            "kills": 300,
            "kills_by_target": {"agent": 200, "server": 100},
            "kills_at_points": 40,
            "points": {"agent.locked": 19, "shim.ended": 21},
            "steps": 1234,
            "seeds": [7, 8],
            "violations": {"lost": 2},
            "machine": "2 × CPU",
            **STAMP,
        },
        "adoption": {
            "jobs": 200,
            "restarts": 3,
            "median_s": 1.5,
            "slowest_s": 6.1,
            "goal_s": 5,
            "machine": "4 × CPU",
            **STAMP,
            "commit": "def456+",
        },
    },
    "tests": [
        {"test": "t.py::test_a_kill", "outcome": "passed", **STAMP},
        {"test": "t.py::test_more[x]", "outcome": "failed", **STAMP},
        {"test": "t.py::test_more[y]", "outcome": "passed", **STAMP},
        {"test": "t.py::test_that_is_gone", "outcome": "failed", **STAMP},
    ],
}
NAMED = {
    "t.py::test_a_kill": ([1, 2], ""),
    "t.py::test_more": ([2], "Killed."),
    "t.py::test_new": ([2, 3], "New."),
}


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "faults.json"
    path.write_text(json.dumps(RUN))
    monkeypatch.setattr(promises, "DATA", path)
    monkeypatch.setattr(rows, "named", lambda: NAMED)


@pytest.mark.usefixtures("written")
def test_the_figures_are_those_of_the_run() -> None:
    said = dict(promises.kills("en"))

    assert said["processes killed at random"] == "300 (agent 200, server 100)"
    assert said["processes killed at crash points"] == "40; each of 2 points at least 19 times"
    assert said["accepted jobs lost"] == "**2**"
    assert said["attempts launched twice"] == "**0**"
    slowest = "adoption of 200 running jobs, slowest of 3 restarts"
    assert said[slowest] == "6.1 s (median 1.5 s, goal 5 s: not met)"
    assert said["seeds"] == "7, 8"
    assert said["run of the kills"] == "abc123 2026-11-30, 2 × CPU"
    assert said["run of the adoption"] == "def456+ 2026-11-30, 4 × CPU"
    assert dict(promises.kills("zh"))["已接受却丢失的作业"] == "**2**"


@pytest.mark.usefixtures("written")
def test_a_fault_that_was_not_survived_is_shown() -> None:
    first, second, *_ = promises.faults("en")

    assert (first[0], *first[2:]) == (1, "a kill", "1 passed · abc123 2026-11-30")
    assert (second[0], second[2]) == (2, "a kill · Killed. · New.")
    assert second[3] == "2 passed, 1 failed, 1 not run · abc123 2026-11-30"


@pytest.mark.usefixtures("written")
def test_a_fault_that_was_not_run_is_shown() -> None:
    _, _, third, fourth, *_ = promises.faults("en")

    assert (third[0], *third[2:]) == (3, "New.", "1 not run")
    assert (fourth[0], *fourth[2:]) == (4, "–", "no test yet")
    assert [row[0] for row in promises.faults("zh")] == list(rows.FAULTS)
    assert [row[3] for row in promises.faults("zh")][2:4] == ["1 未运行", "尚无测试"]


def test_without_a_run_the_page_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promises, "DATA", tmp_path / "none.json")

    assert dict(promises.kills("en")) == {"no run is recorded": "make faults-long"}
    assert not any("passed" in row[3] for row in promises.faults("en"))


def test_everything_that_the_checker_finds_has_words() -> None:
    assert {invariant for _, invariant in DOCTORED.values()} == set(promises.INVARIANTS)
    assert len(checker.RULES) == len(set(checker.RULES))
