from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.services import ROOT

PROGRAM = [sys.executable, str(ROOT / "scripts" / "beside.py")]


def beside(*lines: str) -> subprocess.CompletedProcess[str]:
    commands = [["sh", "-c", line] for line in lines]
    words = [*PROGRAM, *commands[0]]
    for command in commands[1:]:
        words += ["--", *command]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_all_run_at_once_and_the_later_ones_are_told_at_the_end(tmp_path: Path) -> None:
    """Each waits for the next, so one after the other would never end."""
    meet = "touch {0}; until [ -e {1} ]; do sleep 0.01; done; echo {2}"
    a, b, c = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    done = beside(
        meet.format(a, b, "first"),
        meet.format(b, c, "second; echo and more >&2"),
        meet.format(c, a, "third"),
    )
    assert (done.returncode, done.stdout) == (0, "first\nsecond\nand more\nthird\n")


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (["exit 3", "exit 0"], 3),
        (["exit 0", "exit 4"], 4),
        (["exit 3", "exit 4"], 3),
        (["exit 0", "exit 0", "exit 5"], 5),
        (["kill -9 $$", "exit 0"], 137),
        (["exit 0"], 0),
    ],
)
def test_a_failure_of_any_is_one(lines: list[str], status: int) -> None:
    assert beside(*lines).returncode == status


def test_ctrl_c_ends_both_and_waits_for_them(tmp_path: Path) -> None:
    line = "trap 'sleep 0.2; touch {0}; exit 1' INT; touch {1}; while :; do sleep 0.05; done"
    ended, begun = [tmp_path / "1", tmp_path / "2"], [tmp_path / "3", tmp_path / "4"]
    lines = [line.format(*pair) for pair in zip(ended, begun, strict=True)]
    words = [*PROGRAM, "sh", "-c", lines[0], "--", "sh", "-c", lines[1]]
    with subprocess.Popen(words, start_new_session=True) as process:
        while not all(file.exists() for file in begun):
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait() == 1
    assert all(file.exists() for file in ended)
