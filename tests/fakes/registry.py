"""A registry of container images in memory, over plain HTTP: as much of the distribution protocol
as a push and a pull need. It checks every digest.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

_BLOB = re.compile(r"/v2/(.+)/blobs/(sha256:[0-9a-f]{64})")
_UPLOAD = re.compile(r"/v2/(.+)/blobs/uploads/(\w*)")
_MANIFEST = re.compile(r"/v2/(.+)/manifests/([A-Za-z0-9_.:-]+)")


class Registry(ThreadingHTTPServer):
    """What it holds: blobs by digest, manifests by repository and tag or digest."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[tuple[str, str], bytes] = {}
        self.uploads: dict[str, bytes] = {}

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Registry

    def log_message(self, *_: Any) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """A blob, a manifest, or that the protocol is spoken."""
        path = urlsplit(self.path).path
        if path == "/v2/":
            self._answer(200, b"{}")
        elif (found := _BLOB.fullmatch(path)) and found[2] in self.server.blobs:
            self._answer(200, self.server.blobs[found[2]])
        elif (found := _MANIFEST.fullmatch(path)) and (
            body := self.server.manifests.get((found[1], found[2]))
        ):
            self._answer(200, body, {"Content-Type": json.loads(body)["mediaType"],
                                     "Docker-Content-Digest": _digest(body)})  # fmt: skip
        else:
            self._answer(404, b'{"errors": [{"code": "MANIFEST_UNKNOWN"}]}')

    do_HEAD = do_GET  # noqa: N815 -- as the standard library calls it

    def do_POST(self) -> None:
        """Begin an upload."""
        found = _UPLOAD.fullmatch(urlsplit(self.path).path)
        self._body()
        assert found is not None
        name = f"u{len(self.server.uploads)}"
        self.server.uploads[name] = b""
        self._answer(202, headers={"Location": f"/v2/{found[1]}/blobs/uploads/{name}"})

    def do_PATCH(self) -> None:
        """Go on with one."""
        found = _UPLOAD.fullmatch(urlsplit(self.path).path)
        assert found is not None
        self.server.uploads[found[2]] += self._body()
        self._answer(202, headers={"Location": self.path})

    def do_PUT(self) -> None:
        """End one, or take a manifest whose parts are all here."""
        parts = urlsplit(self.path)
        body = self._body()
        if found := _UPLOAD.fullmatch(parts.path):
            whole = self.server.uploads.pop(found[2]) + body
            wanted = parse_qs(parts.query)["digest"][0]
            if _digest(whole) != wanted:
                self._answer(400)
                return
            self.server.blobs[wanted] = whole
        elif found := _MANIFEST.fullmatch(parts.path):
            data = json.loads(body)
            named = [data["config"]["digest"], *(one["digest"] for one in data["layers"])]
            if not set(named) <= self.server.blobs.keys():
                self._answer(400)
                return
            for reference in (found[2], _digest(body)):
                self.server.manifests[found[1], reference] = body
        self._answer(201, headers={"Location": parts.path, "Docker-Content-Digest": _digest(body)})

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _answer(
        self, status: int, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@contextmanager
def registry() -> Iterator[Registry]:
    """A running one."""
    server = Registry()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
