"""The small HTTP client, against a server that plays scripts."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from danlu.faces.cli.http import Broken, Connection, Garbled, Send, Unreachable
from tests.faces.cli.scripted import Scripted, chunked, reply
from tests.services import offered, require

OK = reply(b"hello")


def get(*scripts: list[list[bytes | float]], timeout_s: float = 5) -> tuple[int, bytes]:
    with Scripted(*scripts) as server, closing(Connection("127.0.0.1", server.port)) as door:
        response = door.request("GET", "/", timeout_s=timeout_s)
        return response.status, response.read()


def test_a_body_with_a_length() -> None:
    assert get([[OK]]) == (200, b"hello")


def test_a_body_in_chunks_with_extensions_and_trailers() -> None:
    answer = (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"
        b"5;why=not\r\nhello\r\n00001\r\n!\r\n0\r\nX-Later: 1\r\nX-More: 2\r\n\r\n"
    )
    assert get([[answer]]) == (200, b"hello!")


def test_a_body_that_ends_with_the_connection() -> None:
    assert get([[b"HTTP/1.1 200 OK\r\n\r\nall there is"]]) == (200, b"all there is")
    assert get([[b"HTTP/1.0 200 OK\r\n\r\nold"]]) == (200, b"old")


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_no_body_where_there_cannot_be_one(status: str) -> None:
    with Scripted([[f"HTTP/1.1 {status}\r\nContent-Length: 7\r\n\r\n".encode()], [OK]]) as server:
        door = Connection("127.0.0.1", server.port)
        assert door.request("GET", "/").read() == b""
        assert door.request("GET", "/").read() == b"hello"
        door.close()
        assert server.connections == 1


def test_informational_answers_are_passed_over() -> None:
    assert get(
        [[b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" + OK]]
    ) == (
        200,
        b"hello",
    )


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 40), max_size=6))
def test_it_does_not_matter_how_an_answer_is_cut_into_packets(cuts: list[int]) -> None:
    whole = chunked(b"some", b"more and more", b"x" * 30)
    steps: list[bytes | float] = []
    for cut in cuts:
        steps += [whole[:cut], 0.001]
        whole = whole[cut:]
    assert get([[[*steps, whole][0], *steps[1:], *([whole] if steps else [])]]) == (
        200,
        b"somemore and more" + b"x" * 30,
    )


def test_one_connection_carries_many_requests() -> None:
    with Scripted([[OK]] * 3 + [[OK]]) as server:
        door = Connection("127.0.0.1", server.port)
        for _ in range(3):
            assert door.request("GET", "/a").read() == b"hello"
        assert server.connections == 1
        door.close()


def test_a_kept_connection_that_was_closed_is_opened_again_for_get_only() -> None:
    with Scripted([[OK]], [[OK], [OK]], [[OK]]) as server:
        door = Connection("127.0.0.1", server.port)
        assert door.request("GET", "/1").read() == b"hello"
        time.sleep(0.05)  # the server closes behind its last answer
        assert door.request("GET", "/2").read() == b"hello"
        assert server.connections == 2
        assert door.request("POST", "/3", body=b"{}").read() == b"hello"
        time.sleep(0.05)
        with pytest.raises(Broken):
            door.request("POST", "/4", body=b"{}")
        door.close()


def test_an_unread_answer_does_not_leak_into_the_next() -> None:
    with Scripted([[reply(b"x" * 100_000)]], [[OK]]) as server:
        door = Connection("127.0.0.1", server.port)
        door.request("GET", "/big")
        assert door.request("GET", "/").read() == b"hello"
        assert server.connections == 2
        door.close()


def test_a_body_of_unknown_length_is_sent_in_chunks() -> None:
    with Scripted([[OK]]) as server:

        def body(send: Send) -> None:
            send(b"abc")
            send(b"")
            send(b"defg")

        door = Connection("127.0.0.1", server.port)
        assert door.request("POST", "/up", [("X-A", "b")], body).status == 200
        door.close()
        head, _, sent = server.requests[0].partition(b"\r\n\r\n")
        assert sent == b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
        assert head.split(b"\r\n")[1] == f"Host: 127.0.0.1:{server.port}".encode()


def test_an_answer_that_comes_before_the_body_was_sent_is_read() -> None:
    refusal = reply(b"too large", "413 Payload Too Large", "Connection: close")
    door_ = socket.create_server(("127.0.0.1", 0))
    with door_:
        connection = Connection("127.0.0.1", door_.getsockname()[1])

        def body(send: Send) -> None:
            taken, _ = door_.accept()
            taken.recv(1000)
            taken.sendall(refusal)
            taken.shutdown(socket.SHUT_WR)
            send(b"x" * 1000)
            taken.close()
            time.sleep(0.05)
            for _ in range(50):
                send(b"x" * 100_000)

        with_status = connection.request("POST", "/", body=body)
        assert (with_status.status, with_status.read()) == (413, b"too large")
        connection.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 20 + b"\r\n",
    ],
    ids=range(14),
)
def test_what_is_not_http_is_refused(answer: bytes) -> None:
    with pytest.raises(Garbled):
        get([[answer]])


@pytest.mark.parametrize(
    "head",
    [
        b"X: " + b"a" * 20_000,
        b"\r\n".join(b"X-%d: y" % n for n in range(300)),
        b"\r\n".join(b"X-%d: %b" % (n, b"y" * 4000) for n in range(100)),
    ],
    ids=["one long line", "many lines", "many long lines"],
)
def test_headers_are_bounded(head: bytes) -> None:
    with pytest.raises(Garbled):
        get([[b"HTTP/1.1 200 OK\r\n" + head + b"\r\nContent-Length: 0\r\n\r\n"]])


def test_trailers_are_bounded() -> None:
    trailers = b"".join(b"X-%d: y\r\n" % n for n in range(300))
    with pytest.raises(Garbled):
        get([[b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + trailers + b"\r\n"]])


def test_a_body_is_bounded() -> None:
    with Scripted([[chunked(b"x" * 1000, b"y" * 1000)]]) as server:
        door = Connection("127.0.0.1", server.port)
        with pytest.raises(Garbled):
            door.request("GET", "/").read(1500)
        door.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ],
    ids=["nothing", "in the head", "in a body", "in a chunk", "between chunks"],
)
def test_an_early_end_is_noticed(answer: bytes) -> None:
    with pytest.raises(Broken):
        get([[answer]])


def test_a_server_that_stays_silent_is_given_up() -> None:
    with pytest.raises(Broken, match="no answer in time"):
        get([[b"HTTP/1.1 200 OK\r\n", 1.0]], timeout_s=0.1)


FOLLOWS = """
import fcntl, socket, struct, threading
from danlu.faces.cli.http import Broken, Connection

