"""The process engine when agents, shims, servers and machines die: nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from danlu.engines.process import task
from danlu.model.errors import EngineError
from danlu.model.reason import ReasonCode
from danlu.node import identity, tree
from danlu.node.directory import publish_json
from danlu.ports import task_directory as files
from danlu.ports.engine import Phase, Ref
from tests.contract.engines import (
    ProcessHouse,
    finish,
    new_ref,
    said,
    see,
    whole_log,
)
from tests.contract.tasks import (
    FOREVER,
    SLOW,
    agent_of,
    kill,
    late_agent,
    planned,
    read,
    shim_of,
    start,
    survivors,
    wait,
)

OTHER_BOOT = "00000000-0000-0000-0000-000000000000"


def test_nothing_is_lost_with_the_agent(house: ProcessHouse) -> None:
    """(fault 2)"""
    ref = start(house, SLOW)
    said(house, ref, b"begin")
    kill(agent_of(house, ref))
    seen = finish(house, ref)
    assert seen.exit is not None
    assert (seen.exit.exit_code, seen.exit.problem, seen.problem) == (4, None, None)
    assert whole_log(house, ref) == b"begin\nend\n"


def test_the_task_goes_on_when_agent_and_server_are_gone(house: ProcessHouse) -> None:
    """(faults 1, 2)"""
    ref = start(house, SLOW)
    said(house, ref, b"begin")
    house.engine.close()
    kill(agent_of(house, ref))
    wait((house.directory(ref) / files.EXIT).exists)
    assert not (house.directory(ref) / files.DONE).exists()
    house.restart()
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.exit_code == 4
    assert whole_log(house, ref) == b"begin\nend\n"


def test_without_its_shim_the_task_ends_at_once(house: ProcessHouse) -> None:
    """(fault 3)"""
    ref = start(
        house,
        """
        import os, time
        print("up", flush=True)
        os.fork()
        os.setpgid(0, 0) if os.fork() == 0 else None
        while True:
            time.sleep(60)
        """,
    )
    said(house, ref, b"up")
    wait(lambda: len(survivors(house, ref)) >= 4)
    kill(shim_of(house, ref))
    seen = finish(house, ref)
    assert seen.exit is not None
    assert (seen.exit.problem, seen.exit.signal) == (ReasonCode.AGENT_LOST, "SIGKILL")
    assert not survivors(house, ref)
    assert whole_log(house, ref) == b"up\n"


def test_agent_and_shim_killed_together_end_the_task(house: ProcessHouse) -> None:
    """(fault 4)"""
    ref = start(
        house,
        """
        import os, time
        if os.fork() == 0:
            os.setsid()
        print("up", flush=True)
        while True:
            time.sleep(60)
        """,
    )
    wait(lambda: house.engine.logs(ref, 0).data == b"up\nup\n")
    kill(agent_of(house, ref), shim_of(house, ref))
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.AGENT_LOST
    assert not survivors(house, ref)


def test_the_program_dies_with_all_who_watch_it(house: ProcessHouse) -> None:
    """(fault 4)"""
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    house.engine.close()
    kill(agent_of(house, ref), shim_of(house, ref))
    wait(lambda: not survivors(house, ref))
    house.restart()
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.AGENT_LOST


def test_agents_that_keep_dying_lose_nothing_either(house: ProcessHouse) -> None:
    ref = start(house, SLOW)
    said(house, ref, b"begin")
    killed = 0
    while (seen := see(house, ref)).phase is not Phase.DONE:
        killed += killed < 3 and identity.send(agent_of(house, ref), signal.SIGKILL)
        time.sleep(0.05)
    assert killed == 3
    assert seen.exit is not None
    assert seen.exit.exit_code == 4
    assert whole_log(house, ref) == b"begin\nend\n"


# ---------------------------------------------------------------- identities


def test_a_machine_that_was_restarted_has_lost_the_task(house: ProcessHouse) -> None:
    """(fault 11)"""
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    house.engine.close()
    kill(agent_of(house, ref), shim_of(house, ref))
    wait(lambda: not survivors(house, ref))
    before_boot(house, ref)
    house.restart()
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.problem is ReasonCode.REBOOTED


def before_boot(house: ProcessHouse, ref: Ref, innocent: int | None = None) -> None:
    """Make a task's records those of an earlier boot; its pids are another process's now."""
    directory = house.directory(ref)
    for name in (files.AGENT, files.TASK):
        record = json.loads((directory / name).read_text("utf-8"))
        for who in ("agent", "shim", "program"):
            if who in record:
                record[who]["boot_id"] = OTHER_BOOT
                record[who]["pid"] = innocent or record[who]["pid"]
        publish_json(directory, name, record)


@pytest.mark.parametrize("boot", ["this", "earlier"])
def test_a_pid_that_is_used_again_is_never_signalled(house: ProcessHouse, boot: str) -> None:
    """(fault 12)"""
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    house.engine.close()
    kill(agent_of(house, ref), shim_of(house, ref))
    wait(lambda: not survivors(house, ref))
    with family() as innocent:
        before_boot(house, ref, innocent.pid)
        if boot == "this":
            for name in (files.AGENT, files.TASK):
                path = house.directory(ref) / name
                path.write_text(
                    path.read_text("utf-8").replace(OTHER_BOOT, identity.boot_id()), "utf-8"
                )
        house.restart()
        house.engine.stop(ref, 0)
        finish(house, ref)
        house.engine.remove(ref)
        assert innocent.poll() is None
        assert tree.descendants({innocent.pid})


@contextmanager
def family() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is none of ours, with a child."""
    with subprocess.Popen(["sh", "-c", "sleep 600 & wait"]) as parent:
        try:
            wait(lambda: tree.descendants({parent.pid}))
            yield parent
        finally:
            for process in tree.descendants({parent.pid}):
                identity.send_to(process, signal.SIGKILL)
            parent.kill()


