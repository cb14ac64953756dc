"""Samples: who belongs to a task, and what they use."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from danlu.node.oom import OomWatch, count_in
from danlu.node.sample import DENSE_EVERY_S, EVERY_S, LONG_EVERY_S, Meter, Tree, interval_s

CHILDREN = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(60)
    time.sleep(60)
print("up", flush=True)
time.sleep(60)
"""


def test_a_tree_is_all_that_is_below_and_nothing_else() -> None:
    with subprocess.Popen([sys.executable, "-c", CHILDREN], stdout=subprocess.PIPE) as root:
        tree = Tree(root.pid)
        assert root.stdout is not None
        root.stdout.readline()
        deadline = time.monotonic() + 30
        while len(below := tree.look()) < 2:
            assert time.monotonic() < deadline
        assert root.pid not in below
        assert os.getpid() not in below
        assert all(process.session != os.getsid(0) for process in below.values())
        assert set(tree.look()) == set(below)
        for pid in below:
            os.kill(pid, 9)
        root.kill()


def test_processor_time_is_counted_over_children_that_have_ended() -> None:
    burn = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass\n"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn.format(0.3)!r}])"
    now = [0.0]
    shell = f"{child}; print('burnt', flush=True); input()"
    with subprocess.Popen(
        ["sh", "-c", '"$1" -c "$0" & wait', shell, sys.executable],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as root:
        meter = Meter(root.pid, monotonic=lambda: now[0])
        first = meter.read()
        assert "cpu_cores" not in first
        assert root.stdout is not None
        root.stdout.readline()
        now[0] = 1.0
        second = meter.read()
        # 0.3 s of one core and the start of two interpreters, over one second
        assert 0.25 <= second["cpu_cores"] < 3
        assert second["memory_bytes"] > 1 << 20
        root.kill()
    now[0] = 2.0
    assert "memory_bytes" not in meter.read()  # unknown is not 0


def test_samples_are_dense_at_first_and_sparse_later() -> None:
    assert interval_s(0) == interval_s(59) == DENSE_EVERY_S == 1
    assert interval_s(61) == interval_s(3600) == EVERY_S == 5
    assert interval_s(7 * 24 * 3600) == LONG_EVERY_S


@pytest.mark.parametrize(
    ("rise_s", "end", "explained"),
    [
        (None, {"killed", "failed"}, False),
        (1.0, {"killed", "failed"}, True),
        (10.0, {"killed"}, False),
        (10.0, {"failed"}, True),
        (100.0, {"killed", "failed"}, False),
        (1.0, set(), False),
    ],
)
def test_memory_explains_what_came_shortly_after(
    tmp_path: Path, rise_s: float | None, end: set[str], *, explained: bool
) -> None:
    """(case 59; faults 17, 18)"""
    counter = tmp_path / "vmstat"
    counter.write_text("pgfault 7\noom_kill 3\nother 1\n")
    now = [100.0]
    watch = OomWatch(lambda: count_in(counter), monotonic=lambda: now[0])
    if rise_s is not None:
        counter.write_text("oom_kill 4\n")
        now[0] += 2
        watch.look()
        now[0] += rise_s
    assert watch.explains(killed="killed" in end, failed="failed" in end) is explained


def test_a_kernel_without_a_count_explains_nothing(tmp_path: Path) -> None:
    watch = OomWatch(lambda: count_in(tmp_path / "none"))
    assert not watch.explains(killed=True, failed=True)
