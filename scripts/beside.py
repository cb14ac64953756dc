#!/usr/bin/env python3
"""Runs commands side by side: the first one is seen as it goes, the others when they are over.

    python scripts/beside.py FIRST ... -- SECOND ... [-- THIRD ...]

Exit status: that of the first one in this order that fails.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from typing import IO


def main(words: list[str]) -> int:
    first, *others = commands(words)
    with ExitStack() as files:
        beside: list[tuple[subprocess.Popen[bytes], IO[bytes]]] = []
        for command in others:
            said: IO[bytes] = files.enter_context(tempfile.TemporaryFile())
            started = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
            beside.append((started, said))
        statuses: list[int] = []
        try:
            # Ctrl-C reaches all of them: each ends in its own way, and is waited for.
            statuses.append(_waited(subprocess.Popen(first)))
        finally:
            for process, said in beside:
                statuses.append(_waited(process))
                said.seek(0)
                shutil.copyfileobj(said, sys.stdout.buffer)
                sys.stdout.flush()
    return next((status for status in statuses if status), 0)


def commands(words: list[str]) -> list[list[str]]:
    """What stands between the dashes."""
    found: list[list[str]] = [[]]
    for word in words:
        if word == "--":
            found.append([])
        else:
            found[-1].append(word)
    return found


def _waited(process: subprocess.Popen[bytes]) -> int:
    while True:
        try:
            status = process.wait()
        except KeyboardInterrupt:
            continue
        return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
