"""WebSockets through the proxy: a library's server where Lab would be, its client as browser."""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, unix_serve
from websockets.typing import Subprotocol

from danlu.faces.lab.instance import Instance, Phase
from tests.faces.lab.house import TOKEN, House, answering, head_of, listening

MIB = 1 << 20
PROTOCOL = Subprotocol("v1.kernel.websocket.jupyter.org")

Serve = Callable[[ServerConnection], None]


@contextlib.contextmanager
def kernel(folder: Path, serve: Serve) -> Iterator[Path]:
    path = folder / "kernel.sock"
    with unix_serve(serve, str(path), subprotocols=[PROTOCOL], max_size=None) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield path
        finally:
            server.shutdown()
            thread.join(60)


def opened(
    house: House,
    one: Instance,
    cookie: str | None = None,
    origin: str | None = None,
    ping_interval: float | None = 20,
) -> ClientConnection:
    host = house.host(one)
    headers = {"Cookie": house.enter(one) if cookie is None else cookie}
    if origin != "":
        headers["Origin"] = origin or f"http://{host}"
    made = socket.create_connection(("127.0.0.1", house.live.port), 60)
    return connect(
        f"ws://{host}/api/kernels/1/channels?session_id=2",
        sock=made,
        additional_headers=headers,
        subprotocols=[PROTOCOL],
        max_size=None,
        ping_interval=ping_interval,
    )


def talk(connection: ServerConnection) -> None:
    with contextlib.suppress(ConnectionClosed):
        for message in connection:
            connection.send(message)


def test_messages_both_ways_and_the_subprotocol(house: House, tmp_path: Path) -> None:
    seen: queue.Queue[tuple[str, str | None, str | None, str]] = queue.Queue()

    def serve(connection: ServerConnection) -> None:
        request = connection.request
        assert request is not None
        authorization = request.headers.get("Authorization")
        seen.put((request.path, authorization, request.headers.get("Cookie"),
                  request.headers["Host"]))  # fmt: skip
        talk(connection)

    with kernel(tmp_path, serve) as path:
        one = house.add(path)
        cookie = f"{house.enter(one)}; _xsrf=1"
        with opened(house, one, cookie) as browser:
            assert browser.subprotocol == PROTOCOL
            browser.send("text")
            browser.send(b"\0binary")
            assert (browser.recv(60), browser.recv(60)) == ("text", b"\0binary")
    expected = "/api/kernels/1/channels?session_id=2", f"token {TOKEN}", "_xsrf=1"
    assert seen.get(timeout=60) == (*expected, house.host(one))


def test_a_message_of_any_size(house: House, tmp_path: Path) -> None:
    """An image of a plot is often larger than a library's bound of 1 MiB."""
    with kernel(tmp_path, talk) as path:
        one = house.add(path)
        with opened(house, one) as browser:
            large = b"z" * (20 * MIB)
            browser.send(large)
            assert browser.recv(60) == large


@pytest.mark.parametrize(("code", "reason"), [(1000, "bye"), (4001, "kernel restarted")])
def test_labs_close_code_reaches_the_browser(
    house: House, tmp_path: Path, code: int, reason: str
) -> None:
    with kernel(tmp_path, lambda connection: connection.close(code, reason)) as path:
        one = house.add(path)
        with opened(house, one) as browser:
            with pytest.raises(ConnectionClosed) as closed:
                browser.recv(60)
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (code, reason)


def test_the_browsers_close_code_reaches_lab(house: House, tmp_path: Path) -> None:
    told: queue.Queue[int | None] = queue.Queue()

    def serve(connection: ServerConnection) -> None:
        talk(connection)
        told.put(connection.close_code)

    with kernel(tmp_path, serve) as path:
        one = house.add(path)
        with opened(house, one) as browser:
            browser.close(4002, "tab closed")
        assert told.get(timeout=60) == 4002


def test_pings_go_all_the_way(house: House, tmp_path: Path) -> None:
    """Each side's pings are answered by the other, not by what is between."""
    answered = threading.Event()

    def serve(connection: ServerConnection) -> None:
        connection.ping().wait(60)
        answered.set()
        talk(connection)

    with kernel(tmp_path, serve) as path:
        one = house.add(path)
        with opened(house, one, ping_interval=None) as browser:
            assert browser.ping("from the browser").wait(60)
            assert answered.wait(60)


