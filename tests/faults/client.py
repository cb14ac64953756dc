"""A client that does not give up: it asks again until a server that is killed and restarted
answers, with the same client token, as a careful program does.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import secrets
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.faces.http import signing

HANG_S = 120.0
"""A bound that only a hang reaches."""


class Gone(Exception):
    """No server answers, for much longer than any restart takes."""


class Refused(Exception):
    """The server said no."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"{status} {body.decode('utf-8', 'replace')[:300]}")
        self.status = status
        self.body = body


class Client:
    """Speaks to the server on a port, whichever process that is. For one thread."""

    def __init__(self, ready: Mapping[str, Any], port: int, *, host_port: int = 0) -> None:
        self.project = str(ready["project_id"])
        self._key = (str(ready["access_key"]), str(ready["secret_key"]))
        self._port = port
        self._host = f"127.0.0.1:{host_port or port}"
        self._connection: http.client.HTTPConnection | None = None
        self.offset_s = 0.0
        """How far this client's wall clock is from the real one."""
        self.drift: tuple[float, float] | None = None
        """Since when it runs at another speed, and at which."""
        self.refusals: list[str] = []
        """Answers of 500 and above, 503 excepted."""

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def call(self, method: str, path: str, body: object = None, *, token: str = "") -> Any:
        """The JSON of an answer below 400; Refused for one that will not change by waiting.
        `path` is below /danlu/v1/<project>/.
        """
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = self._patiently(method, path, b"" if body is None else data, token)
        return json.loads(answer) if answer else {}

    def read(self, path: str) -> bytes:
        """The bytes of an answer."""
        return self._patiently("GET", path, b"", "")

    def _patiently(self, method: str, path: str, body: bytes, token: str) -> bytes:
        ends = time.monotonic() + HANG_S
        while True:
            try:
                status, _, answer = self.once(method, path, body, token)
            except (OSError, http.client.HTTPException):
                self.close()
                status, answer = 0, b""
            if 0 < status < 400:
                return answer
            if status >= 500 and status != 503:
                self.refusals.append(f"{method} {path}: {status} {answer[:300]!r}")
            if status in range(400, 503) and status != 429:
                raise Refused(status, answer)
            if time.monotonic() > ends:
                raise Gone(f"{method} {path}: {status} {answer[:300]!r}")
            time.sleep(0.02)

    def once(
        self, method: str, path: str, body: bytes = b"", token: str = ""
    ) -> tuple[int, dict[str, str], bytes]:
        """Ask once: status, headers and body, whatever they are."""
        target = f"/danlu/v1/{self.project}/{path}"
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        headers = {
            "Host": self._host,
            "X-Sdk-Date": signing.now(self.moment() - time.time()),
            "X-Client-Request-Id": secrets.token_hex(8),
            **({"Content-Type": "application/json"} if body[:1] in b"{[" else {}),
            **({"X-Client-Token": token} if token else {}),
        }
        if body[:1] not in b"{[":
            headers["Content-Type"] = "application/octet-stream"
            headers["X-Sdk-Content-Sha256"] = hashlib.sha256(body).hexdigest()
        signed = signing.signed(self._key, method, target, headers, body)
        self._connection.request(method, target, body or None, signed)
        response = self._connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return response.status, found, response.read()

    def moment(self) -> float:
        """This client's wall clock."""
        now = time.time()
        if self.drift is not None:
            since, speed = self.drift
            now = since + (now - since) * speed
        return now + self.offset_s

    def close(self) -> None:
        """Hang up; the next question calls again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def upload(self, name: str, *programs: Path) -> str:
        """Upload files as the code directory `name`; its address."""
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            for program in programs:
                tar.add(program, program.name)
        return str(self.call("POST", f"code?name={name}", archive.getvalue())["code_dir"])
