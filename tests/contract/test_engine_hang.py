"""A task in which nothing moves: seen, its stacks recorded before anything is done about it."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from danlu.node import identity, stacks
from danlu.node.directory import TaskDirectory
from danlu.ports import task_directory as files
from danlu.ports.engine import Ref, StopReason
from tests.contract.engines import ProcessHouse, finish, said, see, until
from tests.contract.tasks import keys, planned, read, start, survivors, wait
from tests.contract.test_engine_attempts import following

AFTER_S = 2

WORKS = """
    import os, time
    def training_step():
        print("up", os.getpid(), flush=True)
        while True:
            time.sleep(0.05)
            if os.path.exists(os.environ.get("GO", "/nonexistent")):
                print("goes on", flush=True)
                time.sleep(600)
    training_step()
"""


def stack_text(house: ProcessHouse, ref: Ref) -> str:
    path = house.directory(ref) / files.STACKS
    wait(path.exists)
    return path.read_text("utf-8")


def test_a_stopped_rank_is_found_and_its_stack_kept(house: ProcessHouse) -> None:
    """(fault 53)"""
    text = """
        import time
        def training_step():
            n = 0
            while True:
                print(n, flush=True)
                n += 1
                time.sleep(0.05)
        training_step()
    """
    ref = start(house, text, hang_after_s=AFTER_S)
    said(house, ref, b"1\n")
    assert see(house, ref).hung_at is None
    program = read(house, ref, files.TASK)["program"]
    assert identity.send(program, signal.SIGSTOP)

    seen = until(house, ref, lambda seen: seen.hung_at is not None)

    assert seen.exit is None, "nobody has done anything about it"
    assert seen.started_at is not None
    assert seen.hung_at is not None
    assert seen.hung_at >= seen.started_at
    assert "task-hangs" in keys(seen)
    kept = stack_text(house, ref)
    assert f"process {program['pid']} (T)" in kept
    if stacks.find(house.engine._packages):
        assert "training_step" in kept
    else:
        assert "py-spy is not installed" in kept

    assert identity.send(program, signal.SIGCONT)
    until(house, ref, lambda seen: seen.hung_at is None)
    assert "task-moves" in keys(see(house, ref))
    house.engine.stop(ref, 0)
    finish(house, ref)


def test_every_process_of_a_rank_is_shown(house: ProcessHouse) -> None:
    """A data loader's worker may be what it waits for."""
    text = """
        import os, time
        def loader_worker():
            time.sleep(600)
        def main_process():
            print("up", flush=True)
            time.sleep(600)
        loader_worker() if os.fork() == 0 else main_process()
    """
    ref = start(house, text, hang_after_s=AFTER_S)
    until(house, ref, lambda seen: seen.hung_at is not None)
    kept = stack_text(house, ref)
    assert kept.count("--- process") >= 2
    if stacks.find(house.engine._packages):
        assert "loader_worker" in kept
        assert "main_process" in kept
    house.engine.stop(ref, 0)
    finish(house, ref)


def test_what_is_stopped_for_a_hang_shows_its_stack_first(house: ProcessHouse) -> None:
    """Another rank hangs; this one works, and may be what that one waits for."""
    ref = start(house, WORKS)
    said(house, ref, b"up")
    house.engine.stop(ref, 5, StopReason.HANG)
    finish(house, ref)
    assert "--- process" in stack_text(house, ref)
    notice = json.loads((house.directory(ref) / files.NOTICE).read_text("utf-8"))
    assert notice["reason"] == "hang"


@pytest.mark.parametrize("reason", [StopReason.STOP, StopReason.PREEMPTION, StopReason.GANG])
def test_a_program_can_read_why_it_is_stopped(house: ProcessHouse, reason: StopReason) -> None:
    """(case 66) SIGTERM says nothing; the file does. The agent may die in between."""
    text = """
        import json, os, signal, sys, time
        def told(*_):
            print(json.load(open(os.environ["DANLU_STOP_FILE"]))["reason"], flush=True)
            sys.exit(0)
        signal.signal(signal.SIGTERM, told)
        print("up", flush=True)
        time.sleep(600)
    """
    ref = start(house, text)
    said(house, ref, b"up")
    house.engine.stop(ref, 30, reason)
    finish(house, ref)
    assert house.engine.logs(ref, 0).data == f"up\n{reason}\n".encode()


def test_a_task_that_works_does_not_hang(house: ProcessHouse) -> None:
    text = """
        import time
        for n in range(80):
            print(n, flush=True)
            time.sleep(0.05)
    """
    ref = start(house, text, hang_after_s=AFTER_S)
    seen = finish(house, ref)
    assert "task-hangs" not in keys(seen)
    assert seen.hung_at is None


def test_nothing_is_watched_unless_it_is_wanted(house: ProcessHouse) -> None:
    ref = start(house, WORKS)
    said(house, ref, b"up")
    wait(lambda: len(house.engine.stats([ref])[ref]) >= 3)
    assert not (house.directory(ref) / files.HUNG).exists()


def test_another_agent_does_not_record_the_same_hang_again(house: ProcessHouse) -> None:
    ref = start(house, WORKS, hang_after_s=AFTER_S)
    until(house, ref, lambda seen: seen.hung_at is not None)
    before = stack_text(house, ref)
    agent = read(house, ref, files.AGENT)["agent"]
    assert identity.send(agent, signal.SIGKILL)
    until(house, ref, lambda _seen: read(house, ref, files.AGENT)["agent"] != agent)
    count = len(house.engine.stats([ref])[ref])
    wait(lambda: len(house.engine.stats([ref])[ref]) > count + 3)
    assert stack_text(house, ref) == before
    assert keys(see(house, ref)).count("task-hangs") == 1


def test_a_hung_attempt_gives_way_to_the_next(house: ProcessHouse) -> None:
    ref = start(house, WORKS, hang_after_s=AFTER_S)
    said(house, ref, b"up")
    program = read(house, ref, files.TASK)["program"]
    assert identity.send(program, signal.SIGSTOP)
    until(house, ref, lambda seen: seen.hung_at is not None)
    second = following(ref)
    house.engine.launch([planned(house, second, "print('again')")])
    assert not survivors(house, ref)
    finish(house, second)
    assert see(house, ref).hung_at is None


def test_without_py_spy_the_kernels_view_is_kept_and_said_so(
    house: ProcessHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacks, "find", lambda _packages="": "")
    ref = start(house, WORKS)
    said(house, ref, b"up")
    pid = read(house, ref, files.TASK)["program"]["pid"]
    process = identity.read(pid)
    assert process is not None
    directory = TaskDirectory(str(house.directory(ref)))
    assert stacks.record(directory, [process]) == 0
    kept = stack_text(house, ref)
    assert "py-spy is not installed" in kept
    assert f"thread {pid}:" in kept
    assert Path(sys.executable).name in kept


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGUSR2"])
def test_a_job_chooses_the_signal_that_asks_it_to_end(house: ProcessHouse, name: str) -> None:
    """(case 65) Some libraries take a signal for themselves; SIGTERM is the usual one."""
    text = """
        import os, signal, sys, time
        def told(number, _):
            print(signal.Signals(number).name, flush=True)
            sys.exit(0)
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(each, told)
        print("up", flush=True)
        while True:
            time.sleep(0.1)
    """
    changes = {} if name == "SIGTERM" else {"stop_signal": name}
    ref = start(house, text, **changes)
    said(house, ref, b"up")
    house.engine.stop(ref, 30)
    finish(house, ref)
    assert house.engine.logs(ref, 0).data == f"up\n{name}\n".encode()
