"""HTTP through the proxy: what Lab gets, what the browser gets, and how much is held on the way."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from pathlib import Path

import pytest

from danlu.faces.lab.instance import Instance
from tests.faces.http.live import Answer
from tests.faces.lab.house import TOKEN, House, answering, head_of, listening

MIB = 1 << 20
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"


def echo(taken: socket.socket) -> None:
    """Answers with the head of the request that it got."""
    head, _ = head_of(taken)
    lines = head.decode("latin-1").split("\r\n")
    pairs = [line.partition(": ")[::2] for line in lines[1:]]
    body = json.dumps({"line": lines[0], "headers": pairs}).encode()
    taken.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
        b"Set-Cookie: _xsrf=2|x; Domain=localhost; Path=/; HttpOnly\r\n"
        b"Set-Cookie: danlu-notebook=stolen; Path=/\r\n"
        b'Set-Cookie: user=me\r\nAlt-Svc: h3=":443"\r\nDate: long ago\r\n'
        b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    )


def get(house: House, one: Instance, cookie: str, **headers: str) -> Answer:
    sent = {"Host": house.host(one), "Cookie": cookie}
    sent.update({name.replace("_", "-"): value for name, value in headers.items()})
    return house.live.send("GET", "/lab/tree/a%2Fb?x=%201", sent)


def test_lab_gets_its_token_and_nothing_of_ours(house: House, tmp_path: Path) -> None:
    with listening(tmp_path, echo) as path:
        one = house.add(path)
        cookie = f"{house.enter(one)}; _xsrf=abc; danlu-session=console; __Host-danlu-session=x"
        answer = get(
            house,
            one,
            cookie,
            Authorization="SDK-HMAC-SHA256 Access=AK",
            X_Auth_Token="console's",
            X_Sdk_Date="20260101T000000Z",
            Connection="close, x-private",
            X_Private="1",
            Accept_Language="zh",
        )
    assert answer.status == 200
    assert answer.json["line"] == "GET /lab/tree/a%2Fb?x=%201 HTTP/1.1"
    pairs = [(name.lower(), value) for name, value in answer.json["headers"]]
    assert sorted(pairs) == [
        ("accept-language", "zh"),
        ("authorization", f"token {TOKEN}"),
        ("connection", "close"),
        ("cookie", "_xsrf=abc"),
        ("host", house.host(one)),
    ]


def test_labs_cookies_stay_with_its_host(house: House, tmp_path: Path) -> None:
    with listening(tmp_path, echo) as path:
        one = house.add(path)
        connection = house.connection()
        connection.request(
            "GET", "/", headers={"Host": house.host(one), "Cookie": house.enter(one)}
        )
        answer = connection.getresponse()
        answer.read()
        connection.close()
    assert answer.headers.get_all("set-cookie") == ["_xsrf=2|x; Path=/; HttpOnly", "user=me"]
    assert "alt-svc" not in answer.headers
    assert len(answer.headers.get_all("date") or []) == 1


def test_nothing_of_labs_answer_is_changed_or_added(house: House, tmp_path: Path) -> None:
    """What the API forbids its own pages (scripts, frames) is what Lab lives on."""
    with listening(tmp_path, echo) as path:
        one = house.add(path)
        answer = get(house, one, house.enter(one))
    assert (
        not {"content-security-policy", "x-frame-options", "x-request-id"} & answer.headers.keys()
    )


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunks"])
def test_a_large_upload_waits_for_lab_to_read_it(
    house: House, tmp_path: Path, *, chunked: bool
) -> None:
    """The browser is held up when Lab does not read: what is on the way is bounded."""
    reading = threading.Event()
    total = 64 * MIB
    got: list[int] = []

    def slow(taken: socket.socket) -> None:
        head, rest = head_of(taken)
        assert (b"chunked" in head) == chunked
        reading.wait(60)
        size, tail = len(rest), rest[-5:]
        while (tail != b"0\r\n\r\n") if chunked else (size < total):
            rest = taken.recv(MIB)
            if not rest:
                break
            size, tail = size + len(rest), (tail + rest)[-5:]
        got.append(size)
        taken.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with listening(tmp_path, slow) as path:
        one = house.add(path)
        with socket.create_connection(("127.0.0.1", house.live.port)) as client:
            framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {total}"
            client.sendall(
                f"PUT /api/contents/x HTTP/1.1\r\nHost: {house.host(one)}\r\n"
                f"Cookie: {house.enter(one)}\r\n{framing}\r\n\r\n".encode()
            )
            block = b"x" * MIB
            if chunked:
                block = b"%x\r\n%s\r\n" % (MIB, block)
            client.settimeout(1)
            sent = 0
            with contextlib.suppress(TimeoutError):
                while sent < total:
                    sent += client.send(block[sent % len(block) :])
            assert sent < total / 2, "it was taken though nobody reads it"
            reading.set()
            client.settimeout(60)
            whole = block * (total // MIB) + (b"0\r\n\r\n" if chunked else b"")
            client.sendall(memoryview(whole)[sent:])
            assert client.recv(4096).startswith(b"HTTP/1.1 204 ")
    assert got[0] >= total


def test_a_large_download_waits_for_the_browser(house: House, tmp_path: Path) -> None:
    total = 64 * MIB
    sent = 0
    ended = threading.Event()

    def fast(taken: socket.socket) -> None:
        nonlocal sent
        head_of(taken)
        taken.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        while sent < total:
            sent += taken.send(b"y" * min(MIB, total - sent))
        ended.set()

    with listening(tmp_path, fast) as path:
        one = house.add(path)
        with socket.create_connection(("127.0.0.1", house.live.port)) as client:
            client.sendall(_get(house, one))
            first = client.recv(4096)
            assert not ended.wait(1)
            assert sent < total / 2, "it was read though nobody takes it"
            size = len(first.partition(b"\r\n\r\n")[2])
            while size < total:
                more = client.recv(MIB)
                assert more
                size += len(more)
    assert size == total


def _get(house: House, one: Instance, method: str = "GET") -> bytes:
    return (
        f"{method} /x HTTP/1.1\r\nHost: {house.host(one)}\r\nCookie: {house.enter(one)}\r\n\r\n"
    ).encode()


def test_a_browser_that_leaves_ends_labs_work(house: House, tmp_path: Path) -> None:
    """A cancelled download of 10 GB must not be read to its end for nobody."""
    noticed = threading.Event()

    def endless(taken: socket.socket) -> None:
        head_of(taken)
        taken.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        try:
            while True:
                taken.sendall(b"4\r\ndata\r\n")
        except OSError:
            noticed.set()

    with listening(tmp_path, endless) as path:
        one = house.add(path)
        with socket.create_connection(("127.0.0.1", house.live.port)) as client:
            client.sendall(_get(house, one))
            client.recv(4096)
        assert noticed.wait(60)


def test_an_answer_that_breaks_off_breaks_off_for_the_browser(house: House, tmp_path: Path) -> None:
    """A cut notebook must not be saved as a whole one."""
    cut = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ndata\r\n"
    with listening(tmp_path, answering(cut)) as path:
        one = house.add(path)
        with socket.create_connection(("127.0.0.1", house.live.port), 60) as client:
            client.sendall(_get(house, one))
            data = b""
            while more := client.recv(4096):
                data += more
    assert b"data" in data
    assert not data.endswith(b"0\r\n\r\n")


def test_head_has_the_length_and_no_body(house: House, tmp_path: Path) -> None:
    told = b"HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\n\r\n"
    with listening(tmp_path, answering(told)) as path:
        one = house.add(path)
        answer = house.live.send(
            "HEAD", "/files/x", {"Host": house.host(one), "Cookie": house.enter(one)}
        )
    assert (answer.status, answer.headers["content-length"]) == (200, "5000000000")


@pytest.mark.parametrize(
    ("told", "body"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nuntil closed", b"until closed"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold", b"old"),
        (HINTS + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate", b"late"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    ],
    ids=["to the end", "1.0", "early hints", "continue"],
)
def test_every_way_to_end_an_answer(house: House, tmp_path: Path, told: bytes, body: bytes) -> None:
    with listening(tmp_path, answering(told)) as path:
        one = house.add(path)
        answer = get(house, one, house.enter(one))
    assert (answer.status, answer.body) == (200, body)


def test_an_answer_before_the_upload_ends_arrives(house: House, tmp_path: Path) -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig"
    with listening(tmp_path, answering(refusal)) as path:
        one = house.add(path)
        with socket.create_connection(("127.0.0.1", house.live.port), 60) as client:
            client.sendall(
                f"PUT /x HTTP/1.1\r\nHost: {house.host(one)}\r\nCookie: {house.enter(one)}\r\n"
                f"Content-Length: {MIB}\r\n\r\n".encode()
            )
            assert client.recv(4096).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    "told",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ],
    ids=["nothing", "nonsense", "two lengths"],
)
def test_what_is_no_answer_is_a_502_that_says_so(house: House, tmp_path: Path, told: bytes) -> None:
    with listening(tmp_path, answering(told)) as path:
        one = house.add(path)
        answer = get(house, one, house.enter(one))
    assert (answer.status, answer.key) == (502, "lab-silent")
