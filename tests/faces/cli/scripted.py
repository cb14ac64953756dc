"""A server that answers requests with bytes from a script, to see what a client makes of it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Self

Step = bytes | float
"""Bytes to send, or seconds to wait."""


class Scripted:
    """Plays one script a connection, in order; the last one again for all that follow.

    A script is a list of answers; each answer is played when a whole request has arrived. After
    the last one the connection is closed.
    """

    def __init__(self, *scripts: Sequence[Sequence[Step]]) -> None:
        self._scripts = list(scripts)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = self._door.getsockname()[1]
        self.requests: list[bytes] = []
        self.connections = 0
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def api(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # A listening socket that is closed does not wake its accept: knock.
        scripts, self._scripts = self._scripts, []
        del scripts
        with socket.create_connection(("127.0.0.1", self.port)):
            pass
        self._thread.join(10)
        self._door.close()

    def _run(self) -> None:
        while True:
            connection, _ = self._door.accept()
            if not self._scripts:
                connection.close()
                return
            script = self._scripts[min(self.connections, len(self._scripts) - 1)]
            self.connections += 1
            with connection:
                self._play(connection, script)

    def _play(self, connection: socket.socket, script: Sequence[Sequence[Step]]) -> None:
        connection.settimeout(10)
        rest = b""
        for answer in script:
            request, rest = _request(connection, rest)
            if not request:
                return
            self.requests.append(request)
            for step in answer:
                if isinstance(step, float):
                    time.sleep(step)
                else:
                    try:
                        connection.sendall(step)
                    except OSError:
                        return


def _request(connection: socket.socket, data: bytes) -> tuple[bytes, bytes]:
    """One whole request, by its Content-Length or its chunks, and what came behind it."""

    def until(done: Callable[[bytes], int]) -> int:
        nonlocal data
        while (end := done(data)) < 0:
            more = connection.recv(65536)
            if not more:
                return -1
            data += more
        return end

    head = until(lambda d: d.find(b"\r\n\r\n"))
    if head < 0:
        return b"", b""
    fields = data[:head].lower().split(b"\r\n")
    length = next((int(f[15:]) for f in fields if f.startswith(b"content-length:")), 0)
    if b"transfer-encoding: chunked" in fields:
        end = until(lambda d: d.find(b"0\r\n\r\n", head)) + 5
    else:
        end = head + 4 + length
        if until(lambda d: 0 if len(d) >= end else -1) < 0:
            return b"", b""
    return data[:end], data[end:]


def reply(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """A whole response with a length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def chunked(*parts: bytes) -> bytes:
    """A whole response in chunks."""
    body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"
