"""How long commands take to start, as ratios to a bare Python.

    python bench/cli.py [--pairs 15] [--json FILE]

Each round runs every command once, in turn, beside `python -c pass` of the same interpreter; the
server is warm and holds a few jobs. Goals: help within 2.5 times, ps within 6 times a bare start.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

FLOOR = "python -c pass"
GOALS = {"danlu --help": 2.5, "danlu ps": 6.0}


def commands(script: Path) -> dict[str, list[str]]:
    """The command lines, by the name under which they are shown."""
    danlu = str(Path(sys.executable).with_name("danlu"))
    return {
        FLOOR: [sys.executable, "-c", "pass"],
        "python -c 'import click'": [sys.executable, "-c", "import click"],
        "danlu --help": [danlu, "--help"],
        "danlu ps": [danlu, "ps"],
        "danlu show @last": [danlu, "show", "@last"],
        "danlu ps --help (click)": [danlu, "ps", "--help"],
        "danlu run -d train.py": [danlu, "run", "-d", str(script)],
    }


def timed(command: list[str], env: dict[str, str]) -> float:
    """Milliseconds that a command takes."""
    began = time.perf_counter()
    subprocess.run(command, env=env, check=True, capture_output=True, timeout=60)
    return (time.perf_counter() - began) * 1000


def measure(pairs: int) -> dict[str, list[float]]:
    """Milliseconds of every command, round by round."""
    with tempfile.TemporaryDirectory() as name:
        script = Path(name) / "code" / "train.py"
        script.parent.mkdir()
        script.write_text("print('hi')\n")
        env = {"PATH": os.environ["PATH"], "HOME": name, "LANG": "C.UTF-8"}
        env["DANLU_DATA"] = str(Path(name) / "data")
        listed = commands(script)
        danlu = listed["danlu ps"][0]
        timed([danlu, "up", "--port", "0"], env)
        try:
            for _ in range(3):
                timed([danlu, "run", str(script)], env)
            times: dict[str, list[float]] = {name: [] for name in listed}
            for round_ in range(pairs + 2):
                for shown, command in listed.items():
                    took = timed(command, env)
                    if round_ > 1:  # the first rounds warm the page cache
                        times[shown].append(took)
        finally:
            timed([danlu, "down"], env)
    return times


def rows_of(times: dict[str, list[float]]) -> list[dict[str, float | str]]:
    """Medians, and ratios pair by pair with their spread."""
    floor = times[FLOOR]
    rows: list[dict[str, float | str]] = []
    for name, found in times.items():
        ratios = sorted(one / bare for one, bare in zip(found, floor, strict=True))
        quarter = len(ratios) // 4
        rows.append(
            {
                "command": name,
                "median_ms": statistics.median(found),
                "ratio": statistics.median(ratios),
                "ratio_low": ratios[quarter],
                "ratio_high": ratios[-1 - quarter],
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = rows_of(measure(options.pairs))
    print(f"python {sys.version.split()[0]}, click {version('click')}, danlu {version('danlu')}")
    print(f"{'command':26} {'median':>9} {'ratio':>7} {'middle half':>14}   goal")
    for row in rows:
        goal = GOALS.get(str(row["command"]))
        print(
            f"{row['command']:26} {row['median_ms']:6.1f} ms {row['ratio']:6.2f}x"
            f" {row['ratio_low']:6.2f}-{row['ratio_high']:.2f}x"
            + (f"   <= {goal:g}x" if goal else "")
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
