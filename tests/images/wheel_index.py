"""A package index of small wheels on loopback, which counts what is asked of it."""

from __future__ import annotations

import io
import json
import os
import re
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from danlu.images.remote import JSON

BALLAST = 6 << 20
"""Bytes that no compression makes smaller, in a file that nobody wants."""


def wheel(files: Mapping[str, bytes], ballast: int = BALLAST) -> bytes:
    """A wheel with these files, and one large one before them."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("torch/lib/libtorch_cuda.so", os.urandom(ballast))
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def torch_wheel(version: str, cuda: str, requires: list[str], flags: str) -> bytes:
    """What a wheel of torch holds of itself."""
    metadata = f"Metadata-Version: 2.4\nName: torch\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {one}\n" for one in requires)
    metadata += "\nRequires-Dist: nothing==1  in the description\n"
    words = f"debug = False\ncuda: Optional[str] = '{cuda}'\n" if cuda else "cuda = None\n"
    library = os.urandom(200_000) + b"\0" + flags.encode() + b"\0" + os.urandom(3 << 20)
    return wheel(
        {
            "torch/lib/libtorch_python.so": library,
            "torch/version.py": words.encode(),
            f"torch-{version}.dist-info/METADATA": metadata.encode(),
        }
    )


class Index:
    """The files of an index by project, and each request for one: name, range, bytes sent."""

    def __init__(self) -> None:
        self.projects: dict[str, dict[str, bytes]] = {"torchvision": {}, "torchaudio": {}}
        self.yanked: set[str] = set()
        self.asked: list[tuple[str, str, int]] = []
        self.ranges = True
        self.content_type = JSON
        self.url = ""

    def add(self, project: str, filename: str, data: bytes) -> None:
        self.projects.setdefault(project, {})[filename] = data

    def page(self, project: str) -> bytes:
        files = [
            {"filename": name, "url": f"../../files/{project}/{name}", "size": len(data),
             "upload-time": "2027-01-20T10:00:00Z", "yanked": name in self.yanked, "hashes": {}}
            for name, data in self.projects[project].items()
        ]  # fmt: skip
        return json.dumps({"meta": {"api-version": "1.1"}, "files": files}).encode()


@contextmanager
def served(index: Index) -> Iterator[Index]:
    """The index at `index.url`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = self.path.strip("/").split("/")
            if parts[0] == "simple" and parts[1] in index.projects:
                self.reply(200, index.page(parts[1]), {"Content-Type": index.content_type})
            elif parts[0] == "files":
                self.file(parts[2], index.projects[parts[1]][parts[2]])
            else:
                self.reply(404, b"", {})

        def file(self, name: str, data: bytes) -> None:
            asked = self.headers.get("Range", "")
            found = re.fullmatch(r"bytes=(\d+)-(\d+)", asked)
            if found is None or not index.ranges:
                index.asked.append((name, "", len(data)))
                self.reply(200, data, {})
                return
            first, last = int(found[1]), int(found[2])
            part = data[first : last + 1]
            index.asked.append((name, asked, len(part)))
            self.reply(206, part, {"Content-Range": f"bytes {first}-{last}/{len(data)}"})

        def reply(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            try:
                self.wfile.write(body)
            except OSError:
                self.close_connection = True  # the client has left, as it should

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False  # closing waits for the replies that are on their way
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    index.url = f"http://127.0.0.1:{server.server_port}/simple"
    try:
        yield index
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
