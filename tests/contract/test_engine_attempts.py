"""Attempts of one job follow each other on every engine: the earlier one is fenced first."""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from danlu.engines.process import ending
from danlu.model.errors import EngineError
from danlu.node import identity
from danlu.node.directory import TaskDirectory
from danlu.ports import task_directory as files
from danlu.ports.engine import Launch, Phase, Ref
from tests.contract.engines import (
    HANG_S,
    HOUSES,
    House,
    ProcessHouse,
    Program,
    finish,
    new_ref,
    running,
    said,
    see,
    whole_log,
)
from tests.contract.tasks import agent_of, kill, late_agent, planned, shim_of, survivors, wait

FOREVER = Program(out=b"up\n", runs_s=None, on_term="ignore")


@pytest.fixture(params=sorted(HOUSES))
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    made = HOUSES[request.param](tmp_path, request)
    yield made
    made.close()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[ProcessHouse]:
    made = ProcessHouse(tmp_path)
    yield made
    made.close()


def following(ref: Ref) -> Ref:
    """The same task of the next attempt."""
    return replace(ref, attempt=ref.attempt + 1, token=secrets.token_hex(16))


def begin(house: House, ref: Ref, program: Program) -> None:
    house.engine.launch([Launch(ref, "here", house.plan(ref, program))])


def test_a_launch_ends_the_attempt_before_it(house: House) -> None:
    """(case 33) (case 22) However it came to be taken for dead: two never run side by side."""
    first = new_ref()
    begin(house, first, FOREVER)
    running(house, first)
    said(house, first, b"up")
    second = following(first)

    begin(house, second, Program(out=b"again\n"))

    assert finish(house, first).phase is Phase.DONE
    assert finish(house, second).phase is Phase.DONE
    assert whole_log(house, second) == b"again\n"


def test_the_log_of_every_attempt_is_kept(house: House) -> None:
    first = new_ref()
    refs = [first, following(first), following(following(first))]
    for number, ref in enumerate(refs):
        begin(house, ref, Program(out=f"attempt {number}\n".encode(), exit_code=1))
        finish(house, ref)
    house.restart()
    logs = [whole_log(house, ref) for ref in refs]
    assert logs == [b"attempt 0\n", b"attempt 1\n", b"attempt 2\n"]


def test_an_attempt_that_is_over_is_not_launched(house: House) -> None:
    """A server that was asleep for a while wakes up and goes on where it was."""
    first = new_ref()
    second = following(first)
    begin(house, second, Program())
    with pytest.raises(EngineError):
        begin(house, first, Program())
    assert see(house, first).phase is Phase.ABSENT
    assert finish(house, second).exit is not None


def test_jobs_are_not_fenced_by_each_other(house: House) -> None:
    other, longer = new_ref("a-1"), new_ref("a-1-1")
    for ref in (other, longer):
        begin(house, ref, Program(out=b"up\n", runs_s=None))
        running(house, ref)
    begin(house, replace(new_ref("a"), attempt=2), Program())
    begin(house, replace(new_ref("a-1"), attempt=2), Program())
    assert see(house, longer).phase is Phase.RUNNING


# ---------------------------------------------------------------- the process engine's own


def test_exported_logs_stand_side_by_side(machine: ProcessHouse, tmp_path: Path) -> None:
    first = new_ref()
    place = tmp_path / "logs"
    for number, ref in enumerate((first, following(first)), 1):
        plan = machine.plan(ref, Program(out=f"attempt {number}\n".encode()))
        plan = replace(plan, log_url=f"file://{place}")
        machine.engine.launch([Launch(ref, "here", plan)])
        finish(machine, ref)
    name = f"modelarts-job-{first.job_id}-worker-0"
    texts = {file.name: file.read_text() for file in place.iterdir() if file.is_file()}
    assert texts == {f"{name}.log": "attempt 1\n", f"{name}-attempt-2.log": "attempt 2\n"}


@pytest.mark.parametrize("died", ["agent", "shim", "both", "nobody"])
def test_a_late_starter_of_an_earlier_attempt_exits(machine: ProcessHouse, died: str) -> None:
    """(faults 2, 4, 6) Whatever was left of it: it is ended, and nothing begins there again."""
    first = new_ref()
    text = "import os, time; os.fork(); print('up', flush=True); time.sleep(600)"
    machine.engine.launch([planned(machine, first, text)])
    wait(lambda: machine.engine.logs(first, 0).data == b"up\nup\n")
    victims = {"agent": [agent_of], "shim": [shim_of], "both": [agent_of, shim_of]}
    kill(*(of(machine, first) for of in victims.get(died, [])))
    second = following(first)

    begin(machine, second, Program(out=b"again\n"))

    assert not survivors(machine, first)
    assert late_agent(machine, first) == files.BUSY_EXIT
    assert see(machine, first).phase is Phase.DONE
    assert not survivors(machine, first)
    assert whole_log(machine, first) == b"up\nup\n"
    finish(machine, second)
    assert whole_log(machine, second) == b"again\n"


def test_a_directory_that_nobody_began_is_fenced_too(machine: ProcessHouse) -> None:
    """(fault 5) The server died between the directory and the agent; the starter is slow."""
    first = new_ref()
    machine.engine.launch([planned(machine, first, "print('ran')")])
    finish(machine, first)
    plan = (machine.directory(first) / files.PLAN).read_bytes()
    machine.engine.remove(first)
    machine.directory(first).mkdir()
    (machine.directory(first) / files.PLAN).write_bytes(plan)

    begin(machine, following(first), Program())

    assert late_agent(machine, first) == files.BUSY_EXIT
    assert not (machine.directory(first) / files.LOG).exists()


def test_a_launch_waits_for_nobody_whose_outputs_are_stored(machine: ProcessHouse) -> None:
    """An agent that only tidies up is given the time for it, and ended if it takes too long."""
    first = new_ref()
    begin(machine, first, Program())
    finish(machine, first)
    directory = TaskDirectory(str(machine.directory(first)))
    wait(lambda: is_free(directory))
    with subprocess.Popen([sys.executable, "-c", HOLDS, directory.file(files.WATCH)]) as holder:
        wait(lambda: not is_free(directory))
        with pytest.raises(EngineError):
            launch_impatiently(machine, following(first))
        holder.kill()
    begin(machine, following(first), Program())
    assert late_agent(machine, first) == files.BUSY_EXIT


def is_free(directory: TaskDirectory) -> bool:
    """Whether nobody is in charge of a task."""
    lock = directory.take(files.WATCH)
    if lock is not None:
        os.close(lock)
    return lock is not None


HOLDS = """
import fcntl, sys, time
with open(sys.argv[1]) as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    time.sleep(600)
"""


def launch_impatiently(house: ProcessHouse, ref: Ref) -> None:
    """A stranger holds the lock, which no killing of the task's own processes frees."""
    before, ending.LIMIT_S = ending.LIMIT_S, 0.1
    try:
        begin(house, ref, Program())
    finally:
        ending.LIMIT_S = before


def test_no_lock_is_free_while_a_program_runs(machine: ProcessHouse) -> None:
    """What fencing rests on: the shim holds the attempt's lock as long as its program lives."""
    ref = new_ref()
    machine.engine.launch([planned(machine, ref, "import time; time.sleep(600)")])
    running(machine, ref)
    kill(agent_of(machine, ref))
    with (machine.directory(ref) / files.LOCK).open() as lock, pytest.raises(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    shim = shim_of(machine, ref)
    assert identity.send(shim, signal.SIGKILL)
    end = time.monotonic() + HANG_S
    while identity.alive(shim):
        assert time.monotonic() < end
    finish(machine, ref)
