"""What an environment costs: realised from a lock, by venv and pip, and by uv pip sync.

    python bench/images.py [--image NAME] [--packages NAME,NAME] [--cold 1] [--warm 3] [--json FILE]

The same wheels, by digest, in turn and on one file system. Cold: nothing is cached. Warm: every
wheel is, and a new environment is made. The three do not do the same: pip compiles the modules each
time, `uv pip sync` compiles nothing and proves nothing; ours is compiled (once an image) and proved
file by file. `--packages` takes only these of the image. Cold rounds download everything thrice.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from danlu.images import known, uv
from danlu.images.lock import Lock
from danlu.images.realise import Making, realise, requirements
from danlu.images.store import ImageStore
from danlu.images.trash import delete
from danlu.images.uv import Sources, Uv


class Ours:
    """An image's environment, as a job gets it."""

    def __init__(self, root: Path, lock: Lock) -> None:
        self.root = root
        self._lock = lock
        self._making = Making(variables=tuple(os.environ.items()))

    def make(self) -> None:
        store = ImageStore(self.root)
        image_id = store.keep(self._lock)
        if store.realised(image_id):
            store.remove(image_id)
        began = time.perf_counter()
        realise(store, image_id, "bench", self._making)
        self.took_s = time.perf_counter() - began


class Pip:
    """`python -m venv`, then pip with every digest required."""

    def __init__(self, root: Path, lock: Lock) -> None:
        self.root = root
        self._lock = lock

    def make(self) -> None:
        place, wanted = self.root / "environment", self.root / "requirements.txt"
        shutil.rmtree(place, ignore_errors=True)
        self.root.mkdir(exist_ok=True)
        wanted.write_text(requirements(self._lock))
        python = str(place / "bin" / "python")
        began = time.perf_counter()
        run(sys.executable, "-m", "venv", str(place))
        run(
            *(python, "-m", "pip", "install", "-qq", "--no-deps", "--require-hashes"),
            *("--only-binary", ":all:", "--cache-dir", str(self.root / "cache"), "-r", str(wanted)),
        )
        self.took_s = time.perf_counter() - began


class Sync:
    """`uv venv`, then `uv pip sync` with every digest required, files linked."""

    def __init__(self, root: Path, lock: Lock) -> None:
        self.root = root
        self._lock = lock

    def make(self) -> None:
        place, wanted = self.root / "environment", self.root / "requirements.txt"
        shutil.rmtree(place, ignore_errors=True)
        self.root.mkdir(exist_ok=True)
        wanted.write_text(requirements(self._lock))
        sources = Sources.of(os.environ)
        tool = Uv(self.root / "cache", sources)
        options = uv.extended(sources, [(one.version, one.filename) for one in self._lock.wheels])
        began = time.perf_counter()
        tool("venv", "--no-project", "--python", sys.executable, str(place))
        tool(
            *("pip", "sync", "--require-hashes", "--only-binary", ":all:"),
            *("--link-mode", "hardlink", "--python", str(place / "bin" / "python"), *options),
            str(wanted),
        )
        self.took_s = time.perf_counter() - began


def run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--image", default="pytorch-2.13-cpu")
    options.add_argument("--packages", default="")
    options.add_argument("--cold", type=int, default=1)
    options.add_argument("--warm", type=int, default=3)
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    lock = next(one.lock for one in known.built_in() if one.name == chosen.image)
    if chosen.packages:
        names = set(chosen.packages.split(","))
        lock = replace(lock, wheels=tuple(one for one in lock.wheels if one.name in names))
    print(
        f"{chosen.image}, {len(lock.wheels)} packages; Python {platform.python_version()},"
        f" {os.cpu_count()} processors"
    )
    found: dict[str, dict[str, list[float]]] = {"cold": {}, "warm": {}}
    with tempfile.TemporaryDirectory(prefix="danlu-bench-") as folder:
        sides = {
            "realise": Ours(Path(folder, "ours"), lock),
            "venv + pip": Pip(Path(folder, "pip"), lock),
            "uv pip sync": Sync(Path(folder, "sync"), lock),
        }
        for heat, rounds in (("cold", chosen.cold), ("warm", chosen.warm)):
            for _ in range(rounds):
                for name, side in sides.items():
                    if heat == "cold":
                        delete(side.root)
                    side.make()
                    found[heat].setdefault(name, []).append(side.took_s)
        for side in sides.values():
            delete(side.root)
    print(f"{'':6}{'':14}{'median':>10}{'best':>10}   realise : this (median of pairs)")
    for heat, values in found.items():
        for name, taken in values.items():
            pairs = [a / b for a, b in zip(values["realise"], taken, strict=True)]
            print(
                f"{heat:6}{name:14}{statistics.median(taken):8.2f} s{min(taken):8.2f} s"
                f"   {statistics.median(pairs):.3f}"
            )
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
