"""What a job costs beyond its script: submit to first line, and the whole.

    python bench/submission.py [--pairs 7] [--peers] [--json FILE]

Clock: start of the client process to the first statement of the script, and to the client's exit.
Each round runs every path once, in turn, beside the bare `python script.py`. The peers (submitit's
local executor, torchx' local_cwd) run from `.venv-bench`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEER_PYTHON = ROOT / ".venv-bench" / "bin" / "python"
SCRIPT = "import time\nprint('began', repr(time.time()), flush=True)\n"
BEGAN = re.compile(rb"began (\d+\.\d+)")

SUBMITIT = """
import sys, submitit
executor = submitit.LocalExecutor(folder=sys.argv[1])
executor.update_parameters(timeout_min=1)
function = submitit.helpers.CommandFunction([sys.executable, sys.argv[2]], verbose=False)
print(executor.submit(function).result())
"""

Run = Callable[[], bytes]
"""Runs the script by one path; all that its client printed."""


def printed(command: list[str], env: dict[str, str], cwd: Path) -> bytes:
    both = subprocess.STDOUT
    done = subprocess.run(
        command, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=both, timeout=120, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stdout.decode()}")
    return done.stdout


def measure(run: Run) -> tuple[float, float]:
    """Seconds to the script's first statement and to the client's exit."""
    began = time.time()
    text = run()
    ended = time.time()
    found = BEGAN.search(text)
    if found is None:
        raise RuntimeError(f"the script's line is not in what was printed: {text.decode()}")
    return float(found[1]) - began, ended - began


def paths(folder: Path, env: dict[str, str], *, peers: bool) -> dict[str, Run]:
    script = folder / "code" / "train.py"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    danlu = str(Path(sys.executable).with_name("danlu"))
    found: dict[str, Run] = {
        "python train.py": lambda: printed([sys.executable, str(script)], env, folder),
        "danlu run": lambda: printed([danlu, "run", str(script)], env, folder),
    }
    if peers:
        driver = folder / "submitit_driver.py"
        driver.write_text(SUBMITIT)
        logs = str(folder / "submitit")
        found["submitit local"] = lambda: printed(
            [str(PEER_PYTHON), str(driver), logs, str(script)], env, folder
        )
        torchx = str(PEER_PYTHON.with_name("torchx"))
        found["torchx local_cwd"] = lambda: printed(
            [torchx, "run", "-s", "local_cwd", "--wait", "--log", "utils.python", "--script",
             script.name],
            env, script.parent,
        )  # fmt: skip
    return found


def table(times: dict[str, list[tuple[float, float]]]) -> list[dict[str, float | str]]:
    """One row a path: medians, what each adds to the bare script, pair by pair."""
    floor = times["python train.py"]
    rows: list[dict[str, float | str]] = []
    for name, found in times.items():
        first = [1e3 * (one[0] - bare[0]) for one, bare in zip(found, floor, strict=True)]
        total = [1e3 * (one[1] - bare[1]) for one, bare in zip(found, floor, strict=True)]
        rows.append(
            {
                "path": name,
                "first_ms": 1e3 * statistics.median(one[0] for one in found),
                "added_first_ms": statistics.median(first),
                "added_total_ms": statistics.median(total),
                "worst_added_total_ms": max(total),
            }
        )
    return rows


def show(rows: list[dict[str, float | str]]) -> None:
    print(f"{'path':18} {'first line':>11} {'added':>9} {'added total':>12} {'worst':>9}")
    for row in rows:
        print(
            f"{row['path']:18} {row['first_ms']:8.0f} ms {row['added_first_ms']:6.0f} ms"
            f" {row['added_total_ms']:9.0f} ms {row['worst_added_total_ms']:6.0f} ms"
        )
    ours = next(row for row in rows if row["path"] == "danlu run")
    for row in rows:
        if row["path"] in ("submitit local", "torchx local_cwd"):
            ratios = [
                float(ours[key]) / float(row[key]) for key in ("added_first_ms", "added_total_ms")
            ]
            print(
                f"danlu / {row['path']}: {ratios[0]:.2f} to the first line, {ratios[1]:.2f} in all"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--peers", action="store_true", help="also submitit and torchx")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        env = {"PATH": os.environ["PATH"], "HOME": name, "LANG": "C.UTF-8"}
        env["DANLU_DATA"] = str(folder / "data")
        danlu = str(Path(sys.executable).with_name("danlu"))
        printed([danlu, "up", "--port", "0"], env, folder)
        try:
            runs = paths(folder, env, peers=options.peers)
            times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
            for round_ in range(options.pairs + 2):
                for path, run in runs.items():
                    found = measure(run)
                    if round_ > 1:  # the first rounds warm the page cache
                        times[path].append(found)
        finally:
            printed([danlu, "down"], env, folder)
    rows = table(times)
    print(f"python {sys.version.split()[0]}, danlu {version('danlu')}, {options.pairs} rounds")
    show(rows)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
