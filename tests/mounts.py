"""Small real file systems for tests of full, read-only and strange disks."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.services import offered, require

MNT_DETACH = 2


@contextmanager
def tmpfs(where: Path, options: str) -> Iterator[Path]:
    """A file system in memory, mounted at `where` until the block ends."""
    with _mounted(where, "-t", "tmpfs", "-o", options, "none"):
        yield where


@contextmanager
def ext4(where: Path, size: int, *options: str) -> Iterator[Path]:
    """An ext4 of `size` bytes in a file beside `where`; `options` are those of mkfs.ext4."""
    require(shutil.which("mkfs.ext4"), "mkfs.ext4 (e2fsprogs)")
    image = where.with_name(f"{where.name}.img")
    with image.open("wb") as file:
        file.truncate(size)
    subprocess.run(["mkfs.ext4", "-q", *options, image], check=True, capture_output=True)
    with _mounted(where, "-o", "loop", str(image)):
        yield where


@contextmanager
def _mounted(where: Path, *arguments: str) -> Iterator[None]:
    offered(os.geteuid() == 0, "root, to mount a file system")
    where.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *arguments, where], check=False, capture_output=True, text=True)
    offered(done.returncode == 0, f"mount {' '.join(arguments)} ({done.stderr.strip()})")
    try:
        yield
    finally:
        # Lazily: what a failed test left open must not fail the next one too. Not by umount(8),
        # which looks the mount up in a list that may miss it while others mount and unmount.
        libc = ctypes.CDLL(None, use_errno=True)
        gone = libc.umount2(bytes(where), MNT_DETACH)
        assert gone == 0, os.strerror(ctypes.get_errno())


def fill(directory: Path) -> Path:
    """Write until the disk is full; the file that holds what was free."""
    ballast = directory / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return ballast
