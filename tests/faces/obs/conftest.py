"""A gateway that listens, and a small client of it."""

from __future__ import annotations

import hashlib
import html
import http.client
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from tests.faces.http.live import Live, live
from tests.faces.obs import signer

PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    def text(self, name: str) -> str:
        """The text of the first element of this name."""
        found = re.search(f"<{name}(?: [^>]*)?>([^<]*)<", self.body.decode())
        return html.unescape(found[1]) if found else ""

    @property
    def code(self) -> str:
        return self.text("Code")


class Gateway:
    """Calls the gateway of a live server, signed with V4 unless the caller signs by itself."""

    def __init__(self, server: Live) -> None:
        self.server = server
        self.port = urlsplit(server.running.platform.obs).port or 0
        self.host = f"127.0.0.1:{self.port}"
        self.key = server.key

    def call(
        self,
        method: str,
        bucket: str = "",
        key: str = "",
        body: bytes = b"",
        *,
        query: signer.Query | None = None,
        headers: Mapping[str, str] | None = None,
        pair: signer.Key | None = None,
    ) -> Answer:
        """A signed request."""
        path = signer.path_of(bucket, key)
        payload = hashlib.sha256(body).hexdigest()
        v4 = signer.V4(pair or self.key)
        sent = v4.headers(
            method, path, query or {}, {"Host": self.host, **(headers or {})}, payload
        )
        return self.send(method, signer.target(path, query or {}), sent, body)

    def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes = b""
    ) -> Answer:
        """Exactly this request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            if "Host" not in headers:
                connection.putheader("Host", self.host)
            for name, value in headers.items():
                connection.putheader(name, value.encode())
            if body and "content-length" not in {name.lower() for name in headers}:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body or None)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def content(self, bucket: str, key: str) -> bytes | None:
        """What is stored, as the store itself says; None where there is nothing."""
        objects = self.server.running.platform.objects
        if key not in [info.key for info in objects.walk(bucket)]:
            return None
        return b"".join(objects.read(bucket, key))


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with live(tmp_path_factory.mktemp("gateway")) as server:
        found = Gateway(server)
        assert found.call("PUT", "shared").status == 200
        yield found


@pytest.fixture
def bucket(gateway: Gateway, request: pytest.FixtureRequest) -> str:
    """A bucket of the test's own."""
    digest = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:20]
    name = f"b-{digest}"
    assert gateway.call("PUT", name).status in (200, 409)
    return name
