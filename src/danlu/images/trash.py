"""Deletes what a store has thrown away, behind whoever threw it away: tens of thousands of links
take seconds, and nobody needs to wait for them.

`python -m danlu.images.trash DIRECTORY` deletes everything in that directory. It may be killed:
what is left goes with the next thing that is thrown away, or when unused images are removed.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

NICE = 10
START_LIMIT_S = 30.0


def empty_behind(trash: Path) -> None:
    """Have everything in a directory deleted by a process of its own, which nobody waits for; here
    and now where none can be started.
    """
    command = [sys.executable, "-P", "-m", __name__, str(trash)]
    try:
        subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
            timeout=START_LIMIT_S,
        )
    except (OSError, subprocess.SubprocessError):
        empty(trash)


def empty(trash: Path) -> None:
    """Delete everything in a directory."""
    with suppress(OSError):
        for left in trash.iterdir():
            delete(left)


def delete(path: Path) -> None:
    """Delete a tree with read-only directories in it; what cannot be deleted stays."""
    for folder, names, _ in os.walk(path):
        for one in (folder, *(f"{folder}/{name}" for name in names)):
            writable(Path(one))
    shutil.rmtree(path, ignore_errors=True)


def writable(path: Path) -> None:
    """Let a directory's entries be deleted, as far as that can be done."""
    with suppress(OSError):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode) and not mode & 0o200:
            path.chmod(0o700)


def _main(trash: str) -> None:
    # The one who asked waits for this process only, and has nobody to bury later.
    if os.fork() == 0:
        os.setsid()
        os.nice(NICE)
        empty(Path(trash))


if __name__ == "__main__":
    _main(sys.argv[1])
