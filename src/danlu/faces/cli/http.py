"""A small HTTP/1.1 client over sockets.

`http.client` brings the e-mail parser along, which costs a third of a command's whole time; this
one does what the command line needs: keep-alive, bodies with a length or in chunks, streams,
time-outs, and bounds on everything that the other side sends.
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

HEAD_BYTES = 64 << 10
HEADERS = 200
LINE_BYTES = 16 << 10
SWITCHING = 101  # the connection becomes something else than HTTP
BODY_BYTES = 64 << 20
BLOCK_BYTES = 64 << 10
FRESH_S = 2.0
"""A kept connection that was silent for longer may be closing at the other end."""

CONNECT_S = 10.0
TIMEOUT_S = 60.0

Headers = Sequence[tuple[str, str]]
Send = Callable[["bytes | memoryview"], None]
Writer = Callable[[Send], None]
"""A body that is not known beforehand: it is handed a function that sends a piece."""


class Sized:
    """A body that is sent in pieces and whose length is known: `write` sends just that much."""

    __slots__ = ("length", "write")

    def __init__(self, length: int, write: Writer) -> None:
        self.length = length
        self.write = write


Body = bytes | Writer | Sized


class HttpError(Exception):
    """The exchange did not take place as HTTP says it should."""


class Unreachable(HttpError):
    """No connection could be made: nothing was sent."""


class Broken(HttpError):
    """The connection ended or stalled in the middle; the request may have been carried out."""


class Garbled(HttpError):
    """What answers there does not speak HTTP/1.1, or sends more than anyone needs."""


class Connection:
    """One connection to one server; opened when needed, kept while it can be.

    With `tls` the certificate has to be valid for the host under the system's authorities, or
    under those of the file `ca`. With `pin`, a file, it has to be that file's first one, whatever
    name it bears.
    """

    def __init__(
        self, host: str, port: int, *, tls: bool = False, ca: str = "", pin: str = ""
    ) -> None:
        self.host = host
        self.port = port
        self._tls = tls
        self._ca = ca
        self._pin = pin
        self._socket: socket.socket | None = None
        self._buffer = bytearray()
        self._response: Response | None = None
        self._used_at = 0.0

    @property
    def authority(self) -> str:
        """The Host header: always with the port, because that is what is signed."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def request(
        self,
        method: str,
        target: str,
        headers: Headers = (),
        body: Body = b"",
        *,
        timeout_s: float = TIMEOUT_S,
    ) -> Response:
        """Send a request and read the head of its response. `target` is already encoded.

        A kept connection that turns out to be closed is opened again, but only where nothing can
        have been carried out twice: for GET.
        """
        head = _head(method, target, [("Host", self.authority), *headers], body)
        kept = self._reusable()
        if not kept:
            self._open(min(CONNECT_S, timeout_s))
        try:
            return self._exchange(method, head, body, timeout_s)
        except Broken:
            if not kept or method != "GET":
                raise
        self._open(min(CONNECT_S, timeout_s))
        return self._exchange(method, head, body, timeout_s)

    def close(self) -> None:
        """Drop the connection."""
        if self._socket is not None:
            self._socket.close()
        self._socket = None
        self._buffer.clear()

    def _reusable(self) -> bool:
        done = self._response is None or self._response.reusable
        fresh = time.monotonic() - self._used_at < FRESH_S
        return self._socket is not None and done and fresh and not self._buffer

    def _open(self, timeout_s: float) -> None:
        self.close()
        try:
            opened = _connected(self.host, self.port, timeout_s)
        except (OSError, UnicodeError) as error:
            raise Unreachable(_words(error)) from error
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _keep_alive(opened)
        if self._tls:
            opened = _secured(opened, self.host, self._ca, self._pin)
        self._socket = opened

    def _exchange(self, method: str, head: bytes, body: Body, timeout_s: float) -> Response:
        opened = self._socket
        if opened is None:
            raise Unreachable("not connected")
        opened.settimeout(timeout_s)
        try:
            _send(opened, head, body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it may have answered before it had read everything; see below
        except OSError as error:
            self.close()
            raise Broken(_words(error)) from error
        try:
            self._response = Response(self, method)
        except HttpError:
            self.close()
            raise
        self._used_at = time.monotonic()
        return self._response

    def receive(self) -> int:
        """Read what is there into the buffer; 0 = the other side has closed."""
        if self._socket is None:
            return 0
        try:
            data = self._socket.recv(BLOCK_BYTES)
        except OSError as error:
            self.close()
            raise Broken(_words(error)) from error
        self._buffer += data
        self._used_at = time.monotonic()
        return len(data)

    def receive_into(self, view: memoryview) -> int:
        """Read what is there to where it is wanted; 0 = the other side has closed."""
        if self._socket is None:
            return 0
        try:
            count = self._socket.recv_into(view)
        except OSError as error:
            self.close()
            raise Broken(_words(error)) from error
        self._used_at = time.monotonic()
        return count

    def take(self, count: int) -> bytes:
        """Remove at most `count` bytes from the buffer."""
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def line(self, limit: int = LINE_BYTES) -> bytes:
        """Read one line, without its end."""
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > limit:
                raise Garbled(f"a line of more than {limit} bytes")
            if not self.receive():
                raise Broken("the connection was closed in the middle of a response")
        if end > limit:
            raise Garbled(f"a line of more than {limit} bytes")
        return self.take(end + 1).rstrip(b"\r\n")

    def write(self, data: bytes) -> None:
        """Send what is no request: on a connection that has become something else than HTTP."""
        if self._socket is None:
            raise Broken("not connected")
        try:
            self._socket.sendall(data)
        except OSError as error:
            self.close()
            raise Broken(_words(error)) from error

    def shut(self) -> None:
        """End the connection under whoever reads from it."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def pending(self) -> int:
        """How many bytes wait in the buffer."""
        return len(self._buffer)

    def patience(self, timeout_s: float | None) -> None:
        """How long the next read may take; None = for ever."""
        if self._socket is not None:
            self._socket.settimeout(timeout_s)

    def readable(self, timeout_s: float) -> bool:
        """Whether bytes (or the end) are there to be read within `timeout_s`."""
        if self._buffer or self._socket is None:
            return True
        waiting = getattr(self._socket, "pending", None)  # TLS keeps bytes of its own
        if waiting is not None and waiting():
            return True
        return bool(select.select([self._socket], [], [], timeout_s)[0])


class Response:
    """A response whose head has been read."""

    def __init__(self, connection: Connection, method: str) -> None:
        self._connection = connection
        self.status = 0
        self.headers: dict[str, str] = {}
        self._read_head()
        while 100 <= self.status < 200 and self.status != SWITCHING:
            self._read_head()
        self._left: int | None = 0
        self._chunked = False
        self._ended = False
        self._frame(method)

    @property
    def reusable(self) -> bool:
        """Whether the connection may carry another request."""
        return self._ended and self.headers.get("connection", "").lower() != "close"

    @property
    def ended(self) -> bool:
        """Whether the whole body has been read."""
        return self._ended

    def read(self, limit: int = BODY_BYTES) -> bytes:
        """The whole body; Garbled if it is longer than `limit`."""
        parts: list[bytes] = []
        size = 0
        for part in self.chunks():
            size += len(part)
            if size > limit:
                self._connection.close()
                raise Garbled(f"a body of more than {limit} bytes")
            parts.append(part)
        return b"".join(parts)

    def chunks(self) -> Iterator[bytes]:
        """The body as it arrives."""
        while data := self.chunk():
            yield data

    def chunk(self) -> bytes:
        """The next bytes of the body, at least one; empty at its end."""
        try:
            return self._next()
        except HttpError:
            self._connection.close()
            raise

    def _next(self) -> bytes:
        if self._ended:
            return b""
        if self._chunked and self._left == 0:
            self._left = self._chunk_size()
            if self._left == 0:
                self._trailers()
                return b""
        data = self._some()
        if not data:
            return b""
        if self._left is not None:
            self._left -= len(data)
            if self._left == 0:
                self._end_of_part()
        return data

    def read_into(self, view: memoryview) -> int:
        """The next bytes of the body, copied once; 0 at its end. `view` holds two blocks."""
        if self._chunked or self._left is None or self._connection.pending():
            data = self.chunk()
            view[: len(data)] = data
            return len(data)
        if self._ended:
            return 0
        count = self._connection.receive_into(view[: self._left])
        if not count:
            raise Broken("the connection was closed in the middle of a response")
        self._left -= count
        if self._left == 0:
            self._end_of_part()
        return count

    def readable(self, timeout_s: float) -> bool:
        """Whether the next chunk (or the end) can be read within `timeout_s`."""
        return self._ended or self._connection.readable(timeout_s)

    def patience(self, timeout_s: float | None) -> None:
        """How long one read may take from now on; None = for ever."""
        self._connection.patience(timeout_s)

    def close(self) -> None:
        """Give up the rest of the body, and with it the connection."""
        if not self._ended:
            self._connection.close()

    def _read_head(self) -> None:
        first = self._connection.line()
        version, _, rest = first.partition(b" ")
        status = rest[:3]
        if version not in (b"HTTP/1.1", b"HTTP/1.0") or not status.isdigit() or len(status) != 3:
            raise Garbled("the answer is not HTTP/1.1")
        self.status = int(status)
        self.headers = {"connection": "close"} if version == b"HTTP/1.0" else {}
        size, count = len(first), 0
        while line := self._connection.line():
            size += len(line)
            count += 1
            if size > HEAD_BYTES or count > HEADERS:
                raise Garbled(f"headers of more than {HEAD_BYTES} bytes or {HEADERS} lines")
            name, colon, value = line.decode("latin-1").partition(":")
            if not colon or not name or name != name.strip():
                raise Garbled("a malformed header")
            key, value = name.lower(), value.strip()
            self.headers[key] = f"{self.headers[key]}, {value}" if key in self.headers else value

    def _frame(self, method: str) -> None:
        """Where the body ends: RFC 9112, section 6.3."""
        coding = self.headers.get("transfer-encoding", "").lower()
        length = self.headers.get("content-length")
        if method == "HEAD" or self.status in (SWITCHING, 204, 304):
            self._ended = True
        elif coding:
            if coding != "chunked" or length is not None:
                raise Garbled("a transfer encoding that was not asked for")
            self._chunked = True
        elif length is not None:
            if not (length.isascii() and length.isdigit() and len(length) < 19):
                raise Garbled("a malformed Content-Length")
            self._left = int(length)
            self._ended = self._left == 0
        else:
            self._left = None
            self.headers["connection"] = "close"

    def _some(self) -> bytes:
        connection = self._connection
        if not connection.pending() and not connection.receive():
            if self._left is not None:
                raise Broken("the connection was closed in the middle of a response")
            self._ended = True
            return b""
        return connection.take(BLOCK_BYTES if self._left is None else self._left)

    def _chunk_size(self) -> int:
        size = self._connection.line().partition(b";")[0].strip()
        if not size or len(size) > 15 or size.strip(b"0123456789abcdefABCDEF"):
            raise Garbled("a malformed chunk")
        return int(size, 16)

    def _end_of_part(self) -> None:
        if not self._chunked:
            self._ended = True
        elif self._connection.line():
            raise Garbled("a malformed chunk")

    def _trailers(self) -> None:
        for _ in range(HEADERS):
            if not self._connection.line():
                self._ended = True
                return
        raise Garbled(f"more than {HEADERS} trailers")


def _head(method: str, target: str, headers: Headers, body: Body) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if isinstance(body, Sized):
        lines.append(f"Content-Length: {body.length}")
    elif callable(body):
        lines.append("Transfer-Encoding: chunked")
    elif body or method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(body)}")
    joined = "".join(lines)
    if min(joined) < " " or "\x7f" in joined:
        raise ValueError("a control character in a request's head")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _send(opened: socket.socket, head: bytes, body: Body) -> None:
    if isinstance(body, bytes):
        opened.sendall(head + body)
        return
    opened.sendall(head)
    if isinstance(body, Sized):
        body.write(opened.sendall)
        return

    def send(data: bytes | memoryview) -> None:
        if data:
            opened.sendall(b"%x\r\n" % len(data) + data + b"\r\n")

    body(send)
    opened.sendall(b"0\r\n\r\n")


def _connected(host: str, port: int, timeout_s: float) -> socket.socket:
    """A connection to the first of the host's addresses that takes one."""
    # An ASCII name as bytes: as a text it would load the tables of international names.
    name = host.encode() if host.isascii() else host
    problem = OSError("the name has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(
        name, port, type=socket.SOCK_STREAM
    ):
        opened = socket.socket(family, kind, protocol)
        try:
            opened.settimeout(timeout_s)
            opened.connect(address)
        except OSError as error:
            opened.close()
            problem = error
        else:
            return opened
    raise problem


def _keep_alive(opened: socket.socket) -> None:
    """Let the kernel notice within half a minute that the other machine is gone."""
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # The first has another name on macOS.
    times = {"TCP_KEEPIDLE": 10, "TCP_KEEPALIVE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 3}
    for name, value in times.items():
        option = getattr(socket, name, None)
        if option is not None:
            opened.setsockopt(socket.IPPROTO_TCP, option, value)


def _secured(opened: socket.socket, host: str, ca: str, pin: str) -> socket.socket:
    import ssl

    try:
        context = ssl.create_default_context(cafile=ca or None)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        expected = _first_certificate(pin) if pin else b""
        if pin:
            # The very certificate is known, so neither its name nor its issuer has to prove it.
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        opened = context.wrap_socket(opened, server_hostname=host)
        shown = opened.getpeercert(binary_form=True)
    except (OSError, ValueError) as error:
        opened.close()
        raise Unreachable(_words(error)) from error
    if pin and shown != expected:
        opened.close()
        raise Unreachable("the server shows another certificate than its own")
    return opened


def _first_certificate(path: str) -> bytes:
    import ssl

    with open(path, encoding="ascii") as file:
        head, end, _ = file.read(1 << 20).partition("-----END CERTIFICATE-----")
    return ssl.PEM_cert_to_DER_cert(head[head.find("-----BEGIN") :] + end)


def _words(error: BaseException) -> str:
    number = getattr(error, "errno", None)
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if hasattr(error, "library"):  # TLS: its error numbers are not the system's
        return str(getattr(error, "verify_message", None) or error)
    return os.strerror(number) if isinstance(number, int) and number > 0 else str(error)
