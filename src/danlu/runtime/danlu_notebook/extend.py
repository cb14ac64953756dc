"""danlu-extend: have this notebook's lease and its idleness counted from now, from within it."""

from __future__ import annotations

import json
import os
import socket
import sys

SOCKET = "notice.sock"
WAIT_S = 90.0
USAGE = """\
usage: danlu-extend

Count this notebook's lease and its idleness anew, from now on, as `danlu notebook renew` does.
为该 Notebook 续期：租期和空闲时间从现在起重新计算，等同于 `danlu notebook renew`。
"""
OUTSIDE = """\
danlu-extend: this is no terminal of a notebook (DANLU_ENDPOINTS is not set)
danlu-extend：这不是 Notebook 的终端（未设置 DANLU_ENDPOINTS）
"""
SILENT = """\
danlu-extend: nothing answers in this notebook ({problem})
danlu-extend：该 Notebook 中没有应答（{problem}）
"""


def main() -> int:
    """Ask, and show what came of it."""
    if sys.argv[1:]:
        out = sys.stdout if sys.argv[1:] in (["-h"], ["--help"]) else sys.stderr
        out.write(USAGE)
        return 0 if out is sys.stdout else 2
    endpoints = os.environ.get("DANLU_ENDPOINTS")
    if not endpoints:
        sys.stderr.write(OUTSIDE)
        return 2
    try:
        heard = _asked(endpoints)
    except (OSError, ValueError) as problem:
        sys.stderr.write(SILENT.format(problem=problem))
        return 75
    out = sys.stdout if heard.get("done") else sys.stderr
    out.write("".join(f"{one}\n" for one in heard.get("answer", ())))
    return 0 if heard.get("done") else 75


def _asked(endpoints: str) -> dict[str, list[str]]:
    directory = os.open(endpoints, os.O_PATH | os.O_DIRECTORY)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(WAIT_S)
        connection.connect(f"/proc/self/fd/{directory}/{SOCKET}")
        connection.sendall(b'{"ask": "extend"}\n')
        with connection.makefile("rb") as lines:
            heard: dict[str, list[str]] = json.loads(lines.readline())
    return heard


if __name__ == "__main__":
    sys.exit(main())
