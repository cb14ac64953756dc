"""What is promised of a body is checked, and nothing else is ever stored."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import socket
import threading
import time
import zlib
from collections.abc import AsyncIterator, Iterator

import pytest

from danlu.faces.obs import checksums, feed
from danlu.faces.obs.admission import Payload
from danlu.faces.obs.feed import Feed
from danlu.faces.obs.framing import Unframed
from danlu.model.errors import PlatformError
from tests.faces.obs import signer
from tests.faces.obs.conftest import PATIENCE_S, Gateway

DATA = os.urandom(400_000)
"""More than is read at once, so that it is stored as it arrives."""
SMALL = DATA[:1000]


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@pytest.mark.parametrize("data", [b"", SMALL, DATA], ids=["empty", "small", "large"])
@pytest.mark.parametrize("algorithm", sorted(checksums.ALGORITHMS))
def test_every_checksum_is_compared(
    gateway: Gateway, bucket: str, data: bytes, algorithm: str
) -> None:
    check = checksums.ALGORITHMS[algorithm]()
    check.update(data)
    name = f"x-amz-checksum-{algorithm}"
    right = {name: checksums.shown(algorithm, check.digest())}
    answer = gateway.call("PUT", bucket, "right", data, headers=right)
    assert (answer.status, answer.headers[name]) == (200, right[name])
    assert gateway.content(bucket, "right") == data
    wrong = {name: checksums.shown(algorithm, bytes(len(check.digest()) - 1) + b"\x01")}
    answer = gateway.call("PUT", bucket, "wrong", data, headers=wrong)
    assert (answer.status, answer.code) == (400, "BadDigest")
    answer = gateway.call("PUT", bucket, "wrong", data, headers={name: "no digest"})
    assert (answer.status, answer.code) == (400, "InvalidDigest")
    assert gateway.content(bucket, "wrong") is None


@pytest.mark.parametrize(
    ("algorithm", "expected"),
    [
        ("crc32", "cbf43926"),
        ("crc32c", "e3069283"),
        ("crc64nvme", "ae8b14860a799888"),
        ("crc64ecma", "995dc9bbdf1939fa"),
    ],
)
def test_checksums_of_the_nine_digits(algorithm: str, expected: str) -> None:
    """The check value that catalogues of CRCs give, whatever the pieces."""
    for cut in range(10):
        check = checksums.ALGORITHMS[algorithm]()
        check.update(b"123456789"[:cut])
        check.update(b"123456789"[cut:])
        assert check.digest().hex() == expected


@pytest.mark.parametrize("data", [SMALL, DATA], ids=["small", "large"])
def test_md5_and_sha256_are_compared(gateway: Gateway, bucket: str, data: bytes) -> None:
    md5 = b64(hashlib.md5(data, usedforsecurity=False).digest())
    assert gateway.call("PUT", bucket, "a", data, headers={"Content-MD5": md5}).status == 200
    for text, code in ((b64(bytes(16)), "BadDigest"), ("x", "InvalidDigest")):
        answer = gateway.call("PUT", bucket, "b", data, headers={"Content-MD5": text})
        assert (answer.status, answer.code) == (400, code)
    other = hashlib.sha256(b"other").hexdigest()
    path = signer.path_of(bucket, "b")
    signed = signer.V4(gateway.key).headers("PUT", path, {}, {"Host": gateway.host}, other)
    answer = gateway.send("PUT", path, signed, data)
    assert (answer.status, answer.code) == (400, "XAmzContentSHA256Mismatch")
    assert gateway.content(bucket, "b") is None


# ---------------------------------------------------------------- signed chunks

PAYLOAD = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"


class Framed:
    """A body in signed chunks, to be spoilt."""

    def __init__(
        self, gateway: Gateway, bucket: str, key: str, data: bytes, *, trailer: bool
    ) -> None:
        self.gateway = gateway
        self.path = signer.path_of(bucket, key)
        self.v4 = signer.V4(gateway.key)
        headers = {
            "Host": gateway.host,
            "Content-Encoding": "aws-chunked",
            "x-amz-decoded-content-length": str(len(data)),
            **({"x-amz-trailer": "x-amz-checksum-crc32"} if trailer else {}),
        }
        kind = PAYLOAD + ("-TRAILER" if trailer else "")
        self.headers = self.v4.headers("PUT", self.path, {}, headers, kind)
        pieces = [data[at : at + 65_536] for at in range(0, len(data), 65_536)]
        self.chunks = [self.v4.chunk(piece) for piece in pieces] + [self.v4.chunk(b"")]
        self.end = b"\r\n"
        if trailer:
            crc = b64(zlib.crc32(data).to_bytes(4, "big"))
            self.end = self.v4.trailer("x-amz-checksum-crc32", crc)

    def send(self) -> tuple[int, str]:
        answer = self.gateway.send("PUT", self.path, self.headers, b"".join(self.chunks) + self.end)
        return answer.status, answer.code


@pytest.mark.parametrize("trailer", [False, True])
@pytest.mark.parametrize("data", [b"", SMALL, DATA], ids=["empty", "small", "large"])
def test_a_body_in_signed_chunks(
    gateway: Gateway,
    bucket: str,
    data: bytes,
    trailer: bool,  # noqa: FBT001 - a case
) -> None:
    framed = Framed(gateway, bucket, "framed", data, trailer=trailer)
    assert framed.send() == (200, "")
    assert gateway.content(bucket, "framed") == data
    info = gateway.server.running.platform.objects.head(bucket, "framed")
    assert "content-encoding" not in info.headers


@pytest.mark.parametrize("trailer", [False, True])
@pytest.mark.parametrize("data", [SMALL, DATA], ids=["small", "large"])
def test_no_chunk_can_be_changed_left_out_or_moved(
    gateway: Gateway,
    bucket: str,
    data: bytes,
    trailer: bool,  # noqa: FBT001 - a case
) -> None:
    def spoilt() -> Iterator[tuple[Framed, str]]:
        def framed() -> Framed:
            return Framed(gateway, bucket, "spoilt", data, trailer=trailer)

        one = framed()
        one.chunks[0] = one.chunks[0][:-3] + bytes([one.chunks[0][-3] ^ 1]) + one.chunks[0][-2:]
        yield one, "SignatureDoesNotMatch"
        one = framed()
        one.chunks[-1] = one.chunks[-1].replace(b"signature=", b"signature=0", 1)[:-3] + b"\r\n"
        yield one, "SignatureDoesNotMatch"
        one = framed()
        one.chunks = one.chunks[:-1]
        yield one, "IncompleteBody"
        one = framed()
        one.chunks[0] = one.chunks[0].split(b";")[0] + b"\r\n" + one.chunks[0].split(b"\r\n", 1)[1]
        yield one, "IncompleteBody"
        one = framed()
        one.chunks[0] = b"zz" + one.chunks[0]
        yield one, "IncompleteBody"
        one = framed()
        one.chunks = [b"x" * 5000, *one.chunks]
        yield one, "IncompleteBody"
        one = framed()
        one.headers["x-amz-decoded-content-length"] = str(len(data) + 1)
        yield one, "SignatureDoesNotMatch"
        if trailer:
            one = framed()
            one.end = one.end.replace(b"crc32:", b"crc32:A", 1)
            yield one, "SignatureDoesNotMatch"
            one = framed()
            one.end = b"\r\n"
            yield one, "SignatureDoesNotMatch"
        if len(data) > 200_000:
            one = framed()
            one.chunks[1], one.chunks[2] = one.chunks[2], one.chunks[1]
            yield one, "SignatureDoesNotMatch"
            one = framed()
            del one.chunks[3]
            yield one, "SignatureDoesNotMatch"

    for one, code in spoilt():
        status, found = one.send()
        assert status in (400, 403)
        assert found == code
    assert gateway.content(bucket, "spoilt") is None


def test_a_trailer_of_an_unsigned_body_is_compared(gateway: Gateway, bucket: str) -> None:
    """As boto3 sends it over TLS."""
    path = signer.path_of(bucket, "trailed")
    crc = b64(zlib.crc32(DATA).to_bytes(4, "big"))
    for digest, status in ((crc, 200), ("AAAAAA==", 400), ("", 400)):
        headers = {
            "Host": gateway.host,
            "x-amz-decoded-content-length": str(len(DATA)),
            "x-amz-trailer": "x-amz-checksum-crc32",
        }
        signed = signer.V4(gateway.key).headers(
            "PUT", path, {}, headers, "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
        )
        end = f"0\r\nx-amz-checksum-crc32:{digest}\r\n\r\n".encode() if digest else b"0\r\n\r\n"
        body = f"{len(DATA):x}\r\n".encode() + DATA + b"\r\n" + end
        assert gateway.send("PUT", path, signed, body).status == status


def test_frames_are_found_wherever_pieces_end() -> None:
    body = b"3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nx-amz-checksum-crc32:x\r\n\r\n"
    for size in range(1, len(body) + 1):
        pieces = (body[at : at + size] for at in range(0, len(body), size))
        unframed = Unframed(pieces, Payload(framed=True, trailer=True))
        assert b"".join(unframed) == b"abc0123456789abcdef"
        assert unframed.trailer == {"x-amz-checksum-crc32": "x"}
    for wrong in (
        b"",
        b"3",
        b"3\r\nab",
        b"3\r\nabcd\r\n0\r\n\r\n",
        b"-1\r\n",
        b"3\r\nabc\r\n0\r\nx\r\n",
    ):
        with pytest.raises(PlatformError):
            list(Unframed(iter([wrong]), Payload(framed=True, trailer=True)))


# ---------------------------------------------------------------- clients that go, wait or dawdle


def head_of(gateway: Gateway, bucket: str, key: str, size: int, more: str = "") -> bytes:
    """The head of a put, signed with V2."""
    path = signer.path_of(bucket, key)
    signed = signer.v2_signed(gateway.key, "PUT", path, {}, {"Host": gateway.host})
    lines = [f"PUT {path} HTTP/1.1", *(f"{name}: {value}" for name, value in signed.items())]
    return "\r\n".join([*lines, f"Content-Length: {size}", f"{more}\r\n"]).encode()


def connected(gateway: Gateway) -> socket.socket:
    return socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_S)


@pytest.mark.parametrize("size", [1000, 50 << 20])
def test_what_a_client_did_not_finish_is_not_there(
    gateway: Gateway, bucket: str, size: int
) -> None:
    with connected(gateway) as door:
        door.sendall(head_of(gateway, bucket, "half", size) + bytes(size // 2))
    ends = time.monotonic() + PATIENCE_S
    store = gateway.server.running.settings.data / "objects" / bucket / "incoming"
    while any(store.iterdir()):
        assert time.monotonic() < ends, "what was written stays"
        time.sleep(0.02)
    assert gateway.content(bucket, "half") is None


def test_a_client_that_asks_first_is_told_to_go_on(gateway: Gateway, bucket: str) -> None:
    with connected(gateway) as door:
        expect = "Expect: 100-continue\r\n"
        door.sendall(head_of(gateway, bucket, "asked", 4, expect))
        assert door.recv(100).startswith(b"HTTP/1.1 100")
        door.sendall(b"body")
        assert door.recv(4096).startswith(b"HTTP/1.1 200")
    assert gateway.content(bucket, "asked") == b"body"


def test_a_client_that_asks_first_is_told_no_before_it_sends(gateway: Gateway) -> None:
    with connected(gateway) as door:
        expect = "Expect: 100-continue\r\n"
        door.sendall(head_of(gateway, "no-such-bucket", "asked", 1 << 30, expect))
        said = b""
        while piece := door.recv(65_536):
            said += piece
    assert said.startswith(b"HTTP/1.1 404")
    assert b"connection: close" in said.lower()
    assert b"NoSuchBucket" in said


def test_a_refused_body_does_not_become_the_next_request(gateway: Gateway) -> None:
    smuggled = b"DELETE /shared HTTP/1.1\r\nHost: x\r\n\r\n"
    with connected(gateway) as door:
        head = head_of(gateway, "no-such-bucket", "k", len(smuggled))
        door.sendall(head + smuggled + head_of(gateway, "no-such-bucket", "k", 0))
        said = b""
        while said.count(b"</Error>") < 2 and (piece := door.recv(65_536)):
            said += piece
    assert said.count(b"HTTP/1.1 404") == 2
    assert said.count(b"HTTP/1.1") == 2


def test_many_slow_uploads_hold_up_nobody(gateway: Gateway, bucket: str) -> None:
    """More than there are threads; each has sent a little and waits."""
    doors = [connected(gateway) for _ in range(100)]
    try:
        for number, door in enumerate(doors):
            door.sendall(head_of(gateway, bucket, f"slow{number}", 100_000) + bytes(1000))
        assert gateway.call("PUT", bucket, "quick", SMALL).status == 200
        assert gateway.call("GET", bucket, "quick").body == SMALL
        for door in doors:
            door.sendall(bytes(99_000))
        for door in doors:
            assert door.recv(4096).startswith(b"HTTP/1.1 200")
    finally:
        for door in doors:
            door.close()


def test_a_feed_holds_a_bounded_number_of_bytes() -> None:
    """The event loop waits for a thread that does not take anything, and goes on when it does."""
    handed = 0
    piece = bytes(64 << 10)

    async def pieces() -> AsyncIterator[bytes]:
        nonlocal handed
        for _ in range(200):
            handed += len(piece)
            yield piece

    async def run() -> None:
        opened = Feed()
        taken = 0

        def take() -> None:
            nonlocal taken
            for one in opened.pieces():
                taken += len(one)

        pump = asyncio.create_task(opened.pump(pieces()))
        for _ in range(50):
            await asyncio.sleep(0)
        assert handed <= feed.HELD_BYTES + 2 * len(piece)
        thread = threading.Thread(target=take)
        thread.start()
        await pump
        await asyncio.to_thread(thread.join, PATIENCE_S)
        assert taken == handed == 200 * len(piece)

    asyncio.run(run())
