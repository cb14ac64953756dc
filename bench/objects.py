"""The folder store: put, read, copy and list, against plain files with the same durability.

    python bench/objects.py [--pairs 5] [--large-mib 256] [--sizes 1000,10000,100000] [--json FILE]

Every figure stands beside its floor, measured in turn with it in the same run: the same bytes
through plain files, each with an fsync of the file and of its directory where the store promises
one. Times are milliseconds for the whole scenario; the ratio is ours by the floor's.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from danlu.flow.code import store_archive, stored
from danlu.model import tar
from danlu.stores.folder import FolderStore

BUCKET = "bench"
SMALL = random.Random(1).randbytes(20_000)
CHUNK = 256 << 10


@contextmanager
def opened() -> Iterator[tuple[FolderStore, Path]]:
    """A store and a directory for the floor, on the same file system."""
    with tempfile.TemporaryDirectory(prefix="danlu-bench-") as name:
        store = FolderStore(Path(name) / "objects")
        store.create_bucket(BUCKET)
        plain = Path(name) / "plain"
        plain.mkdir()
        yield store, plain
        store.close()


def pairs_of(
    name: str, pairs: int, ours: Callable[[int], object], floor: Callable[[int], object]
) -> dict[str, Any]:
    """Both in turn, once to warm up and `pairs` times measured; print medians and ratios."""
    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(pairs + 1):
        for kept, run in zip(times, (ours, floor), strict=True):
            began = time.perf_counter()
            run(turn)
            kept.append((time.perf_counter() - began) * 1000)
    mine, bare = times[0][1:], times[1][1:]
    ratios = [a / b for a, b in zip(mine, bare, strict=True)]
    row = {
        "name": name,
        "unit": "ms",
        "ours": statistics.median(mine),
        "floor": statistics.median(bare),
        "ratio": statistics.median(ratios),
        "spread": [min(ratios), max(ratios)],
    }
    print(
        f"{name:48} {row['ours']:9,.1f} {row['floor']:9,.1f} ms"
        f"  ratio {row['ratio']:5.2f}  ({min(ratios):.2f}–{max(ratios):.2f})"
    )
    return row


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def write(path: Path, content: bytes) -> None:
    """A plain file, replaced as a whole, durable together with its name."""
    new = path.with_suffix(".new")
    with new.open("wb", buffering=0) as target:
        target.write(content)
        os.fsync(target.fileno())
    new.rename(path)
    sync(path.parent)


def large(pairs: int, mib: int) -> list[dict[str, Any]]:
    with opened() as (store, plain):
        source = plain / "source"
        with source.open("wb") as target:
            for number in range(mib):
                target.write(random.Random(number).randbytes(1 << 20))

        def put(_: int) -> None:
            with source.open("rb") as content:
                store.put(BUCKET, "large", content)

        def copy(_: int) -> None:
            shutil.copyfile(source, plain / "new")
            sync(plain / "new")
            (plain / "new").rename(plain / "copy")
            sync(plain)

        def read_store(_: int) -> None:
            for _chunk in store.read(BUCKET, "large"):
                pass

        def read_plain(_: int) -> None:
            with source.open("rb", buffering=0) as content:
                while content.read(CHUNK):
                    pass

        return [
            pairs_of(f"put {mib} MiB / cp, fsync, rename", pairs, put, copy),
            pairs_of(f"read {mib} MiB / read a file", pairs, read_store, read_plain),
        ]


def small(pairs: int, count: int) -> list[dict[str, Any]]:
    with opened() as (store, plain):
        pool = ThreadPoolExecutor(8)

        def put(number: int) -> None:
            store.put(BUCKET, f"small/{number}", SMALL)

        def plain_write(number: int) -> None:
            write(plain / str(number), SMALL)

        def read(number: int) -> bytes:
            return b"".join(store.read(BUCKET, f"small/{number}"))

        def plain_read(number: int) -> bytes:
            return (plain / str(number)).read_bytes()

        def copy(turn: int) -> None:
            for number in range(100):
                store.copy(BUCKET, f"small/{number}", BUCKET, f"copy/{turn}/{number}")

        def link(turn: int) -> None:
            for number in range(100):
                os.link(plain / str(number), plain / f"copy-{turn}-{number}")
                sync(plain)

        each = range(count)
        rows = [
            pairs_of(
                f"put {count} × 20 KB, 1 thread / write and fsync",
                pairs,
                lambda _: list(map(put, each)),
                lambda _: list(map(plain_write, each)),
            ),
            pairs_of(
                f"put {count} × 20 KB, 8 threads / the same",
                pairs,
                lambda _: list(pool.map(put, each)),
                lambda _: list(pool.map(plain_write, each)),
            ),
            pairs_of(
                f"read {count} × 20 KB / read files",
                pairs,
                lambda _: [read(number) for number in each],
                lambda _: [plain_read(number) for number in each],
            ),
            pairs_of("copy 100 objects / link and fsync", pairs, copy, link),
        ]
        pool.shutdown()
        return rows


def fill(store: FolderStore, root: Path, keys: list[str]) -> None:
    """Rows for `keys` that all name one blob: only the listing is measured."""
    store.put(BUCKET, "one", b"x")
    store.close()
    with sqlite3.connect(root / BUCKET / "index.db") as index:
        row = index.execute("SELECT * FROM objects WHERE key = ?", (b"one",)).fetchone()
        index.executemany(
            "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?)",
            ((key.encode(), *row[1:]) for key in keys),
        )
    index.close()


def listing(pairs: int, sizes: list[int]) -> list[dict[str, Any]]:
    rows = []
    for size in sizes:
        with opened() as (store, plain):
            keys = [f"data/{number // 1000:04}/{number:08}" for number in range(size)]
            fill(store, plain.parent / "objects", keys)
            for key in keys[:1000]:
                (plain / Path(key).name).touch()
            middle = keys[size // 2 - 1]

            def page(_: int, store: FolderStore = store, after: str = middle) -> None:
                store.list(BUCKET, "data/", after=after)

            def folded(_: int, store: FolderStore = store) -> None:
                store.list(BUCKET, "data/", delimiter="/")

            def scan(_: int, plain: Path = plain) -> None:
                sorted((entry.name, entry.stat().st_size) for entry in os.scandir(plain))

            half = min(1000, size // 2)
            rows += [
                pairs_of(f"page of {half} in {size} keys / scandir of 1000", pairs, page, scan),
                pairs_of(f"{size // 1000} folders in {size} keys / the same", pairs, folded, scan),
            ]
    return rows


def code(pairs: int) -> list[dict[str, Any]]:
    """A code directory of 12 files, new every time, and one that is there already."""
    with opened() as (store, plain):

        def archive(turn: int) -> io.BytesIO:
            content = b"print(%d)\n" % turn + bytes(4000)
            one = [
                tar.encode(f"f{number}.py", len(content), executable=False) + tar.padded(content)
                for number in range(12)
            ]
            return io.BytesIO(b"".join(one) + tar.END)

        def take(turn: int) -> None:
            store_archive(store, BUCKET, archive(turn), "code")

        def copy(turn: int) -> None:
            for number in range(12):
                write(plain / f"{turn}-{number}", b"print(%d)\n" % turn + bytes(4000))

        known = store_archive(store, BUCKET, archive(-1), "code").digest
        return [
            pairs_of("take code of 12 files / write and fsync 12", pairs, take, copy),
            pairs_of(
                "ask for code that is there / stat 12 files",
                pairs,
                lambda _: stored(store, BUCKET, known, "code"),
                lambda _: [path.stat() for path in list(plain.iterdir())[:12]],
            ),
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--large-mib", type=int, default=256)
    parser.add_argument("--small", type=int, default=500)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    rows = [
        *large(given.pairs, given.large_mib),
        *small(given.pairs, given.small),
        *listing(given.pairs, sizes),
        *code(given.pairs),
    ]
    if given.json:
        given.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
