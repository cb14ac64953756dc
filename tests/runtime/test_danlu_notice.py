"""What an instance does with what it is told of its end."""

from __future__ import annotations

import json
import os
import pty
import select
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import danlu_notebook
from danlu_notebook import activity
from danlu_notebook.activity import Activity
from danlu_notebook.notice import Notices

HANG_S = 60.0
COMMAND = Path(danlu_notebook.__file__).parent / "bin" / "danlu-extend"


def tell(folder: Path, said: dict[str, Any]) -> Any:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(HANG_S)
        connection.connect(str(folder / "notice.sock"))
        connection.sendall(json.dumps(said).encode() + b"\n")
        return json.loads(connection.recv(65536))


def read(terminal: int, wanted: str) -> str:
    """What appears in a terminal, until `wanted` is there."""
    seen = b""
    ends = time.monotonic() + HANG_S
    while wanted.encode() not in seen:
        ready, _, _ = select.select([terminal], [], [], 0.2)
        seen += os.read(terminal, 65536) if ready else b""
        assert time.monotonic() < ends, seen
    return seen.decode()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Notices(str(tmp_path)).start()
    return tmp_path


def test_a_warning_is_written_into_every_terminal_once(folder: Path) -> None:
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        ["setsid", "--ctty", "/bin/sh", "-c", "echo here; exec sleep 1000"],
        stdin=theirs,
        stdout=theirs,
    )
    try:
        read(ours, "here")
        soon = {"warned": 10, "warning": ["stopped in 10 min", "10 分钟后停止"]}
        assert tell(folder, soon) == {"extend": False}
        seen = read(ours, "10 分钟后停止")
        tell(folder, soon)
        tell(folder, {"warned": 2, "warning": ["stopped in 2 min"]})
        seen += read(ours, "stopped in 2 min")
        assert seen.count("stopped in 10 min") == 1
    finally:
        shell.kill()
        shell.wait()
        os.close(ours)
        os.close(theirs)


def test_the_command_asks_and_shows_what_came_of_it(folder: Path) -> None:
    asking = subprocess.Popen(
        [COMMAND],
        env={
            "PATH": os.environ["PATH"],
            "DANLU_ENDPOINTS": str(folder),
            "MA_SCRIPT_INTERPRETER": sys.executable,
            "LANG": "C.UTF-8",
        },
        stdout=subprocess.PIPE,
    )
    ends = time.monotonic() + HANG_S
    while not tell(folder, {"warned": 0})["extend"]:
        assert time.monotonic() < ends
        time.sleep(0.05)
    tell(folder, {"warned": 0, "answer": ["Extended.", "已续期。"]})

    said, _ = asking.communicate(timeout=HANG_S)
    assert said.decode() == "Extended.\n已续期。\n"
    assert asking.returncode == 0
    assert tell(folder, {"warned": 0}) == {"extend": False}


def test_outside_of_a_notebook_the_command_says_so() -> None:
    environment = {"PATH": os.environ["PATH"], "MA_SCRIPT_INTERPRETER": sys.executable}
    done = subprocess.run([COMMAND], env=environment, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"no terminal of a notebook" in done.stderr


def test_our_own_writing_is_no_use_of_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JupyterLab sees bytes come out of a terminal, whoever has put them in."""
    monkeypatch.setattr(activity, "EVERY_S", 0)
    at = {"terminal": "2026-01-01T00:00:00Z"}
    wrote = {"at": 0}

    def ask(path: str) -> bytes:
        if path.startswith("/api/kernels"):
            return b"[]"
        return json.dumps([{"last_activity": at["terminal"]}]).encode()

    seen = Activity(str(tmp_path), set(), ask, lambda: wrote["at"])
    seen._began_at = 0

    def active_at() -> int:
        seen.look()
        said = json.loads((tmp_path / "activity.json").read_text())
        found: int = said["terminals"]["active_at"]
        return found

    before = active_at()
    at["terminal"] = "2026-01-01T05:00:00.200Z"
    wrote["at"] = before + 5 * 3_600_000
    assert active_at() == before
    at["terminal"] = "2026-01-01T05:01:00Z"
    assert active_at() == before + 5 * 3_600_000 + 60_000
