#!/usr/bin/env python3
"""Locks the built-in images from their definitions, by metadata alone: no wheel is downloaded.

    python scripts/lock_images.py          writes src/danlu/images/locks/*.json
    python scripts/lock_images.py --check  says which no longer can be had as they were locked

Needs a package index. Builds without CUDA come from PyTorch's own index, or from a directory that
PIP_FIND_LINKS names.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from danlu.images import definition, lock, locking, matrix
from danlu.images.uv import Sources, Uv

LOCKS = Path(__file__).resolve().parent.parent / "src" / "danlu" / "images" / "locks"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    parser.add_argument("--only", default="", help="the one image that is meant")
    options = parser.parse_args(arguments)
    stale = 0
    with tempfile.TemporaryDirectory() as cache:
        uv = Uv(Path(os.environ.get("UV_CACHE_DIR", cache)), Sources.of(os.environ))
        for one in definition.built_in():
            for backend in one.backends if options.only in ("", one.id) else ():
                path = LOCKS / lock.file_name(one, backend)
                earlier = lock.parse(path.read_text("utf-8")) if options.check else None
                pins = earlier.wheels if earlier else ()
                found = locking.make(matrix.packaged(), one, backend, uv, pins=pins)
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
