"""What the platform says of the instance's end, on `notice.sock`, and what its people want of it.

A line of JSON comes, a line goes back. The server comes every few seconds: a warning of it is
written into every terminal of the instance, once, and its answer says whether somebody has asked
for more time since. `danlu-extend` asks on the same socket, and hears what came of that.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from contextlib import suppress

from danlu_notebook.activity import below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SOCKET = "notice.sock"
LINE_BYTES = 16 << 10
LINE_S = 10.0
WAIT_S = 60.0
"""How long somebody who asks for more time waits: the server comes far more often."""
UNIX98 = range(136, 144)
"""Major numbers of pseudo-terminals."""
NO_ANSWER = ("the platform does not answer; try again", "平台没有应答，请稍后重试")


class Notices:
    """Listens in one directory of endpoints."""

    def __init__(self, endpoints: str) -> None:
        self._endpoints = endpoints
        self._warned = 0
        self._asked = False
        self._answer: list[str] = []
        self._answers = 0
        self._changed = threading.Condition()
        self.wrote_at = 0
        """When it wrote into terminals last (UTC ms)."""

    def start(self) -> None:
        """Listen from now on."""
        directory = os.open(self._endpoints, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        place = f"/proc/self/fd/{directory}/{SOCKET}"
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with suppress(FileNotFoundError):
            os.unlink(place)
        opened.bind(place)
        os.chmod(place, 0o600)
        os.close(directory)
        opened.listen(64)
        threading.Thread(target=self._serve, args=(opened,), name="notices", daemon=True).start()

    def _serve(self, opened: socket.socket) -> None:
        while True:
            with suppress(OSError):
                connection, _ = opened.accept()
                threading.Thread(target=self._one, args=(connection,), daemon=True).start()

    def _one(self, connection: socket.socket) -> None:
        with suppress(OSError, ValueError), connection:
            connection.settimeout(LINE_S)
            with connection.makefile("rb") as lines:
                said = json.loads(lines.readline(LINE_BYTES))
            if isinstance(said, dict):
                heard = self._ask() if said.get("ask") == "extend" else self.hear(said)
                connection.sendall(json.dumps(heard).encode() + b"\n")

    def hear(self, said: Mapping[str, object]) -> dict[str, object]:
        """What the server says; the answer to it."""
        warned, warning, answer = said.get("warned"), said.get("warning"), said.get("answer")
        with self._changed:
            asked, self._asked = self._asked, False
            new = isinstance(warned, int) and warned not in (0, self._warned)
            self._warned = warned if isinstance(warned, int) else 0
            if isinstance(answer, list) and answer:
                self._answer = [str(one) for one in answer]
                self._answers += 1
                asked = False
                self._changed.notify_all()
        if new and isinstance(warning, list) and warning:
            # Before: what reads it may be quicker than we are.
            self.wrote_at = time.time_ns() // 1_000_000
            write([str(one) for one in warning])
        return {"extend": asked}

    def _ask(self) -> dict[str, object]:
        """Have the server asked for more time, and wait for what it says to that."""
        ends = time.monotonic() + WAIT_S
        with self._changed:
            self._asked = True
            before = self._answers
            while self._answers == before:
                left = ends - time.monotonic()
                if left <= 0:
                    return {"answer": NO_ANSWER}
                self._changed.wait(left)
            return {"done": True, "answer": self._answer}


def write(sentences: list[str]) -> None:
    """Write into every terminal of this instance, as wall(1) does."""
    shown = "".join(f"*** {one} ***\r\n" for one in sentences)
    for place in terminals():
        # Nobody may read it any more: then it is full, and nothing is lost.
        with suppress(OSError):
            opened = os.open(place, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                os.write(opened, f"\r\n{shown}".encode())
            finally:
                os.close(opened)


def terminals() -> list[str]:
    """The terminals of the processes below this one."""
    found = set()
    for pid in below(os.getpid()):
        with suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{pid}/stat", "rb") as file:
                stat = file.read()
            device = int(stat[stat.rindex(b")") + 2 :].split()[4])
            major, minor = os.major(device), os.minor(device)
            if major in UNIX98:
                found.add(f"/dev/pts/{minor + (major - UNIX98.start) * 256}")
    return sorted(found)
