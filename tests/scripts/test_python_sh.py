"""The interpreter that everything starts from is found, or what is missing is said in one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.services import ROOT


def run(path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = ["/bin/sh", str(ROOT / "scripts" / "python.sh"), "-c", "print('ran')"]
    variables = {"PATH": str(path), **environment}
    return subprocess.run(command, capture_output=True, text=True, env=variables, check=False)


def write_program(path: Path, body: str) -> None:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def test_a_name_with_nothing_behind_it_is_passed_over(tmp_path: Path) -> None:
    write_program(tmp_path / "python3.11", "exit 127")
    write_program(tmp_path / "python3", f'exec "{sys.executable}" "$@"')

    assert run(tmp_path).stdout == "ran\n"


@pytest.mark.parametrize(
    ("programs", "words"),
    [
        ({}, "Python 3.11 or newer is needed. Install it"),
        ({"python3": "echo 3.9"}, "needed, but python3 is Python 3.9. Install it"),
        (
            {"python3": 'case "$2" in *version_info*) echo 3.12 ;; *) exit 1 ;; esac'},
            "Install the missing part: apt-get install python3.12-venv",
        ),
    ],
)
def test_what_is_missing_is_said_in_one_line(
    tmp_path: Path, programs: dict[str, str], words: str
) -> None:
    for name, body in programs.items():
        write_program(tmp_path / name, body)

    done = run(tmp_path)

    assert done.returncode == 1
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_named_interpreter_is_not_replaced_by_another(tmp_path: Path) -> None:
    write_program(tmp_path / "python3", f'exec "{sys.executable}" "$@"')

    done = run(tmp_path, PYTHON="/nowhere/python")

    assert done.returncode == 1
    assert "PYTHON=/nowhere/python does not start" in done.stderr
    assert run(tmp_path, PYTHON=sys.executable).stdout == "ran\n"
