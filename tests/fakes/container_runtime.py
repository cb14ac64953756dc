"""A server on a unix socket that answers as podman and Docker do, with what a test tells it."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

Answer = tuple[int, Any]
"""A status, and what is sent as JSON; a list is sent as lines."""


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    answers: Mapping[tuple[str, str], Callable[[], Answer]]
    asked: list[tuple[str, str]]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def address_string(self) -> str:
        return "unix"

    def log_message(self, *_arguments: Any) -> None:
        pass

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        what = (self.command, unquote(urlsplit(self.path).path))
        self.server.asked.append(what)
        missing: Callable[[], Answer] = lambda: (404, {"message": f"no such thing: {what[1]}"})  # noqa: E731 -- a default
        status, value = self.server.answers.get(what, missing)()
        lines = value if isinstance(value, list) else [value]
        data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    do_GET = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815 -- the names are http.server's


class FakeRuntime:
    """Listens until it is closed. `answers` may be changed meanwhile."""

    def __init__(self, folder: Path) -> None:
        self.socket = str(folder / "runtime.sock")
        self.answers: dict[tuple[str, str], Callable[[], Answer]] = {}
        self._server = _Server(self.socket, _Handler)
        self._server.answers = self.answers
        self.asked = self._server.asked = []
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def says(self, method: str, path: str, status: int, value: Any) -> None:
        """Answer a request so from now on."""
        self.answers[method, path] = lambda: (status, value)

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
