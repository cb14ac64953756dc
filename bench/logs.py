"""Log lines a second through a job, against the same program writing to a file.

    python bench/logs.py [--lines 300000] [--pairs 5] [--json FILE]

The job's log is followed by `danlu run` to a file; the floor is `python script.py | cat > file`.
What arrives is compared byte for byte.
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
from pathlib import Path

SCRIPT = """
import sys
for line in range(int(sys.argv[1])):
    sys.stdout.write(f"step {line} loss 0.123456 throughput 1234.5 samples/s\\n")
"""


def timed(command: list[str], env: dict[str, str], target: Path) -> float:
    began = time.perf_counter()
    with target.open("wb") as file:
        subprocess.run(command, env=env, check=True, stdout=file, stderr=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", type=int, default=300_000)
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
        count = str(options.lines)
        pipe = ["sh", "-c", '"$1" "$2" "$3" | cat', "sh", sys.executable, str(script), count]
        job = [danlu, "run", str(script), count]
        subprocess.run([danlu, "up", "--port", "0"], env=env, check=True, capture_output=True)
        try:
            floor, ours = [], []
            for round_ in range(options.pairs + 1):
                bare = timed(pipe, env, folder / "bare")
                through = timed(job, env, folder / "through")
                assert (folder / "bare").read_bytes() == (folder / "through").read_bytes()
                if round_:
                    floor.append(bare)
                    ours.append(through)
        finally:
            subprocess.run([danlu, "down"], env=env, check=True, capture_output=True)
    ratio = statistics.median(one / bare for one, bare in zip(ours, floor, strict=True))
    rate = options.lines / statistics.median(ours)
    print(f"{options.lines} lines, {options.pairs} pairs, every byte equal")
    print(f"through a job {rate:,.0f} lines/s; {ratio:.2f} x the time of a pipe to a file")
    if options.json:
        options.json.write_text(json.dumps({"lines_per_s": rate, "time_ratio": ratio}))


if __name__ == "__main__":
    main()
