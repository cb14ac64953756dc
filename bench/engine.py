"""What the process engine adds to a program, against the bare program.

    python bench/engine.py [--pairs 7] [--tasks 50] [--json FILE]

Each pair runs the program bare (`subprocess.run`) and through the engine, in turn. The clock of
"first line" starts before `launch()` and ends at the program's first statement, staging of its
code from a folder store included; "whole" ends when the engine says that nothing is left to do.
The processor-bound program times its own loop, so that only what the engine takes from it while
it runs is seen. The floor is the bare program.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from danlu.engines.process import ProcessEngine
from danlu.model.script import TaskPlan
from danlu.model.url import ObjectUrl
from danlu.node import identity
from danlu.node.directory import read_json
from danlu.ports import task_directory as files
from danlu.ports.engine import Launch, Phase, Ref
from danlu.ports.task_directory import Isolation
from danlu.stores.folder import FolderStore

NOOP = "import time, os\nopen(os.environ['STAMP'], 'w').write(repr(time.time()))\n"
LOOP = """\
import os, time
began = time.perf_counter()
total = 0
for i in range(12_000_000):
    total += i & 7
    if i % 1_000_000 == 0:
        print(i, total, flush=True)
open(os.environ['STAMP'], 'w').write(repr(time.perf_counter() - began))
"""
IDLE_S = 10.0


class Rig:
    """An engine, a store with the two programs in it, and a stamp file."""

    def __init__(self, root: Path, *, isolated: bool = True) -> None:
        self.root = root
        stamps = root / "stamps"
        stamps.mkdir(parents=True)
        self.stamp = stamps / "stamp"
        self.changed = threading.Event()
        self._store = FolderStore(root / "objects")
        self._store.create_bucket("danlu")
        for name, text in (("noop.py", NOOP), ("loop.py", LOOP)):
            self.add(name, text)
        self.engine = ProcessEngine(
            root / "engine",
            lambda _plan: Path(sys.prefix),
            {"kind": "folder", "root": str(root / "objects")},
            isolation=Isolation(isolated, writable=(str(stamps),)),
        )
        self.engine.on_change(self.changed.set)
        self.environments = {"STAMP": str(self.stamp)}

    def add(self, name: str, text: str) -> None:
        """Have a program to run, in a file and in the store."""
        self._store.put("danlu", f"code/{name}", text.encode())
        (self.root / name).write_text(text)

    def launch(self, **plan: Any) -> Ref:
        ref = Ref(f"bench-{secrets.token_hex(4)}", 1, 0, secrets.token_hex(16))
        task = TaskPlan(
            ref.job_id, 1, 0, ref.token, "bench", environments=self.environments, **plan
        )
        self.engine.launch([Launch(ref, "here", task)])
        return ref

    def finish(self, ref: Ref) -> None:
        while (seen := self.engine.observe([ref])[ref]).phase is not Phase.DONE:
            self.changed.wait(1.0)
            self.changed.clear()
        assert seen.exit is not None, seen
        assert seen.exit.exit_code == 0, seen

    def bare(self, name: str) -> None:
        env = {**os.environ, **self.environments}
        subprocess.run([sys.executable, str(self.root / name)], env=env, check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip

    def job(self, name: str) -> None:
        self.finish(self.launch(code=ObjectUrl("danlu", "code/"), boot_file=name))


def noop(run: Callable[[str], None], stamp: Path) -> tuple[float, float]:
    """Seconds to the first statement, and to the end."""
    stamp.unlink(missing_ok=True)
    began = time.time()
    run("noop.py")
    ended = time.time()
    return float(stamp.read_text()) - began, ended - began


def loop(run: Callable[[str], None], stamp: Path) -> float:
    """Seconds that the program's own loop took."""
    run("loop.py")
    return float(stamp.read_text())


def paired(rig: Rig, pairs: int) -> dict[str, tuple[list[float], list[float]]]:
    """Bare and engine seconds by figure, measured in turn after a warm-up."""
    found: dict[str, tuple[list[float], list[float]]] = {
        "first line": ([], []),
        "whole no-op": ([], []),
        "processor-bound loop": ([], []),
    }
    for number in range(pairs + 1):
        for side, run in enumerate((rig.bare, rig.job)):
            time.sleep(0.1)
            first, whole = noop(run, rig.stamp)
            spent = loop(run, rig.stamp)
            if number:
                for name, value in zip(found, (first, whole, spent), strict=True):
                    found[name][side].append(value)
    return found


def show(name: str, bare: list[float], ours: list[float]) -> dict[str, Any]:
    base, mine = statistics.median(bare), statistics.median(ours)
    ratios = [b / a for a, b in zip(bare, ours, strict=True)]
    spread = f"{min(ratios):.2f}–{max(ratios):.2f}"
    print(
        f"{name:24} {base * 1000:9.1f} {mine * 1000:9.1f} {(mine - base) * 1000:9.1f}"
        f" {statistics.median(ratios):7.3f}   {spread}"
    )
    return {"figure": name, "bare_s": bare, "engine_s": ours, "ratio": statistics.median(ratios)}


def crowd(rig: Rig, tasks: int) -> dict[str, Any]:
    """Launch many sleeping tasks, observe them, and see what their watchers use."""
    began = time.perf_counter()
    refs = [rig.launch(command="exec sleep 600") for _ in range(tasks)]
    launched_s = time.perf_counter() - began
    while any(seen.phase is not Phase.RUNNING for seen in rig.engine.observe(refs).values()):
        time.sleep(0.05)
    looks = []
    for _ in range(10):
        began = time.perf_counter()
        rig.engine.observe(refs)
        looks.append(time.perf_counter() - began)
    before = watchers_s(rig, refs)
    time.sleep(IDLE_S)
    used = (watchers_s(rig, refs) - before) / IDLE_S / tasks
    for ref in refs:
        rig.engine.remove(ref)
    look_s = statistics.median(looks)
    print(
        f"\n{tasks} sleeping tasks: launch {launched_s / tasks * 1000:.1f} ms each, observe"
        f" {look_s * 1000:.2f} ms for all, agent and shim {used * 100:.3f} % of a core each"
        f" (samples every second)"
    )
    return {"tasks": tasks, "launch_s": launched_s, "observe_s": look_s, "core_share": used}


def watchers_s(rig: Rig, refs: list[Ref]) -> float:
    """Processor seconds of all agents and shims."""
    ticks = 0
    for ref in refs:
        directory = rig.root / "engine" / "tasks" / ref.name
        for name, who in ((files.AGENT, "agent"), (files.TASK, "shim")):
            process = identity.read((read_json(directory / name) or {})[who]["pid"])
            ticks += process.busy_ticks if process is not None else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pairs", type=int, default=7)
    options.add_argument("--tasks", type=int, default=50)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="danlu-bench-") as folder:
        rig = Rig(Path(folder))
        try:
            print(f"Python {platform.python_version()}, {os.cpu_count()} processors; milliseconds")
            print(f"{'':24} {'bare':>9} {'engine':>9} {'added':>9} {'ratio':>7}   spread")
            rows = [show(name, *sides) for name, sides in paired(rig, chosen.pairs).items()]
            many = crowd(rig, chosen.tasks)
        finally:
            rig.engine.close()
    if chosen.json:
        chosen.json.write_text(json.dumps({"pairs": rows, "crowd": many}, indent=1))


if __name__ == "__main__":
    main()