def set_link(flags):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as door:
        fcntl.ioctl(door, 0x8914, struct.pack("16sh22x", b"lo", flags))  # SIOCSIFFLAGS

set_link(1)
listener = socket.create_server(("127.0.0.1", 0))
kept = []

def serve():
    kept.append(listener.accept()[0])
    kept[0].recv(65536)
    kept[0].sendall(b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n3\\r\\nabc\\r\\n")

threading.Thread(target=serve).start()
response = Connection(*listener.getsockname()).request("GET", "/")
assert response.chunk() == b"abc"
response.patience(None)
set_link(0)
try:
    response.chunk()
except Broken as error:
    print("noticed")
"""


@pytest.mark.long
def test_a_link_that_drops_under_a_follower_is_noticed() -> None:
    """(case 74) Nothing ever comes again, no end of the connection either."""
    unshare = shutil.which("unshare")
    require(unshare, "unshare: apt install util-linux")
    apart = [str(unshare), "--net", sys.executable, "-c", FOLLOWS]
    offered(os.geteuid() == 0, "root, for a network of its own")
    done = subprocess.run(apart, capture_output=True, text=True, check=False, timeout=100)
    assert (done.stdout, done.stderr) == ("noticed\n", "")


def test_a_slow_body_arrives_piece_by_piece() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with Scripted([[head, 0.2, b"3\r\nabc\r\n", 0.2, b"0\r\n\r\n"]]) as server:
        door = Connection("127.0.0.1", server.port)
        response = door.request("GET", "/")
        assert not response.readable(0.01)
        assert response.readable(5)
        seen = [(response.chunk(), response.ended) for _ in range(2)]
        assert seen == [(b"abc", False), (b"", True)]
        door.close()


def test_where_nobody_listens_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
    with pytest.raises(Unreachable):
        Connection("127.0.0.1", port).request("GET", "/")


def test_a_name_that_does_not_exist_is_unreachable() -> None:
    with pytest.raises(Unreachable):
        Connection("a" * 70 + ".invalid", 80).request("GET", "/")


@pytest.mark.parametrize("bad", ["a\r\nB: c", "a\nb", "a\0b", "\x7f"])
def test_a_control_character_never_reaches_the_wire(bad: str) -> None:
    door = Connection("127.0.0.1", 1)
    with pytest.raises(ValueError, match="control character"):
        door.request("GET", "/", [("X-A", bad)])
    with pytest.raises(ValueError, match="control character"):
        door.request("GET", f"/{bad}")


def test_an_ipv6_host_is_written_in_brackets() -> None:
    assert Connection("::1", 8778).authority == "[::1]:8778"
