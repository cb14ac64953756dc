"""Requests to an S3 server: signed, sent again with growing waits, on connections that are kept.

Standard library only. An S3 library of others would do for most keys; none was found that keeps
them all: the fastest one (object_store) stores `a/` as `a` and refuses `a//b`.
"""

from __future__ import annotations

import base64
import hashlib
import http.client
import os
import random
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from danlu.model.errors import Invalid, PlatformError, Unavailable
from danlu.model.sign_v4 import EMPTY
from danlu.stores.s3.answers import MOST, Answer, strange
from danlu.stores.s3.signing import Keys, path_of, query_of, signed

AGAIN = frozenset({408, 429, 500, 502, 503, 504})
"""Answers after which the same request may be carried out."""
BROKEN = frozenset({"BadDigest", "XAmzContentSHA256Mismatch", "IncompleteBody", "RequestTimeout"})
"""Codes that say that a body did not arrive as it was sent."""
MOST_IDLE = 16
TRIES = 6
TIMEOUT_S = 60.0
Body = bytes | memoryview
_NETWORK = (OSError, http.client.HTTPException)


@dataclass(frozen=True, slots=True)
class Patience:
    """How often, and after which waits at most, a request is sent again; `timeout_s` bounds each
    wait for the server.
    """

    tries: int = TRIES
    first_s: float = 0.2
    longest_s: float = 8.0
    timeout_s: float = TIMEOUT_S

    def wait_s(self, tried: int) -> float:
        """How long to wait after `tried` tries: anything up to a bound that doubles."""
        bound = min(self.longest_s, self.first_s * 2.0 ** (tried - 1))
        return random.uniform(0, bound)  # noqa: S311 - it spreads load, it guards nothing


@dataclass(frozen=True, slots=True)
class Request:
    """One request. `body` is sent with its MD5 and SHA-256, so that the server checks it."""

    method: str
    bucket: str = ""
    key: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body = b""


class Client:
    """One S3 server, for several threads; carried across a fork it opens anew."""

    def __init__(self, endpoint: str, keys: Keys, patience: Patience) -> None:
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
            raise Invalid("s3-endpoint", value=endpoint)
        self.endpoint = endpoint.rstrip("/")
        self._keys = keys
        self._patience = patience
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._host, self._port = parts.hostname, parts.port
        default = 443 if self._tls else 80
        name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self._header = name if parts.port in (None, default) else f"{name}:{parts.port}"
        self._idle: list[http.client.HTTPConnection] = []
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self.server = ""

    def close(self) -> None:
        """Close idle connections."""
        while self._idle:
            self._idle.pop().close()

    def __del__(self) -> None:
        with suppress(AttributeError):  # where __init__ has failed
            self.close()

    def call(self, request: Request) -> tuple[Answer, bool]:
        """The whole answer, and whether an earlier try of it may have been carried out.

        Unavailable when the server does not answer, or says that it is busy, again and again.
        Whatever else it says is for the caller.
        """
        doubtful, tried = False, 0
        while True:
            tried += 1
            try:
                answer = self._once(request)
            except _NETWORK as problem:
                doubtful = True
                self._wait(tried, problem, _words(problem))
                continue
            if answer.status in AGAIN or answer.code in BROKEN or _failed_late(answer):
                doubtful = True
                self._wait(tried, None, answer.said)
                continue
            return answer, doubtful

    def open(self, request: Request) -> tuple[http.client.HTTPResponse, Answer, Held]:
        """An answer whose body is still to be read, from a connection that the reader holds."""
        tried = 0
        while True:
            tried += 1
            connection = self._connection()
            try:
                response = self._send(connection, request)
                if response.status not in (200, 206):
                    answer = _whole(response)
                    self._keep(connection, response)
                    if answer.status not in AGAIN:
                        return response, answer, Held(self, None)
                    self._wait(tried, None, answer.said)
                    continue
                return response, Answer(response.status, _headers(response)), Held(self, connection)
            except _NETWORK as problem:
                connection.close()
                self._wait(tried, problem, _words(problem))
            except BaseException:
                connection.close()
                raise

    def _once(self, request: Request) -> Answer:
        connection = self._connection()
        try:
            response = self._send(connection, request)
            answer = _whole(response)
        except BaseException:
            connection.close()
            raise
        self._keep(connection, response)
        return answer

    def _send(
        self, connection: http.client.HTTPConnection, request: Request
    ) -> http.client.HTTPResponse:
        path, query = path_of(request.bucket, request.key), query_of(request.query)
        headers = {"host": self._header, **request.headers}
        digest = EMPTY
        if request.body:
            digest = hashlib.sha256(request.body).hexdigest()
            md5 = hashlib.md5(request.body, usedforsecurity=False).digest()
            headers["content-md5"] = base64.b64encode(md5).decode()
        if request.method in ("PUT", "POST"):
            headers["content-length"] = str(len(request.body))
        sent = signed(self._keys, request.method, path, query, headers, digest)
        connection.putrequest(
            request.method,
            f"{path}?{query}" if query else path,
            skip_host=True,
            skip_accept_encoding=True,
        )
        for name, value in sent.items():
            connection.putheader(name, value.encode("latin-1"))
        connection.endheaders(memoryview(request.body) if request.body else None)
        response = connection.getresponse()
        self.server = response.headers.get("server", self.server)
        return response

    def _connection(self) -> http.client.HTTPConnection:
        if self._pid != os.getpid():  # of the parent; it goes on with them
            self._idle, self._pid = [], os.getpid()
        with suppress(IndexError):
            return self._idle.pop()
        timeout = self._patience.timeout_s
        if self._tls is not None:
            made: http.client.HTTPConnection = http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout, context=self._tls
            )
        else:
            made = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        made.connect()
        made.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made

    def _keep(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        if response.will_close or not response.isclosed() or len(self._idle) >= MOST_IDLE:
            connection.close()
        else:
            self._idle.append(connection)

    def pause(self, tried: int, problem: BaseException | None, detail: str) -> None:
        """Wait before the next try, or raise Unavailable where there have been enough."""
        self._wait(tried, problem, detail)

    def _wait(self, tried: int, problem: BaseException | None, detail: str) -> None:
        if isinstance(problem, PlatformError):
            raise problem
        if tried >= self._patience.tries:
            raise Unavailable(
                "s3-unavailable", endpoint=self.endpoint, tries=tried, detail=detail
            ) from problem
        time.sleep(self._patience.wait_s(tried))


class Held:
    """A connection whose answer is being read."""

    def __init__(self, client: Client, connection: http.client.HTTPConnection | None) -> None:
        self._client = client
        self._connection = connection

    def done(self, response: http.client.HTTPResponse) -> None:
        """Everything has been read: others may have the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._client._keep(connection, response)  # noqa: SLF001 - they are one

    def close(self) -> None:
        """Nobody reads on."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _whole(response: http.client.HTTPResponse) -> Answer:
    body = response.read(MOST + 1)
    if len(body) > MOST:
        raise strange(f"an answer of over {MOST} bytes")
    length = response.headers.get("content-length", "")
    if response.length and length.isdigit():
        raise http.client.IncompleteRead(body, response.length)
    return Answer(response.status, _headers(response), body)


def _headers(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def _failed_late(answer: Answer) -> bool:
    """Copies and completions begin to answer 200 before they know how they end."""
    return answer.status == 200 and answer.code in ("InternalError", "SlowDown")


def _words(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}" if str(problem) else type(problem).__name__
