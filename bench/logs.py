"""Log lines through a job, windows and searches, against the tools that do the same to a file.

    python bench/logs.py [--lines 300000] [--long 1000000] [--pairs 5] [--json FILE]

Through: the job's log is followed by `danlu run` to a file; the floor is
`python script.py | cat > file`. What arrives is compared byte for byte.

Window and search: of a job's log of `--long` lines, 100 lines anywhere are asked of the server on
one connection, against `sed -n` on the file; and the lines that hold a text, against `grep`. Each
answer is compared byte for byte. A window is also given in milliseconds: the server's whole time.
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", type=int, default=300_000)
    parser.add_argument("--long", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=5)
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
    if options.json:
        options.json.write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
