"""The promises page shows what the fault run wrote, the bad with the good."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import promises
from tests.faults import checker
from tests.faults.test_checker import DOCTORED

RUN: dict[str, Any] = {
    "machine": {"processors": 2, "system": "Linux 6.1", "python": "3.11.7"},
    "figures": {
        "kills": {
            "jobs": 200,
            "kills": 300,
            "kills_by_target": {"agent": 200, "server": 100},
            "kills_at_points": 40,
            "points": {"agent.locked": 19, "shim.ended": 21},
            "steps": 1234,
            "seed": 7,
            "violations": {"lost": 2},
        },
        "adoption": {"jobs": 200, "restarts": 3, "median_s": 1.5, "p99_s": 6.1, "goal_s": 5},
    },
    "tests": [
        {"faults": [1, 2], "test": "t.py::test_a_kill", "how": "", "outcome": "passed"},
        {"faults": [2], "test": "t.py::test_more[x]", "how": "Killed.", "outcome": "failed"},
    ],
}


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "faults.json"
    path.write_text(json.dumps(RUN))
    monkeypatch.setattr(promises, "DATA", path)


@pytest.mark.usefixtures("written")
def test_the_figures_are_those_of_the_run() -> None:
    rows = dict(promises.kills("en"))

    assert rows["processes killed at random"] == "300 (agent 200, server 100)"
    assert rows["processes killed at crash points"] == "40; each of 2 points at least 19 times"
    assert rows["accepted jobs lost"] == "**2**"
    assert rows["attempts launched twice"] == "**0**"
    assert "goal 5 s: not met" in str(rows["adoption of 200 running jobs, p99"])
    assert dict(promises.kills("zh"))["已接受却丢失的作业"] == "**2**"


@pytest.mark.usefixtures("written")
def test_a_fault_that_was_not_survived_is_shown() -> None:
    first, second = promises.faults("en")

    assert (first[0], first[2], first[3]) == (1, "a kill", "passed (1)")
    assert (second[0], second[2]) == (2, "a kill · Killed.")
    assert second[3] == "1 passed, 0 skipped, 1 failed"


def test_without_a_run_the_page_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promises, "DATA", tmp_path / "none.json")

    assert dict(promises.kills("en")) == {"no run is recorded": "make faults"}
    assert list(promises.faults("en")) == []


def test_everything_that_the_checker_finds_has_words() -> None:
    assert {invariant for _, invariant in DOCTORED.values()} == set(promises.INVARIANTS)
    assert len(checker.RULES) == len(set(checker.RULES))
