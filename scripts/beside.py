#!/usr/bin/env python3
"""Runs two commands side by side: the first one is seen as it goes, the second one when it is over.

    python scripts/beside.py FIRST ... -- SECOND ...

Exit status: that of the first one that fails.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile


def main(words: list[str]) -> int:
    at = words.index("--")
    with tempfile.TemporaryFile() as said:
        second = subprocess.Popen(words[at + 1 :], stdout=said, stderr=subprocess.STDOUT)
        try:
            # Ctrl-C reaches all three: each ends in its own way, and is waited for.
            failed = _waited(subprocess.Popen(words[:at]))
        finally:
            failed_too = _waited(second)
            said.seek(0)
            shutil.copyfileobj(said, sys.stdout.buffer)
            sys.stdout.flush()
    return failed or failed_too


def _waited(process: subprocess.Popen[bytes]) -> int:
    while True:
        try:
            status = process.wait()
        except KeyboardInterrupt:
            continue
        return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
