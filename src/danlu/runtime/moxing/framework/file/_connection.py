"""Requests to the storage: signed, kept alive, and tried again while the storage has a bad time."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http.client
import os
import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, NoReturn
from urllib.parse import urlsplit

from moxing.framework.file._place import Place
from moxing.framework.file._signature import EMPTY_SHA256, Keys, canonical_query, escaped, signed
from moxing.framework.file._words import say, tell

PATIENCE_S = 600.0
"""So long a storage that does not answer, or answers that it cannot, is asked again."""
TELL_AFTER_S = 10.0
MOST_PAUSE_S = 20.0
TIMEOUT_S = 60.0
LONG_S = 900.0
"""For what the storage does by itself before it answers: copies, and the end of an upload."""
MOST_IDLE = 32
ANSWER_BYTES = 32 << 20
"""Most of an answer that is not an object's content (a page of a listing has under 2 MiB)."""
AGAIN = frozenset({408, 429, 500, 502, 503, 504})
CHUNK = 1 << 18
NETWORK = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN)


class Storage(NamedTuple):
    """Where the storage is, and with which keys it is opened."""

    secure: bool
    host: str
    port: int | None
    keys: Keys
    platform: bool
    """Whether it is the platform's own."""

    @property
    def address(self) -> str:
        """The Host header."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port is None else f"{name}:{self.port}"


class Body:
    """What is sent: bytes, or a part of an open file. It can be sent more than once."""

    def __init__(self, data: bytes = b"", fd: int = -1, start: int = 0, length: int = 0) -> None:
        self._data = data
        self._fd = fd
        self._start = start
        self.length = length if fd >= 0 else len(data)

    def chunks(self) -> Iterator[bytes]:
        """The content. OSError where a file has become shorter."""
        if self._fd < 0:
            yield self._data
            return
        done = 0
        while done < self.length:
            data = os.pread(self._fd, min(CHUNK, self.length - done), self._start + done)
            if not data:
                raise FileChanged
            yield data
            done += len(data)

    def sha256(self) -> str:
        """Signed with the request, so that the storage takes nothing else."""
        if not self.length:
            return EMPTY_SHA256
        digest = hashlib.sha256()
        for chunk in self.chunks():
            digest.update(chunk)
        return digest.hexdigest()


class FileChanged(Exception):
    """A file is not what it was when its copy began."""


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def raise_for(self, place: Place) -> NoReturn:
        """What the storage says of `place`, as an OSError."""
        code, message = told(self)
        if self.status == 404 and code == "NoSuchBucket":
            raise FileNotFoundError(say("no-bucket", url=place, bucket=place.bucket))
        if self.status == 404:
            raise FileNotFoundError(say("missing", url=place))
        if self.status in (401, 403):
            raise PermissionError(say("denied", url=place, code=code, message=message))
        raise StorageRefused(
            self.status,
            say("failed", url=place, status=self.status, code=code, message=message),
        )


class _Pool:
    """Idle connections. A forked process has its own: two must not talk on one."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Forget everything: after a fork the lock may be held by a thread that is not there."""
        self._lock = threading.Lock()
        self._idle: list[tuple[Storage, http.client.HTTPConnection]] = []

    def close(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def take(self, storage: Storage) -> tuple[http.client.HTTPConnection, bool]:
        """A connection, and whether it was used before."""
        with self._lock:
            for index in range(len(self._idle) - 1, -1, -1):
                if self._idle[index][0] == storage:
                    return self._idle.pop(index)[1], True
        if storage.secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(
                storage.host, storage.port, timeout=TIMEOUT_S, context=context
            ), False
        return http.client.HTTPConnection(storage.host, storage.port, timeout=TIMEOUT_S), False

    def give_back(self, storage: Storage, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if len(self._idle) < MOST_IDLE:
                self._idle.append((storage, connection))
                return
        connection.close()


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.renew)


def forget() -> None:
    """Close every connection that nobody uses."""
    _pool.close()


def storage(url: Place) -> Storage:
    """The storage of this environment. OSError, with a way on, where there is none."""
    found = _from("DANLU_OBS_ENDPOINT", "DANLU_OBS_ACCESS_KEY", "DANLU_OBS_SECRET_KEY")
    platform = found is not None
    found = found or _from("AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    found = found or _from("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    if found is None:
        path = f"{url.bucket}/{url.key}"
        raise NoStorage(say("no-storage", url=url, path=path))
    endpoint, access_key, secret_key = found
    parts = urlsplit(endpoint)
    region = os.environ.get("DANLU_OBS_REGION" if platform else "AWS_REGION") or "us-east-1"
    keys = Keys(access_key, secret_key, region)
    return Storage(parts.scheme == "https", parts.hostname or "", parts.port, keys, platform)


def _from(endpoint: str, access_key: str, secret_key: str) -> tuple[str, str, str] | None:
    values = tuple(map(os.environ.get, (endpoint, access_key, secret_key)))
    return values if all(values) else None  # type: ignore[return-value]  # none of the three is None


class Request(NamedTuple):
    """One request, as often as it takes."""

    method: str
    place: Place
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = {}
    body: Body = Body()
    timeout_s: float = TIMEOUT_S

    def ask(self, good: Iterable[int] = (200, 204)) -> Answer:
        """The whole answer; what is not `good` is raised as an OSError."""
        patience = Patience(self.place)
        while True:
            try:
                with self.open() as response:
                    body = response.read(ANSWER_BYTES)
            except (OSError, http.client.HTTPException) as error:
                patience.wait(passing(error))
                continue
            answer = Answer(response.status, _headers(response), body)
            if answer.status in good:
                return answer
            if answer.status not in AGAIN:
                answer.raise_for(self.place)
            patience.wait(answer)

    @contextlib.contextmanager
    def open(self) -> Iterator[http.client.HTTPResponse]:
        """Send it once; the answer, of which nothing but the head is read yet."""
        opened = storage(self.place)
        connection, used = _pool.take(opened)
        self._bound(connection)
        try:
            try:
                response = self._send(opened, connection)
            except (OSError, http.client.HTTPException):
                connection.close()
                if not used:
                    raise
                # The storage closes what was idle for long: no reason to wait.
                connection, _ = _pool.take(opened)
                self._bound(connection)
                response = self._send(opened, connection)
            yield response
        except BaseException:
            connection.close()
            raise
        if response.isclosed() and not response.will_close:
            _pool.give_back(opened, connection)
        else:
            connection.close()

    def _bound(self, connection: http.client.HTTPConnection) -> None:
        """So long may it take until something is heard."""
        connection.timeout = self.timeout_s
        if connection.sock is not None:
            connection.sock.settimeout(self.timeout_s)

    def _send(
        self, opened: Storage, connection: http.client.HTTPConnection
    ) -> http.client.HTTPResponse:
        path = f"/{escaped(self.place.bucket)}/{escaped(self.place.key, '/')}"
        headers = {name.lower(): value for name, value in self.headers.items()}
        headers["host"] = opened.address
        headers["x-amz-content-sha256"] = self.body.sha256()
        date = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        headers = signed(self.method, path, self.query, headers, opened.keys, date)
        if self.body.length or self.method in ("PUT", "POST"):
            headers["content-length"] = str(self.body.length)
        target = f"{path}?{canonical_query(self.query)}" if self.query else path
        connection.putrequest(self.method, target, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        try:
            connection.endheaders()
            for chunk in self.body.chunks():
                connection.send(chunk)
        except (BrokenPipeError, ConnectionResetError):
            # Perhaps it has said why before it stopped to listen.
            with contextlib.suppress(OSError, http.client.HTTPException):
                return connection.getresponse()
            raise
        return connection.getresponse()


class Patience:
    """How long a request has been tried, and how long until the next try."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._began = time.monotonic()
        self._tries = 0
        self._told = False

    def progress(self) -> None:
        """Something has arrived: it is not the same trouble any more."""
        self._began, self._tries, self._told = time.monotonic(), 0, False

    def wait(self, problem: Answer | Exception) -> None:
        """Pause before the next try, or raise if there is none."""
        since_s = time.monotonic() - self._began
        detail = _in_words(problem)
        if since_s > PATIENCE_S:
            _given_up(self._place, problem, since_s, detail)
        if not self._told and since_s > TELL_AFTER_S:
            self._told = True
            tell("trying-again", url=self._place, detail=detail)
        self._tries += 1
        most = min(MOST_PAUSE_S, 0.1 * 2 ** min(self._tries, 20))
        time.sleep(random.uniform(most / 4, most))  # noqa: S311 - a pause is no secret


def _given_up(place: Place, problem: Answer | Exception, since_s: float, detail: str) -> NoReturn:
    if isinstance(problem, Answer):
        problem.raise_for(place)
    host = storage(place).address
    raise TimeoutError(
        say("no-answer", url=place, host=host, seconds=round(since_s), detail=detail)
    ) from problem


def passing(error: Exception) -> Exception:
    """The error, if another try may fare better; otherwise it is raised."""
    trouble = (ConnectionError, TimeoutError, socket.gaierror, ssl.SSLError)
    of_network = isinstance(error, OSError) and error.errno in NETWORK
    lasting = isinstance(error, ssl.SSLCertVerificationError)
    if lasting or not (of_network or isinstance(error, (*trouble, http.client.HTTPException))):
        raise error
    return error


def _in_words(problem: Answer | Exception) -> str:
    if isinstance(problem, Answer):
        code, message = told(problem)
        return f"{problem.status} {code} {message}".strip()
    return str(problem) or type(problem).__name__


def _headers(response: http.client.HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


def told(answer: Answer) -> tuple[str, str]:
    """The code and message of an error's document."""
    text = answer.body[: 1 << 16].decode("utf-8", "replace")
    found = [re.search(f"<{tag}>([^<]*)</{tag}>", text) for tag in ("Code", "Message")]
    code, message = (match[1] if match else "" for match in found)
    return code or http.client.responses.get(answer.status, ""), message


class NoStorage(OSError):
    """Nothing says where the storage is."""


class StorageRefused(OSError):
    """The storage understood, and says no; `status` is that of HTTP."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
