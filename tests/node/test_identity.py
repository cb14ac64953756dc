"""Processes by identity: who is alive, and who gets a signal."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from danlu.node import identity
from danlu.ports.task_directory import ProcessIdentity


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def of(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    found = identity.of(process.pid)
    assert found is not None
    return found


def test_a_process_is_alive_until_it_ends(sleeper: subprocess.Popen[bytes]) -> None:
    found = of(sleeper)
    assert identity.alive(found)
    assert identity.send(found, signal.SIGKILL)
    sleeper.wait()
    assert not identity.alive(found)
    assert not identity.send(found, signal.SIGKILL)
    assert identity.of(sleeper.pid) is None


def test_one_that_nobody_waited_for_is_not_alive(sleeper: subprocess.Popen[bytes]) -> None:
    found = of(sleeper)
    os.kill(sleeper.pid, signal.SIGKILL)
    while (process := identity.read(sleeper.pid)) is not None and process.state != "Z":
        time.sleep(0.001)
    assert process is not None
    assert not identity.alive(found)


@pytest.mark.parametrize(
    "change",
    [
        {"start_ticks": 1},
        {"boot_id": "00000000-0000-0000-0000-000000000000"},
        {"pid": 1 << 22},
        {"pid": -1},
        {"pid": 1 << 70},
    ],
)
def test_another_process_is_not_taken_for_it(
    sleeper: subprocess.Popen[bytes], change: dict[str, int | str]
) -> None:
    """(fault 12)"""
    other: ProcessIdentity = {**of(sleeper), **change}  # type: ignore[typeddict-item] # made up
    assert not identity.alive(other)
    assert not identity.send(other, signal.SIGKILL)
    assert identity.open_process(other) is None
    assert sleeper.poll() is None


def test_nobody_is_not_alive() -> None:
    assert not identity.alive(None)


def test_this_process_knows_itself() -> None:
    mine = identity.mine()
    assert mine["pid"] == os.getpid()
    assert identity.alive(mine)


def test_a_name_may_hold_anything() -> None:
    tail = b" S 1 2 3 0 -1 4194304 1 2 3 4 50 60 70 80 20 0 1 0 999 1000 42 0 0 0"
    for name in (b"sh", b"a) R 1 1", b"((", b") )", b"\xff\n"):
        process = identity.parse(b"7 (" + name + b")" + tail)
        assert process is not None
        assert (process.pid, process.parent, process.group, process.session) == (7, 1, 2, 3)
        assert (process.state, process.start_ticks, process.resident_pages) == ("S", 999, 42)
        assert (process.busy_ticks, process.reaped_ticks) == (110, 150)
        assert (process.address_bytes, process.ending) == (1000, False)


def test_a_process_whose_memory_is_gone_is_ending() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    process = identity.read(child)
    os.waitpid(child, 0)
    assert process is not None
    assert process.ending


@pytest.mark.parametrize("line", [b"", b"7 (sh) S 1", b"nonsense"])
def test_what_is_not_a_line_of_stat_is_nothing(line: bytes) -> None:
    assert identity.parse(line) is None
