"""What the process engine takes this machine to be: never more than this process may use."""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from pathlib import Path

import pytest

from danlu.engines.process import ProcessEngine, port
from danlu.engines.process.machine import Machine, cpus, memory_bytes
from danlu.model.errors import EngineError
from danlu.model.resources import GIB, Gpu

MEMINFO = "MemTotal:       8388608 kB\nMemFree:  1 kB\n"


def machine(root: Path, files: dict[str, str]) -> Path:
    for name, text in {"proc/meminfo": MEMINFO, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


V2 = "0::/user.slice/job.scope\n"
V1 = "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 8 * GIB),
        ({"proc/self/cgroup": V2, "sys/fs/cgroup/user.slice/job.scope/memory.max": "max"}, 8 * GIB),
        (
            {"proc/self/cgroup": V2, "sys/fs/cgroup/user.slice/memory.max": str(3 * GIB)},
            3 * GIB,
        ),
        (
            {
                "proc/self/cgroup": V2,
                "sys/fs/cgroup/user.slice/job.scope/memory.max": str(2 * GIB),
                "sys/fs/cgroup/user.slice/memory.max": str(3 * GIB),
            },
            2 * GIB,
        ),
        (
            {
                "proc/self/cgroup": V1,
                "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": str(GIB),
            },
            GIB,
        ),
        (
            {
                "proc/self/cgroup": V1,
                "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "9223372036854771712",
            },
            8 * GIB,
        ),
        ({"proc/self/cgroup": V2, "sys/fs/cgroup/memory.max": "nonsense"}, 8 * GIB),
    ],
)
def test_memory_is_the_least_of_all_limits(
    tmp_path: Path, files: dict[str, str], expected: int
) -> None:
    assert memory_bytes(machine(tmp_path, files)) == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"proc/self/cgroup": V2, "sys/fs/cgroup/user.slice/cpu.max": "max 100000"}, None),
        ({"proc/self/cgroup": V2, "sys/fs/cgroup/user.slice/cpu.max": "100000 100000"}, 1),
        ({"proc/self/cgroup": V2, "sys/fs/cgroup/user.slice/cpu.max": "10000 100000"}, 1),
        (
            {
                "proc/self/cgroup": V1,
                "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "150000",
                "sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us": "100000",
            },
            1,
        ),
        (
            {
                "proc/self/cgroup": V1,
                "sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us": "-1",
                "sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us": "100000",
            },
            None,
        ),
    ],
)
def test_processors_are_those_we_may_use(
    tmp_path: Path, files: dict[str, str], expected: int | None
) -> None:
    allowed = len(os.sched_getaffinity(0))
    assert cpus(machine(tmp_path, files)) == (expected or allowed)


def test_a_driver_that_comes_later_is_found() -> None:
    """(case 51)"""
    now = [0.0]
    there: list[Gpu] = []
    asked: list[float] = []

    def probe() -> tuple[Gpu, ...]:
        asked.append(now[0])
        return tuple(there)

    found = Machine("here", probe, monotonic=lambda: now[0])
    assert found.offer().gpus == ()
    there.append(Gpu("GPU-1", 0, "Tesla V100", 16 * GIB))
    now[0] = 30.0
    assert found.offer().gpus == ()
    assert asked == [0.0]
    now[0] = 61.0
    found.offer()
    end = time.monotonic() + 30
    while not found.offer().gpus:
        assert time.monotonic() < end
    assert found.offer().gpus == tuple(there)
    assert asked == [0.0, 61.0]


def test_nobody_waits_for_a_control_group_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reading one whose memory runs out takes seconds: requests get what was known before."""
    now, answers = [0.0], threading.Event()
    found = Machine("here", lambda: (), monotonic=lambda: now[0])
    before = found.offer()

    def slow(_root: Path = Path("/")) -> int:
        answers.wait(60)
        return 7 * GIB

    monkeypatch.setattr("danlu.engines.process.machine.memory_bytes", slow)
    now[0] = 61.0
    assert found.offer() == before
    assert found.offer() == before
    answers.set()
    end = time.monotonic() + 30
    while found.offer().memory_bytes != 7 * GIB:
        assert time.monotonic() < end


def test_the_same_gang_tries_the_same_port_first() -> None:
    first = port.choose("token", lambda _: False)
    assert port.choose("token", lambda _: False) == first
    assert port.choose("token", lambda number: number == first) != first
    assert 20_000 <= first < 30_000


def test_a_port_that_is_listened_on_is_not_given() -> None:
    """(case 81)"""
    first = port.choose("another token", lambda _: False)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", first))
        listener.listen()
        assert port.choose("another token", lambda _: False) != first


def test_no_port_at_all_is_an_error() -> None:
    with pytest.raises(EngineError):
        port.choose("token", lambda _: True)


def test_a_kernel_that_cannot_name_processes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(pid: int, flags: int = 0) -> int:
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", missing)
    with pytest.raises(EngineError, match="needs Linux"):
        ProcessEngine(tmp_path, lambda _: tmp_path, {})
