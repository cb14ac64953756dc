#!/usr/bin/env python3
"""Locks the built-in images from their definitions, by metadata alone: no wheel is downloaded.

    python scripts/lock_images.py          writes src/danlu/images/locks/*.json
    python scripts/lock_images.py --check  says which no longer can be had as they were locked

Needs a package index and uv (of the developer's environment). Locks of builds without CUDA come
from PyTorch's own index or a directory: --find-links.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from danlu.images import definition, lock, matrix, pylock
from danlu.images.definition import Definition
from danlu.images.lock import Lock
from danlu.model.image import CPU

LOCKS = Path(__file__).resolve().parent.parent / "src" / "danlu" / "images" / "locks"
ARCH, GLIBC = "x86_64", "2.28"
UV = Path(sys.executable).parent / "uv"


def resolved(one: Definition, find_links: list[str], pins: list[str]) -> str:
    """What uv finds for a definition, as a pylock.toml."""
    wanted = definition.requirements(matrix.packaged(), one)
    with tempfile.TemporaryDirectory() as folder:
        source, constraints = Path(folder, "requirements.in"), Path(folder, "constraints.txt")
        target = Path(folder, "pylock.toml")
        source.write_text("\n".join(wanted) + "\n", "utf-8")
        constraints.write_text("\n".join(pins) + "\n", "utf-8")
        subprocess.run(
            [
                *(str(UV), "--no-config", "--quiet", "pip", "compile", str(source)),
                *("--constraint", str(constraints), "--format", "pylock.toml"),
                *("--python-version", one.python, "--only-binary", ":all:"),
                *("--python-platform", f"{ARCH}-manylinux_{GLIBC.replace('.', '_')}"),
                *(word for link in find_links for word in ("--find-links", link)),
                *("--output-file", str(target)),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return target.read_text("utf-8")


def made(one: Definition, backend: str, find_links: list[str], earlier: Lock | None) -> Lock:
    """The lock of one backend, at the versions of an earlier lock where there is one."""
    pins = [f"{wheel.name}=={wheel.version}" for wheel in earlier.wheels] if earlier else []
    text = resolved(one, find_links, pins)
    wheels = pylock.wheels(text, pylock.Target(one.python, GLIBC, ARCH))
    return lock.of(one, matrix.packaged(), backend, ARCH, wheels)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    parser.add_argument("--find-links", action="append", default=[], help="a directory of wheels")
    options = parser.parse_args(arguments)
    stale = 0
    for one in definition.built_in():
        definition.check(matrix.packaged(), one, GLIBC, ARCH)
        for backend in one.backends:
            if backend == CPU and not options.find_links:
                print(f"{one.id}: skipped, builds without CUDA need --find-links")
                continue
            path = LOCKS / lock.file_name(one, backend)
            earlier = lock.parse(path.read_text("utf-8")) if options.check else None
            found = made(one, backend, options.find_links, earlier)
            if options.check:
                same = found == earlier
                stale += not same
                print(f"{path.name}: {'as locked' if same else 'differs from what is offered'}")
                continue
            LOCKS.mkdir(exist_ok=True)
            path.write_text(lock.canonical(found), "utf-8")
            print(f"{path.name}: {len(found.wheels)} wheels, {lock.image_id(found)}")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
