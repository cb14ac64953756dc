"""What isolation costs: while a program runs, and until it runs.

    python bench/isolation.py [--pairs 25] [--json FILE]

Each round runs the same processor-bound script three times in turn: bare, in an engine without
isolation, and in one with all that the machine has (control group, namespaces, view, Landlock) and
its agent and shim beside it. The script measures its own loop, in seconds and in processor seconds.
"First line" is from `launch()` to the script's first statement; what isolation adds to it is the
difference of the two engines. On a machine that others use look at the best of each side: what
disturbs a run only ever makes it longer.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from engine import Rig

LOOP = """\
import os, time
began, used = time.perf_counter(), time.process_time()
total = 0
for i in range(4_000_000):
    total += i & 7
spent = time.perf_counter() - began, time.process_time() - used
open(os.environ['STAMP'], 'w').write(repr(spent))
"""


class Side:
    """One of the three ways to run a script."""

    def __init__(self, root: Path, name: str, *, isolated: bool) -> None:
        self.name = name
        self.rig = Rig(root, isolated=isolated)
        self.rig.add("spin.py", LOOP)
        self._run = self.rig.bare if name == "bare" else self.rig.job

    def spin(self) -> tuple[float, float]:
        """Seconds and processor seconds of the loop."""
        self.rig.stamp.unlink(missing_ok=True)
        self._run("spin.py")
        wall, used = self.rig.stamp.read_text().strip("()").split(",")
        return float(wall), float(used)

    def first_line(self) -> float:
        """Seconds from the launch to the first statement."""
        self.rig.stamp.unlink(missing_ok=True)
        time.sleep(0.2)  # the next agent is made ready
        began = time.time()
        self._run("noop.py")
        return float(self.rig.stamp.read_text()) - began


def measured(sides: list[Side], pairs: int) -> dict[str, dict[str, list[float]]]:
    """Values by figure and side, one of each a round, after a round to warm up."""
    found: dict[str, dict[str, list[float]]] = {
        figure: {side.name: [] for side in sides} for figure in ("wall", "processor", "first line")
    }
    for number in range(pairs + 1):
        for side in sides:
            wall, used = side.spin()
            first = side.first_line()
            if number:
                for figure, value in zip(found, (wall, used, first), strict=True):
                    found[figure][side.name].append(value)
    return found


def show(figure: str, ours: str, base: str, values: dict[str, list[float]]) -> dict[str, Any]:
    ratios = [a / b for a, b in zip(values[ours], values[base], strict=True)]
    added = [a - b for a, b in zip(values[ours], values[base], strict=True)]
    ratio, more = statistics.median(ratios), statistics.median(added)
    best = min(values[ours]) / min(values[base])
    best_more = min(values[ours]) - min(values[base])
    print(
        f"{figure:11} {ours} : {base:10} {ratio:8.4f} {more * 1000:+9.2f} ms"
        f" {best:8.4f} {best_more * 1000:+9.2f} ms   {min(ratios):.3f}–{max(ratios):.3f}"
    )
    return {
        "figure": figure, "ours": ours, "against": base,
        "ratio": ratio, "added_s": more, "best_ratio": best, "best_added_s": best_more,
    }  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pairs", type=int, default=25)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(prefix="danlu-bench-") as folder:
        sides = [
            Side(Path(folder, name), name, isolated=name == "isolated")
            for name in ("bare", "plain", "isolated")
        ]
        missing = ", ".join(sides[2].rig.engine.powers.unenforced) or "nothing"
        print(
            f"Python {platform.python_version()}, {os.cpu_count()} processors, kernel"
            f" {platform.release()}; of isolation there is missing: {missing}"
        )
        try:
            found = measured(sides, chosen.pairs)
        finally:
            for side in sides:
                side.rig.engine.close()
    print(f"{'':33} {'median':>21} {'best':>21}   spread of ratios")
    rows = [
        show(figure, "isolated", base, found[figure])
        for figure, base in (
            ("wall", "bare"),
            ("processor", "bare"),
            ("wall", "plain"),
            ("processor", "plain"),
            ("first line", "plain"),
        )
    ]
    if chosen.json:
        chosen.json.write_text(json.dumps({"rows": rows, "values": found}, indent=1))


if __name__ == "__main__":
    main()
