from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.ports import crash
from tests import architecture
from tests.services import ROOT

PASSER = """
import sys
from danlu.ports.crash import crash_point
for name in sys.argv[1:]:
    print(name, flush=True)
    crash_point(name)
print("end", flush=True)
"""


def passer(orders: Path | None, *points: str) -> subprocess.Popen[str]:
    """A process that passes these points."""
    environment = {"PYTHONPATH": str(ROOT / "src")}
    if orders is not None:
        environment[crash.VARIABLE] = str(orders)
    return subprocess.Popen(
        [sys.executable, "-c", PASSER, *points],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def placed() -> Iterator[str]:
    """The points that the sources name."""
    for source in architecture.package(ROOT):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and architecture.called(node) == "crash_point":
                yield ast.literal_eval(node.args[0])


def test_every_point_stands_at_one_place() -> None:
    assert Counter(placed()) == Counter(crash.POINTS.keys())


def test_a_process_without_orders_goes_on(tmp_path: Path) -> None:
    for orders in (None, tmp_path):
        process = passer(orders, "agent.locked", "shim.ended")
        assert process.communicate(timeout=60)[0] == "agent.locked\nshim.ended\nend\n"
        assert process.returncode == 0
    assert not (tmp_path / crash.HITS).exists()


def test_the_ordered_hit_kills(tmp_path: Path) -> None:
    (tmp_path / "agent.locked").write_text("pass\nkill\nkill\n")
    process = passer(tmp_path, "agent.locked", "shim.ended", "agent.locked", "agent.locked")

    said, _ = process.communicate(timeout=60)

    assert process.returncode == -signal.SIGKILL
    assert said == "agent.locked\nshim.ended\nagent.locked\n"
    assert (tmp_path / "agent.locked").read_text() == "kill\n"
    hits = (tmp_path / crash.HITS).read_text()
    assert hits == f"agent.locked {process.pid} pass \nagent.locked {process.pid} kill \n"


def test_a_stopped_process_goes_on_when_told(tmp_path: Path) -> None:
    (tmp_path / "shim.ended").write_text("delay 0.01\nstop\n")
    process = passer(tmp_path, "shim.ended", "shim.ended")

    assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
    process.send_signal(signal.SIGCONT)

    assert process.communicate(timeout=60)[0] == "shim.ended\nshim.ended\nend\n"


def test_two_processes_never_take_one_order(tmp_path: Path) -> None:
    (tmp_path / "shim.ended").write_text("kill\n")
    processes = [passer(tmp_path, *["shim.ended"] * 20) for _ in range(4)]
    for process in processes:
        process.communicate(timeout=60)

    assert sorted(process.returncode for process in processes) == [-signal.SIGKILL, 0, 0, 0]


def test_a_name_that_is_no_point_is_refused(tmp_path: Path) -> None:
    process = passer(tmp_path, "agent.lunch")

    assert "agent.lunch is not a crash point" in process.communicate(timeout=60)[1]


def test_an_unarmed_point_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not even look at its name."""
    monkeypatch.setattr(crash, "_directory", None)
    crash.crash_point("no such point")

    assert crash.environment() == {}
