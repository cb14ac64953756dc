"""A thin client of the Docker-compatible REST API on a unix socket (podman serves it too).

Paths carry no version: both servers then speak the newest one they know, and what is used here has
been the same since version 1.41. Every answer has a bound, every wait an end.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import quote, urlencode

ANSWER_BYTES = 16 << 20
LINE_BYTES = 1 << 20
WAIT_S = 60.0


class RuntimeAway(Exception):
    """The container runtime does not answer. It says nothing about the containers."""


class RuntimeRefused(Exception):
    """The container runtime says no; `status` is HTTP's."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Api:
    """One runtime. Keeps no connection: a runtime that was restarted is as good as before."""

    def __init__(self, path: str) -> None:
        self.path = path

    def call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        body: Mapping[str, Any] | None = None,
        *,
        wait_s: float = WAIT_S,
    ) -> Any:
        """What the runtime answers, from JSON; None where it answers nothing.

        Raises RuntimeRefused for every status from 400 on, RuntimeAway where there is no answer.
        """
        connection = _Connection(self.path, wait_s)
        try:
            with self._ask(connection, method, path, query, body) as answer:
                return _parsed(_bounded(answer))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise RuntimeAway(f"{self.path}: {_words(error)}") from error
        finally:
            connection.close()

    def header(
        self, path: str, query: Mapping[str, str | int], name: str, *, wait_s: float = WAIT_S
    ) -> str | None:
        """A header of the answer to HEAD; None where nothing is there (404)."""
        connection = _Connection(self.path, wait_s)
        try:
            with self._ask(connection, "HEAD", path, query, None) as answer:
                return answer.getheader(name, "")
        except RuntimeRefused as refused:
            if refused.status == http.client.NOT_FOUND:
                return None
            raise
        except (OSError, http.client.HTTPException) as error:
            raise RuntimeAway(f"{self.path}: {_words(error)}") from error
        finally:
            connection.close()

    def lines(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int],
        headers: Mapping[str, str] | None = None,
        *,
        wait_s: float = WAIT_S,
    ) -> Iterator[dict[str, Any]]:
        """The JSON objects that the runtime sends one after the other; `wait_s` bounds the wait for
        each.
        """
        connection = _Connection(self.path, wait_s)
        try:
            with self._ask(connection, method, path, query, None, headers) as answer:
                while line := answer.readline(LINE_BYTES):
                    found = json.loads(line) if line.strip() else None
                    if isinstance(found, dict):
                        yield found
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise RuntimeAway(f"{self.path}: {_words(error)}") from error
        finally:
            connection.close()

    def hijack(
        self, path: str, body: Mapping[str, Any], *, wait_s: float = WAIT_S
    ) -> socket.socket:
        """The connection itself, as a two-way stream, after the runtime has taken it over."""
        connection = _Connection(self.path, wait_s)
        try:
            headers = {"Connection": "Upgrade", "Upgrade": "tcp"}
            answer = self._ask(connection, "POST", path, None, body, headers)
            # Nothing may be read ahead: what follows the head is the stream's.
            stream = connection.sock.dup()
            answer.close()
        except (OSError, http.client.HTTPException) as error:
            raise RuntimeAway(f"{self.path}: {_words(error)}") from error
        finally:
            connection.close()
        return cast("socket.socket", stream)

    def _ask(
        self,
        connection: _Connection,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None,
        body: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None = None,
    ) -> http.client.HTTPResponse:
        data = None if body is None else json.dumps(body).encode()
        sent = {"Content-Type": "application/json"} if data is not None else {}
        target = f"{path}?{urlencode(query)}" if query else path
        connection.request(method, target, data, {**sent, **(headers or {})})
        answer = connection.getresponse()
        if answer.status < http.client.BAD_REQUEST:
            return answer
        with answer:
            raise RuntimeRefused(answer.status, _said(_bounded(answer), answer.reason))


def part(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")


def _bounded(answer: http.client.HTTPResponse) -> bytes:
    data = answer.read(ANSWER_BYTES + 1)
    if len(data) > ANSWER_BYTES:
        raise ValueError(f"an answer of more than {ANSWER_BYTES} bytes")
    return data


def _parsed(data: bytes) -> Any:
    return json.loads(data) if data.strip() else None


def _said(data: bytes, reason: str) -> str:
    try:
        found = json.loads(data)
        said = str(found.get("message") or found.get("cause") or "")
    except (ValueError, AttributeError):
        said = data.decode("utf-8", "replace")
    return " ".join(said.split())[:1000] or reason


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