def test_a_second_agent_leaves_at_once(house: ProcessHouse) -> None:
    """(fault 6)"""
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    assert late_agent(house, ref) == files.BUSY_EXIT
    assert see(house, ref).phase is Phase.RUNNING


def test_what_was_never_begun_never_begins(house: ProcessHouse) -> None:
    """(fault 5)"""
    ref = start(house, "print('ran')")
    finish(house, ref)
    directory = house.directory(ref)
    plan = (directory / files.PLAN).read_bytes()
    house.engine.remove(ref)
    directory.mkdir()
    (directory / files.PLAN).write_bytes(plan)
    assert see(house, ref).phase is Phase.LAUNCHING  # somebody may be about to begin
    os.utime(directory / files.PLAN, (1, 1))
    assert see(house, ref).phase is Phase.ABSENT
    assert house.engine.known() == []
    assert late_agent(house, ref) != 0
    assert see(house, ref).phase is Phase.ABSENT


def test_a_directory_without_an_agent_is_taken_up_by_a_launch(house: ProcessHouse) -> None:
    """(faults 5, 6; case 28)"""
    ref = new_ref()
    order = planned(house, ref, "print('ran')")
    house.engine.launch([order])
    finish(house, ref)
    directory = house.directory(ref)
    plan = (directory / files.PLAN).read_bytes()
    house.engine.remove(ref)
    directory.mkdir()
    (directory / files.PLAN).write_bytes(plan)
    os.utime(directory / files.PLAN, (1, 1))
    house.restart()
    house.engine.launch([order])
    finish(house, ref)
    assert whole_log(house, ref) == b"ran\n"


@contextmanager
def starved() -> Iterator[None]:
    """Nothing more can be opened."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_who_cannot_look_says_nothing_of_a_task(house: ProcessHouse) -> None:
    """(fault 57) Neither that it is gone, nor that its agent has died."""
    ref = start(house, FOREVER)
    said(house, ref, b"up")
    assert see(house, ref).phase is Phase.RUNNING
    for phase in (Phase.RUNNING, Phase.LAUNCHING):
        with starved():
            seen = house.engine.observe([ref])[ref]
        assert (seen.unreachable, seen.phase, seen.exit) == (True, phase, None)
        house.restart()  # the next server has not seen it yet
    assert see(house, ref).phase is Phase.RUNNING
    assert read(house, ref, files.AGENT)["starts"] == 1, "nobody took its agent for dead"


def test_agents_that_cannot_start_are_an_error_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    house = ProcessHouse(tmp_path, own_starter=True)
    with pytest.raises(EngineError):
        start(house, "print('ran')")
    assert house.engine.known() == []
    house.close()


def test_an_agent_that_always_crashes_is_given_up(
    house: ProcessHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(case 26)"""
    monkeypatch.setattr(task, "REVIVE_AFTER_S", (0.0, 0.1, 0.1))
    ref = new_ref()
    order = planned(house, ref, "print('ran')")
    house.engine.launch([order])
    said(house, ref, b"ran")
    finish(house, ref)
    (house.directory(ref) / files.DONE).unlink()
    (house.directory(ref) / files.AGENT_ERRORS).unlink()
    (house.directory(ref) / files.AGENT_ERRORS).mkdir()  # no agent gets beyond its first step
    house.restart()
    seen = finish(house, ref)
    assert seen.exit is not None
    assert seen.exit.exit_code == 0
    assert seen.problem is ReasonCode.OUTPUT_FAILED
