"""Speaks to one server: signs, sends, reads JSON, and turns refusals into failures."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping

from danlu.faces.cli import signing
from danlu.faces.cli.failure import FAULT, RETRY, USAGE, Answered, Failure
from danlu.faces.cli.http import (
    Broken,
    Connection,
    Garbled,
    HttpError,
    Response,
    Unreachable,
    Writer,
)

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any

    from danlu.faces.cli.websocket import WebSocket

JSON = "application/json"
HOPS = ("Connection", "Upgrade")
TOKEN = "X-Client-Token"  # noqa: S105 - the name of a header
"""With this header a submit may be sent again: it gives the same job."""


class Endpoint:
    """Where a server is and who we are there. `ca` and `pin` are files (see `Connection`); `data`
    is set for a server of this machine. `obs` is where its objects are, empty where nobody said.
    """

    __slots__ = ("access_key", "api", "ca", "data", "obs", "pin", "project_id", "secret_key")

    def __init__(
        self,
        api: str,
        project_id: str,
        access_key: str,
        secret_key: str,
        *,
        ca: str = "",
        pin: str = "",
        data: str = "",
        obs: str = "",
    ) -> None:
        self.api = api
        self.project_id = project_id
        self.access_key = access_key
        self.secret_key = secret_key
        self.ca = ca
        self.pin = pin
        self.data = data
        self.obs = obs


Recover = Callable[[bool], "Endpoint | None"]
"""Called where a local server does not answer: the endpoint to try instead, or None. The argument
says whether this client was connected before: then a server that was stopped on purpose is not
started again.
"""


class Client:
    """One server. Paths are given in decoded parts: below /danlu/v1/<project>, or behind an empty
    first part from the root.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        language: str,
        *,
        recover: Recover | None = None,
        trace: Callable[[str], None] | None = None,
    ) -> None:
        self.endpoint = endpoint
        self._language = "zh-cn" if language == "zh" else "en-us"
        self._recover = recover
        self._trace = trace
        self._connection = connection(endpoint)
        self._connected = False

    def close(self) -> None:
        """Drop the connection."""
        self._connection.close()

    def twin(self) -> Client:
        """A second connection to the same server."""
        twin = Client(
            self.endpoint, "zh" if self._language == "zh-cn" else "en",
            recover=self._recover, trace=self._trace,
        )  # fmt: skip
        twin._connected = self._connected
        return twin

    def get(
        self, *path: str, query: Mapping[str, object] | None = None, timeout_s: float = 60
    ) -> Any:
        """A JSON answer."""
        return self.answer(self.send("GET", path, query, timeout_s=timeout_s))

    def post(
        self,
        *path: str,
        body: object = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 60,
    ) -> Any:
        """A JSON answer to a JSON body (None = no body)."""
        data = b"" if body is None else json.dumps(body).encode()
        return self.answer(
            self.send("POST", path, query, body=data, headers=headers, timeout_s=timeout_s)
        )

    def delete(self, *path: str) -> Any:
        """A JSON answer."""
        return self.answer(self.send("DELETE", path))

    def socket(self, *path: str, query: Mapping[str, object]) -> WebSocket:
        """A WebSocket on a connection of its own. Answered or Failure where it is refused."""
        from danlu.faces.cli.websocket import headers as asking

        twin = self.twin()
        asked, expected = asking()
        once = os.urandom(8).hex()
        sent = {**dict(asked), "X-Client-Request-Id": once}
        response = twin.send("GET", path, query, headers=sent)
        if response.headers.get("sec-websocket-accept") != expected:
            raise Failure(FAULT, "not-danlu", api=self.endpoint.api)
        return twin.upgraded()

    def upgraded(self) -> WebSocket:
        """The connection, which the server has agreed to be a WebSocket."""
        from danlu.faces.cli.websocket import WebSocket

        self._connection.patience(None)
        return WebSocket(self._connection)

    def answer(self, response: Response) -> Any:
        """The JSON of a response that was read as it should."""
        try:
            data = response.read()
            return json.loads(data) if data else {}
        except ValueError:
            raise Failure(FAULT, "not-danlu", api=self.endpoint.api) from None
        except HttpError as error:
            raise self._lost(error) from error

    def send(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, object] | None = None,
        *,
        body: bytes | Writer = b"",
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 60,
        content_type: str = JSON,
    ) -> Response:
        """A response below 400, its body unread. Answered or Failure for all else."""
        if path[:1] == ("jobs",) and "" in path:
            raise Failure(USAGE, "name-empty")
        pairs = [(key, str(value)) for key, value in (query or {}).items() if value is not None]
        extra = dict(headers or {})
        if method != "GET":
            # The same call twice in one second must not look like a replay.
            extra["X-Client-Request-Id"] = os.urandom(8).hex()
        once = (method, path, pairs, body, extra, content_type, timeout_s)
        try:
            response = self._once(*once)
            if response.status < 400:
                self._connected = True
                return response
            failure = self._refusal(response)
        except HttpError as error:
            failure = self._lost(error)
            if isinstance(error, Broken) and method != "GET" and TOKEN not in extra:
                raise failure from error  # it may have been carried out
        if self._elsewhere(failure):
            response = self._again(once, failure)
            if response.status < 400:
                return response
            failure = self._refusal(response)
        raise failure

    def _once(
        self,
        method: str,
        path: tuple[str, ...],
        pairs: list[tuple[str, str]],
        body: bytes | Writer,
        extra: Mapping[str, str],
        content_type: str,
        timeout_s: float,
    ) -> Response:
        began = time.monotonic()
        target, headers = self._signed(method, path, pairs, body, extra, content_type)
        response = self._connection.request(method, target, headers, body, timeout_s=timeout_s)
        if self._trace is not None:
            took = (time.monotonic() - began) * 1000
            self._trace(f"{method} {target} {response.status} {took:.1f} ms")
        return response

    def _signed(
        self,
        method: str,
        path: tuple[str, ...],
        pairs: list[tuple[str, str]],
        body: bytes | Writer,
        extra: Mapping[str, str],
        content_type: str,
    ) -> tuple[str, list[tuple[str, str]]]:
        endpoint = self.endpoint
        rooted = path[:1] == ("",)
        parts = path[1:] if rooted else ("danlu", "v1", endpoint.project_id, *path)
        headers = {
            "Host": self._connection.authority,
            "X-Sdk-Date": signing.stamp(),
            "X-Language": self._language,
            **extra,
        }
        if endpoint.project_id:
            headers["X-Project-Id"] = endpoint.project_id
        if body:
            headers["Content-Type"] = content_type
        if callable(body):
            headers["X-Sdk-Content-Sha256"] = signing.UNSIGNED
        prefix = base_path(endpoint.api)
        decoded = f"{prefix}/{'/'.join(parts)}"
        target = f"{prefix}/{'/'.join(signing.quote(part) for part in parts)}"
        if pairs:
            target += f"?{signing.query_string(pairs)}"
        sent = [(name, value) for name, value in headers.items() if name != "Host"]
        # What a proxy on the way says anew is not signed.
        headers = {name: value for name, value in headers.items() if name not in HOPS}
        signature = signing.authorization(
            (endpoint.access_key, endpoint.secret_key),
            method,
            decoded,
            pairs,
            headers,
            b"" if callable(body) else body,
        )
        return target, [*sent, ("Authorization", signature)]

    def _refusal(self, response: Response) -> Failure:
        request_id = response.headers.get("x-request-id", "")
        try:
            answer = json.loads(response.read(1 << 20))
        except (ValueError, HttpError):
            answer = None
        if not isinstance(answer, dict) or "error_code" not in answer:
            return Failure(FAULT, "not-danlu", api=self.endpoint.api)
        return Answered(response.status, answer, request_id)

    def _lost(self, error: HttpError) -> Failure:
        if isinstance(error, Garbled):
            return Failure(FAULT, "not-danlu", api=self.endpoint.api)
        key = "unreachable" if isinstance(error, Unreachable) else "broken"
        return Failure(RETRY, key, api=self.endpoint.api, detail=error)

    def _elsewhere(self, failure: Failure) -> bool:
        """Whether this answer may come from another program that took a dead server's port."""
        if self._recover is None:
            return False
        return not isinstance(failure, Answered) or failure.status == 401

    def _again(self, once: Any, failure: Failure) -> Response:
        found = self._recover(self._connected) if self._recover is not None else None
        if found is None:
            raise failure
        self.endpoint = found
        self._connection.close()
        self._connection = connection(found)
        try:
            return self._once(*once)
        except HttpError as error:
            raise self._lost(error) from error


def connection(endpoint: Endpoint) -> Connection:
    """A connection to an endpoint; Failure if its address is not one."""
    scheme, _, rest = endpoint.api.partition("://")
    authority = rest.partition("/")[0]
    host, colon, port = authority.rpartition(":")
    if not colon or "]" in port:
        host, port = authority, "443" if scheme == "https" else "80"
    if scheme not in ("http", "https") or not host or not (port.isascii() and port.isdigit()):
        raise Failure(2, "bad-address", api=endpoint.api)
    return Connection(
        host.strip("[]"), int(port), tls=scheme == "https", ca=endpoint.ca, pin=endpoint.pin
    )


def base_path(api: str) -> str:
    """The path of an address, without its last slash."""
    _, slash, path = api.partition("://")[2].partition("/")
    return f"/{path}".rstrip("/") if slash else ""