def test_lab_is_held_up_by_a_browser_that_does_not_read(house: House, tmp_path: Path) -> None:
    sent = 0
    total = 64 * MIB
    upgrade = (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: x\r\n\r\n"
    )
    ended = threading.Event()

    def flood(taken: socket.socket) -> None:
        nonlocal sent
        head_of(taken)
        taken.sendall(upgrade)
        while sent < total:
            sent += taken.send(b"f" * min(MIB, total - sent))
        ended.set()

    with listening(tmp_path, flood) as path:
        one = house.add(path)
        with socket.create_connection(("127.0.0.1", house.live.port), 60) as browser:
            browser.sendall(handshake(house, one))
            head, rest = head_of(browser)
            assert b"101 Switching" in head
            assert not ended.wait(1)
            assert sent < total / 2
            size = len(rest)
            while size < total:
                more = browser.recv(MIB)
                assert more
                size += len(more)


def handshake(house: House, one: Instance, **headers: str) -> bytes:
    lines = {
        "Host": house.host(one),
        "Cookie": house.enter(one),
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": PROTOCOL,
        **headers,
    }
    said = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"GET /api/kernels/1/channels HTTP/1.1\r\n{said}\r\n".encode()


def test_a_browser_that_is_gone_is_gone_for_lab(house: House, tmp_path: Path) -> None:
    gone = threading.Event()

    def serve(connection: ServerConnection) -> None:
        talk(connection)
        gone.set()

    with kernel(tmp_path, serve) as path:
        one = house.add(path)
        with socket.create_connection(("127.0.0.1", house.live.port), 60) as browser:
            browser.sendall(handshake(house, one))
            head_of(browser)
        assert gone.wait(60)


def test_lab_that_dies_is_gone_for_the_browser(house: House, tmp_path: Path) -> None:
    upgrade = b"HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    with listening(tmp_path, answering(upgrade)) as path:
        one = house.add(path)
        with socket.create_connection(("127.0.0.1", house.live.port), 60) as browser:
            browser.sendall(handshake(house, one))
            head_of(browser)
            assert browser.recv(1) == b""


def refused(
    house: House, one: Instance, *, cookie: str | None = None, origin: str | None = None
) -> int:
    with pytest.raises(InvalidStatus) as status:
        opened(house, one, cookie, origin)
    return status.value.response.status_code


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:1",
        "https://evil.example",
        "null",
        "http://nb-another.localhost",
        "http://{host}.evil.example",
        "ftp://{host}",
    ],
)
def test_another_sites_page_gets_no_websocket(house: House, tmp_path: Path, origin: str) -> None:
    with kernel(tmp_path, talk) as path:
        one = house.add(path)
        assert refused(house, one, origin=origin.format(host=house.host(one))) == 403


def test_who_was_not_let_in_gets_no_websocket(house: House, tmp_path: Path) -> None:
    with kernel(tmp_path, talk) as path:
        one, other = house.add(path), house.add(path)
        assert refused(house, one, cookie="") == 401
        assert refused(house, one, cookie=house.enter(other)) == 401
        with opened(house, one, origin="") as program:  # no browser: nobody has tricked it
            program.send("x")
            assert program.recv(60) == "x"


def test_a_stopped_notebook_gives_no_websocket(house: House) -> None:
    one = house.add(None, phase=Phase.STOPPED)
    assert refused(house, one) == 503


def test_what_lab_refuses_is_refused_as_lab_does(house: House, tmp_path: Path) -> None:
    said = (
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\nSet-Cookie: a=b; Domain=localhost\r\n\r\n"
        b"no kernel"
    )
    with listening(tmp_path, answering(said)) as path:
        one = house.add(path)
        with pytest.raises(InvalidStatus) as status:
            opened(house, one)
    response = status.value.response
    assert (response.status_code, response.body) == (404, b"no kernel")
    assert response.headers["Set-Cookie"] == "a=b"


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 101 x\r\nno header\r\n\r\n"])
def test_what_is_no_answer_is_a_502(house: House, tmp_path: Path, said: bytes) -> None:
    with listening(tmp_path, answering(said)) as path:
        assert refused(house, house.add(path)) == 502


def test_the_api_has_no_websocket_there(house: House) -> None:
    """A page of a notebook that calls the API by WebSocket gets an ordinary refusal."""
    for host, status in ((house.live.host, b"404"), ("rebound.example", b"403")):
        with socket.create_connection(("127.0.0.1", house.live.port), 60) as browser:
            one = house.add(None)
            browser.sendall(handshake(house, one, Host=host))
            assert head_of(browser)[0].startswith(b"HTTP/1.1 " + status)
