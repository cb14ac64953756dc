"""What an instance says of its own use."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from danlu_notebook import activity
from danlu_notebook.activity import Activity, below, latest
from danlu_notebook.lab import Lab

HANG_S = 60.0
QUIET: dict[str, object] = {"/api/kernels": [], "/api/terminals": []}


def ask_of(answers: Mapping[str, object]) -> activity.Ask:
    def ask(path: str) -> bytes | None:
        plain, _, query = path.partition("?")
        assert query == "no_track_activity=1", "looking must not be taken for a use"
        found = answers[plain]
        return None if found is None else json.dumps(found).encode()

    return ask


def looked(folder: Path, answers: Mapping[str, object], **options: Any) -> Any:
    Activity(str(folder), options.get("apart", set()), ask_of(answers)).look()
    return json.loads((folder / "activity.json").read_text())


def test_nothing_open_is_active_since_the_start(tmp_path: Path) -> None:
    said = looked(tmp_path, QUIET)

    for name in ("processes", "kernels", "terminals"):
        assert abs(said[name]["active_at"] - said["at"]) < 60_000
    assert said["kernels"]["goes_on"] is False


@pytest.mark.parametrize("state", ["busy", "starting", "restarting"])
def test_a_kernel_that_executes_goes_on_whatever_its_last_activity(
    tmp_path: Path, state: str
) -> None:
    """(case 84) A cell that sleeps for a day moves no timestamp."""
    old = {"execution_state": "idle", "last_activity": "2020-01-01T00:00:00.000000Z"}
    said = looked(tmp_path, {**QUIET, "/api/kernels": [old, {**old, "execution_state": state}]})

    assert said["kernels"]["goes_on"] is True
    assert said["kernels"]["detail"] == "2 open, 1 busy"


def test_idle_kernels_and_terminals_say_when_they_were_used_last() -> None:
    listed: list[dict[str, object]] = [
        {"last_activity": "2026-11-30T10:00:00.500000Z"},
        {"last_activity": "2026-11-30T09:00:00Z"},
    ]

    assert latest(listed, 0) == 1796032800500
    assert latest(listed, 1796032800501) == 1796032800501
    assert latest([], 5) == 5


@pytest.mark.parametrize("listed", [[{}], [{"last_activity": "yesterday"}], [{"last_activity": 5}]])
def test_a_time_that_cannot_be_read_is_unknown(listed: list[dict[str, object]]) -> None:
    """(case 86) Another release of Jupyter may say it in another way: that is not idle."""
    assert latest(listed, 1) is None


@pytest.mark.parametrize("answer", [None, "text", {"a": 1}, [1]])
def test_a_lab_that_does_not_answer_is_unknown(tmp_path: Path, answer: object) -> None:
    said = looked(tmp_path, {"/api/kernels": answer, "/api/terminals": answer})

    assert said["kernels"]["active_at"] is None
    assert said["terminals"]["active_at"] is None


def test_a_process_that_works_is_seen_and_one_that_waits_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "EVERY_S", 0.0)
    looks = Activity(str(tmp_path), set(), ask_of(QUIET))
    waits = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    looks.look()
    works = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        ends = time.monotonic() + HANG_S
        while True:
            time.sleep(0.3)
            looks.look()
            said = json.loads((tmp_path / "activity.json").read_text())
            if "while True" in said["processes"]["detail"]:
                break
            assert time.monotonic() < ends, said
        assert {waits.pid, works.pid} <= set(said["pids"])
        apart = Activity(str(tmp_path), {works.pid}, ask_of(QUIET))
        apart.look()
        time.sleep(0.3)
        apart.look()
        said = json.loads((tmp_path / "activity.json").read_text())
        assert "while True" not in said["processes"]["detail"]
    finally:
        for process in (waits, works):
            process.kill()
            process.communicate()


def test_only_its_own_are_below_it() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        found = below(os.getpid())
        assert child.pid in found
        assert os.getppid() not in found
        assert child.pid not in below(child.pid)
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize(
    ("status", "said"), [(200, b"[1]"), (404, b"[]"), (403, None), (500, None)]
)
def test_a_lab_without_terminals_has_none_and_one_that_refuses_is_unknown(
    tmp_path: Path, status: int, said: bytes | None
) -> None:
    door = socket.socket(socket.AF_UNIX)
    door.bind(str(tmp_path / "lab.sock"))
    door.listen()

    def answer() -> None:
        caller, _ = door.accept()
        with caller:
            caller.recv(4096)
            caller.sendall(b"HTTP/1.0 %d x\r\nContent-Length: 3\r\n\r\n[1]" % status)

    answering = threading.Thread(target=answer)
    answering.start()
    try:
        assert Lab(str(tmp_path), "token", "/").listed("/api/terminals") == said
    finally:
        answering.join(HANG_S)
        door.close()
