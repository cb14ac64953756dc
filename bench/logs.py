"""Log lines through a job, windows and searches, against the tools that do the same to a file.

    python bench/logs.py [--lines 300000] [--long 1000000] [--pairs 5] [--json FILE]

Through: the job's log is followed by `danlu run` to a file; the floor is
`python script.py | cat > file`. What arrives is compared byte for byte.

Window and search: of a job's log of `--long` lines, 100 lines anywhere are asked of the server on
one connection, against `sed -n` on the file; and the lines that hold a text, against `grep`. Each
answer is compared byte for byte. A window is also given in milliseconds: the server's whole time.

Flood: while a job prints as fast as it can for `--flood` seconds, submits are timed against submits
to the idle server, and the server's memory is watched.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from danlu.faces.cli.servers import connect

SCRIPT = """
import sys
for line in range(int(sys.argv[1])):
    sys.stdout.write(f"step {line} loss 0.123456 throughput 1234.5 samples/s\\n")
"""
NEEDLES = ("step 777777 ", "step 77777", "9999 loss")
FLOOD = """
import os, sys, time
block = b"".join(b"%07d " % n + b"x" * 55 + b"\\n" for n in range(4096))
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:
    view = memoryview(block)
    while view:
        view = view[os.write(1, view):]
"""
SUBMITS = 40
WINDOW = 100
ROUNDS = 40


def timed(command: list[str], env: dict[str, str], target: Path) -> float:
    began = time.perf_counter()
    with target.open("wb") as file:
        subprocess.run(command, env=env, check=True, stdout=file, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def through(danlu: str, env: dict[str, str], folder: Path, lines: int, pairs: int) -> float:
    """The time through a job, as a multiple of the time through a pipe."""
    script = folder / "code" / "train.py"
    count = str(lines)
    pipe = ["sh", "-c", '"$1" "$2" "$3" | cat', "sh", sys.executable, str(script), count]
    ratios = []
    for round_ in range(pairs + 1):
        bare = timed(pipe, env, folder / "bare")
        ours = timed([danlu, "run", str(script), count], env, folder / "through")
        assert (folder / "bare").read_bytes() == (folder / "through").read_bytes()
        if round_:
            ratios.append(ours / bare)
    return statistics.median(ratios)


def paired(ours: Callable[[], bytes], theirs: Callable[[], bytes]) -> tuple[float, float]:
    """Seconds of ours and of theirs, whose answers are equal."""
    began = time.perf_counter()
    found = ours()
    between = time.perf_counter()
    wanted = theirs()
    ended = time.perf_counter()
    assert found == wanted
    return between - began, ended - between


def reading(danlu: str, env: dict[str, str], folder: Path, lines: int) -> dict[str, float]:
    """Windows and searches of one long log."""
    script = str(folder / "code" / "train.py")
    command = [danlu, "run", "-d", script, str(lines)]
    job = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    subprocess.run([danlu, "logs", "-f", job.strip()], env=env, check=True, capture_output=True)
    kept = folder / "kept"
    with kept.open("wb") as file:
        subprocess.run([danlu, "logs", job.strip()], env=env, check=True, stdout=file)
    client = connect(env["DANLU_DATA"], "", "en", say=lambda *_, **__: None)
    place = ("jobs", job.strip(), "tasks", "worker-0", "log")
    dice = random.Random(lines)

    def window(first: int) -> tuple[float, float]:
        query = {"range": f"{first}:{first + WINDOW - 1}"}
        sed = ["sed", "-n", f"{first},{first + WINDOW - 1}p;{first + WINDOW}q", str(kept)]
        return paired(
            lambda: client.send("GET", (*place, "lines"), query).read(),
            lambda: subprocess.run(sed, check=True, capture_output=True).stdout,
        )

    def search(needle: str) -> tuple[float, float]:
        grep = ["grep", "-F", needle, str(kept)]
        return paired(
            lambda: client.send("GET", (*place, "search"), {"text": needle}).read(64 << 20),
            lambda: subprocess.run(grep, check=True, capture_output=True).stdout,
        )

    windows = [window(dice.randrange(1, lines - WINDOW)) for _ in range(ROUNDS)]
    searches = {needle: [search(needle) for _ in range(5)] for needle in NEEDLES}
    found = {
        "window_ms": 1000 * statistics.median(ours for ours, _ in windows),
        "window_least_ms": 1000 * min(ours for ours, _ in windows),
        "window_worst_ms": 1000 * max(ours for ours, _ in windows),
        "window_ratio": statistics.median(ours / theirs for ours, theirs in windows),
    }
    for needle, pairs in searches.items():
        name = f"search_ratio {needle.strip()}"
        found[name] = statistics.median(ours / theirs for ours, theirs in pairs)
    return found


def flooded(danlu: str, env: dict[str, str], folder: Path, seconds: float) -> dict[str, float]:
    """Submits beside a job that prints as fast as it can, and what the server grows by."""
    script = folder / "flood" / "flood.py"
    script.parent.mkdir()
    script.write_text(FLOOD)
    client = connect(env["DANLU_DATA"], "", "en", say=lambda *_, **__: None)
    pid = client.get("status")["pid"]

    def submits() -> float:
        times = []
        for _ in range(SUBMITS):
            body = {"metadata": {"name": "beside"}, "algorithm": {"command": "true"}}
            began = time.perf_counter()
            client.post("jobs", body=body)
            times.append(time.perf_counter() - began)
            time.sleep(seconds / SUBMITS / 2)
        return statistics.median(times)

    idle, before = submits(), memory(pid)
    command = [danlu, "run", "-d", str(script), str(seconds)]
    job = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    while client.get("jobs", job.strip())["state"] != "running":
        time.sleep(0.05)
    beside, grown = submits(), memory(pid) - before
    follow = [danlu, "logs", "-f", "--tail", "1", job.strip()]
    subprocess.run(follow, env=env, check=True, stdout=subprocess.DEVNULL)
    printed = client.get("jobs", job.strip())["log_bytes"]
    return {
        "flood_mb_per_s": printed / seconds / 1e6,
        "flood_grown_mb": grown / 1e6,
        "flood_submit_ratio": beside / idle,
    }


def memory(pid: int) -> int:
    """Resident bytes of a process."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS:"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", type=int, default=300_000)
    parser.add_argument("--long", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--flood", type=float, default=30)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "code" / "train.py"
        script.parent.mkdir()
        script.write_text(SCRIPT)
        env = {"PATH": os.environ["PATH"], "HOME": name, "LANG": "C.UTF-8"}
        env["DANLU_DATA"] = str(folder / "data")
        danlu = str(Path(sys.executable).with_name("danlu"))
        subprocess.run([danlu, "up", "--port", "0"], env=env, check=True, capture_output=True)
        try:
            figures = {"time_ratio": through(danlu, env, folder, options.lines, options.pairs)}
            figures.update(reading(danlu, env, folder, options.long))
            figures.update(flooded(danlu, env, folder, options.flood))
        finally:
            subprocess.run([danlu, "down"], env=env, check=True, capture_output=True)
    print(f"{options.lines} lines, {options.pairs} pairs, every byte equal")
    print(f"through a job: {figures['time_ratio']:.2f} x the time of a pipe to a file")
    least, median, worst = (figures[f"window_{one}ms"] for one in ("least_", "", "worst_"))
    print(
        f"{WINDOW} lines anywhere of {options.long}: {median:.1f} ms ({least:.1f} to {worst:.1f}),"
        f" {figures['window_ratio']:.2f} x sed -n"
    )
    for key, ratio in figures.items():
        if key.startswith("search_ratio "):
            print(f"lines with '{key.removeprefix('search_ratio ')}': {ratio:.2f} x grep -F")
    print(
        f"flood of {figures['flood_mb_per_s']:.0f} MB/s for {options.flood:.0f} s: the server grows"
        f" by {figures['flood_grown_mb']:.1f} MB, a submit takes"
        f" {figures['flood_submit_ratio']:.2f} x its idle time"
    )
    if options.json:
        options.json.write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
