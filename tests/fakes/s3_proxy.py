"""A proxy in front of an S3 server that does, request by request, what networks and servers do."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

FAULTS = (
    "slow-down",  # 503 SlowDown; nothing was done
    "error",  # 500; nothing was done
    "cut",  # the connection closes before the request is passed on
    "lost",  # it was done, and the answer is not sent
    "half",  # the body ends in its middle, by a close
    "reset",  # as half, by a reset
    "flip",  # one byte of the body is another
    "short",  # a whole answer about half of the content
    "late",  # 200, and an error in the body (copies and completions)
    "silent",  # no answer at all for longer than the client waits
)


class Proxy(ThreadingHTTPServer):
    """Passes requests on to `upstream`. The next requests that match get `faults`, in order."""

    daemon_threads = True

    def __init__(self, upstream: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream
        self.faults: deque[str] = deque()
        self.matching = ""
        self.seen: list[str] = []
        self.bytes_s = 0
        self.lock = threading.Lock()
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def plan(self, *faults: str, matching: str = "") -> None:
        """`matching` is the beginning of "METHOD /path?query" of the requests to spoil."""
        with self.lock:
            self.seen.clear()
            self.matching = matching
            self.faults = deque(faults)

    def take(self, line: str) -> str:
        """The fault of this request, if it has one."""
        with self.lock:
            self.seen.append(line)
            hit = self.faults and line.startswith(self.matching)
            return self.faults.popleft() if hit else ""

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are what this is for."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        fault = self.server.take(f"{self.command} {self.path}")
        if fault in {"slow-down", "error"}:
            code = "SlowDown" if fault == "slow-down" else "InternalError"
            said = f"<Error><Code>{code}</Code><Message>by the test</Message></Error>".encode()
            self._answer(503 if fault == "slow-down" else 500, [], said, len(said))
        elif fault == "silent":
            self.server.over.wait(60)
            self.close_connection = True
        elif fault == "cut":
            self.close_connection = True
        else:
            self._forward(fault, body)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815 - the names that http.server asks for

    def _forward(self, fault: str, body: bytes) -> None:
        connection = http.client.HTTPConnection(urlsplit(self.server.upstream).netloc, timeout=60)
        try:
            connection.putrequest(
                self.command, self.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in self.headers.items():
                connection.putheader(name, value)
            connection.endheaders(body or None)
            answer = connection.getresponse()
            data = answer.read()
            length = int(answer.headers.get("content-length", len(data)))
            skipped = {"content-length", "connection", "transfer-encoding", "date", "server"}
            headers = [pair for pair in answer.headers.items() if pair[0].lower() not in skipped]
            headers.append(("server", answer.headers.get("server", "")))
        finally:
            connection.close()
        self._spoil(fault, answer.status, headers, data, length)

    def _spoil(
        self, fault: str, status: int, headers: list[tuple[str, str]], data: bytes, length: int
    ) -> None:
        if fault == "lost":
            self.close_connection = True
        elif fault == "late":
            said = b"<Error><Code>InternalError</Code></Error>"
            self._answer(200, [], said, len(said))
        elif fault in {"half", "reset"}:
            self._answer(status, headers, data[: len(data) // 2], length)
            if fault == "reset":
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.close_connection = True
        elif fault == "flip":
            middle = len(data) // 2
            flipped = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
            self._answer(status, headers, flipped, length)
        elif fault == "short":
            self._answer(status, headers, data[: len(data) // 2], len(data) // 2)
        else:
            self._answer(status, headers, data, length)

    def _answer(
        self, status: int, headers: list[tuple[str, str]], data: bytes, length: int
    ) -> None:
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(length))
        self.end_headers()
        rate = self.server.bytes_s
        with suppress(OSError):
            for start in range(0, len(data), rate // 10 or len(data) or 1):
                self.wfile.write(data[start : start + (rate // 10 or len(data))])
                if rate:
                    time.sleep(0.1)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def in_front_of(upstream: str) -> Iterator[Proxy]:
    """A proxy that serves until the block ends."""
    proxy = Proxy(upstream)
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.over.set()
        proxy.shutdown()
        proxy.server_close()
        thread.join(10)
