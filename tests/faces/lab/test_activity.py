"""What counts as use of a real JupyterLab, and what does not."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import connect

from danlu.faces.lab.instance import Instance
from tests.faces.lab.house import PATIENCE_S, House


class Visitor:
    """A program that uses Lab as its page does."""

    def __init__(self, house: House, one: Instance) -> None:
        self._house = house
        self._one = one
        self._headers = {"Host": house.host(one), "Cookie": house.enter(one)}

    def ask(self, method: str, path: str, body: object = None) -> Any:
        data = b"" if body is None else json.dumps(body).encode()
        answer = self._house.live.send(method, path, self._headers, data)
        assert answer.status < 300, answer.body
        return json.loads(answer.body) if answer.body else None

    def run(self, kernel: str, code: str, *, wait: bool = True) -> None:
        """Run `code` in a kernel, over its WebSocket."""
        header = {"msg_id": code, "msg_type": "execute_request", "session": "s", "username": "u",
                  "version": "5.4", "date": "2026-01-01T00:00:00Z"}  # fmt: skip
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {},
                   "allow_stdin": False, "stop_on_error": True}  # fmt: skip
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content,
                   "channel": "shell", "buffers": []}  # fmt: skip
        made = socket.create_connection(("127.0.0.1", self._house.live.port), PATIENCE_S)
        where = f"ws://{self._headers['Host']}/api/kernels/{kernel}/channels"
        cookie = {"Cookie": self._headers["Cookie"]}
        with connect(where, sock=made, additional_headers=cookie, max_size=None) as channels:
            channels.send(json.dumps(message))
            wanted = "execute_reply" if wait else "busy"
            while wanted not in str(channels.recv(PATIENCE_S)):
                pass


@pytest.fixture
def visitor(house: House, lab: Path) -> Iterator[Visitor]:
    one = house.add(lab)
    made = Visitor(house, one)
    for kernel in made.ask("GET", "/api/kernels"):
        made.ask("DELETE", f"/api/kernels/{kernel['id']}")
    yield made
    for kernel in made.ask("GET", "/api/kernels"):
        made.ask("DELETE", f"/api/kernels/{kernel['id']}")


def last_activity(visitor: Visitor, kernel: str) -> str:
    return str(visitor.ask("GET", f"/api/kernels/{kernel}?no_track_activity=1")["last_activity"])


def test_looking_is_no_activity(house: House, visitor: Visitor) -> None:
    """What an open tab asks for by itself all day; the bar that shows what a kernel uses asks the
    kernel itself.
    """
    kernel = str(visitor.ask("POST", "/api/kernels", {"name": "python3"})["id"])
    visitor.run(kernel, "1")
    ends = time.monotonic() + PATIENCE_S
    while visitor.ask("GET", f"/api/kernels/{kernel}")["execution_state"] != "idle":
        assert time.monotonic() < ends
        time.sleep(0.1)
    before = last_activity(visitor, kernel)
    house.known.used.clear()
    for _ in range(3):
        for path in ("kernels", "terminals", "sessions", "contents", "metrics/v1"):
            visitor.ask("GET", f"/api/{path}")
        used = visitor.ask("GET", f"/api/metrics/v1/kernel_usage/get_usage/{kernel}")
        assert "content" in used
        time.sleep(0.2)
    assert last_activity(visitor, kernel) == before
    assert house.known.used == []

    visitor.run(kernel, "2")
    assert last_activity(visitor, kernel) > before


def test_what_a_browser_changes_is_use(house: House, visitor: Visitor) -> None:
    house.known.used.clear()
    visitor.ask("PUT", "/api/contents/note.txt", {"type": "file", "format": "text", "content": ""})
    assert len(house.known.used) == 1
