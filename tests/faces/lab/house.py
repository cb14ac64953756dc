"""A server whose notebooks are what a test says, and programs that stand where Lab would."""

from __future__ import annotations

import contextlib
import http.client
import os
import secrets
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import danlu
from danlu.faces.lab.instance import Instance, Phase, Sentence
from danlu.model.errors import Missing, Unavailable
from danlu.model.identity import Secret, User
from danlu.model.notebook import lab_token
from tests.faces.http.live import Live

USER = User("user-1", "ann", "project-1", "domain-1")
TOKEN = lab_token("0" * 32)
PATIENCE_S = 60.0
RUNTIME = Path(danlu.__file__).parent / "runtime"


def connector(path: Path) -> Callable[[], socket.socket]:
    """Connects as an engine does: without blocking, and with the platform's errors."""

    def connect() -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        made.setblocking(False)
        try:
            made.connect(str(path))
        except BlockingIOError as error:
            made.close()
            raise Unavailable("busy", detail="full") from error
        except OSError as error:
            made.close()
            raise Missing("path-missing", field="lab.sock", value=path) from error
        return made

    return connect


@dataclass
class Known:
    """The notebooks there are."""

    instances: dict[str, Instance] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)

    def find(self, workspace: str, notebook: str) -> Instance | None:
        assert workspace == USER.workspace
        return self.instances.get(notebook)


class House:
    """A live server and its notebooks."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.known = Known()
        live.server.state.labs.instances = self.known
        live.server.state.labs.used = self.known.used.append

    def add(
        self,
        path: Path | None,
        *,
        phase: Phase = Phase.RUNNING,
        token: str = TOKEN,
        name: str = "nb",
        detail: Sentence | None = None,
    ) -> Instance:
        """A notebook whose Lab listens at `path`."""
        made = Instance(
            secrets.token_hex(8),
            name,
            secrets.token_hex(8),
            phase,
            connector(path or Path("/nowhere")),
            Secret(token),
            detail or Sentence("", ""),
        )
        self.known.instances[made.notebook] = made
        return made

    def host(self, one: Instance) -> str:
        return f"nb-{one.notebook}.localhost:{self.live.port}"

    def url(self, one: Instance) -> str:
        """A link that lets a browser in once."""
        return self.live.server.state.labs.url(USER, one, f"localhost:{self.live.port}")

    def enter(self, one: Instance) -> str:
        """A Cookie header that lets in."""
        url = urlsplit(self.url(one))
        answer = self.live.send("GET", f"{url.path}?{url.query}", {"Host": self.host(one)})
        assert answer.status == 303, answer.body
        return answer.headers["set-cookie"].partition(";")[0]

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.live.port, timeout=PATIENCE_S)


@contextmanager
def listening(folder: Path, serve: Callable[[socket.socket], None]) -> Iterator[Path]:
    """A program that calls `serve` for each connection, in a thread of its own."""
    path = folder / f"{secrets.token_hex(4)}.sock"
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))
        made.listen(64)
        threads: list[threading.Thread] = []

        def take(taken: socket.socket) -> None:
            with taken, contextlib.suppress(OSError):
                serve(taken)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    taken, _ = made.accept()
                    taken.settimeout(PATIENCE_S)
                    thread = threading.Thread(target=take, args=(taken,), daemon=True)
                    threads.append(thread)
                    thread.start()

        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        try:
            yield path
        finally:
            made.shutdown(socket.SHUT_RDWR)
            accepting.join(PATIENCE_S)
            for thread in threads:
                thread.join(PATIENCE_S)


def head_of(taken: socket.socket) -> tuple[bytes, bytes]:
    """The head of a request, and what was read beyond it."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = taken.recv(65536)
        if not more:
            raise OSError("closed")
        data += more
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def answering(answer: bytes) -> Callable[[socket.socket], None]:
    """Reads the head of a request and says `answer`."""

    def serve(taken: socket.socket) -> None:
        head_of(taken)
        taken.sendall(answer)

    return serve


@contextmanager
def jupyter_lab(python: Path, folder: Path, token: str) -> Iterator[Path]:
    """A real JupyterLab, as the instance of a notebook starts it; its socket."""
    (folder / "work").mkdir()
    endpoints = folder / "endpoints"
    endpoints.mkdir(0o700)
    environment = {
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(RUNTIME),
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "DANLU_ENDPOINTS": str(endpoints),
        "DANLU_LAB_TOKEN": token,
    }
    log = folder / "lab.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [str(python), "-m", "danlu_notebook"],
            env=environment,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        ends = time.monotonic() + PATIENCE_S
        while not (endpoints / "ready").exists():
            assert process.poll() is None, log.read_text("utf-8")
            assert time.monotonic() < ends, log.read_text("utf-8")
            time.sleep(0.05)
        yield endpoints / "lab.sock"
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
