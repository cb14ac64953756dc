"""A server that listens, in this process: real records and objects, scripted tasks."""

from __future__ import annotations

import http.client
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from danlu import settings
from danlu.engines.memory import MemoryEngine
from danlu.engines.memory_script import Script
from danlu.faces.http.listen import listen, listen_obs, url
from danlu.faces.http.serve import Listener, listener
from danlu.flow.stop import want_stop
from danlu.model.errors import Missing, Refused
from danlu.model.identity import AccessKey, Caller, Secret, User, Workspace
from danlu.wiring import Running, open_platform
from danlu.wiring.admin import hash_password
from tests.faces.http import signing

PATIENCE_S = 30.0


@dataclass(slots=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def key(self) -> str:
        """The error's key."""
        return str(self.json["key"])


class Live:
    """One running server and the key of its administrator."""

    def __init__(self, running: Running, server: Listener, port: int) -> None:
        self.running = running
        self.server = server
        self.port = port
        self.key = (running.admin.access_key, running.admin.secret.reveal())
        self.project = running.workspace.id
        self.host = f"127.0.0.1:{port}"

    @property
    def engine(self) -> MemoryEngine:
        return cast("MemoryEngine", self.running.platform.engine)

    def call(
        self,
        method: str,
        target: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        key: tuple[str, str] | None = None,
    ) -> Answer:
        """A signed request; `{p}` in the target is the project. Sent as JSON unless bytes."""
        target = target.replace("{p}", self.project)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        data = b"" if body is None else data
        sent = {
            "Host": self.host,
            "X-Sdk-Date": signing.now(),
            # Two equal requests in one second would look like a replay.
            "X-Client-Request-Id": secrets.token_hex(8),
            **({"Content-Type": "application/json"} if data else {}),
        }
        for name, value in (headers or {}).items():
            sent = {known: kept for known, kept in sent.items() if known.lower() != name.lower()}
            sent[name] = value
        return self.send(
            method, target, signing.signed(key or self.key, method, target, sent, data), data
        )

    def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes = b""
    ) -> Answer:
        """Exactly this request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
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

    def script(self, name: str, script: Script) -> None:
        """What the tasks of jobs called `name` do."""
        self.engine.scripts[name] = script

    def submit(self, name: str, **changes: Any) -> str:
        """Submit a job; its id."""
        answer = self.call("POST", "/v2/{p}/training-jobs", create_body(name, **changes))
        assert answer.status == 201, answer.body
        return str(answer.json["metadata"]["id"])

    def until(self, job_id: str, *states: str) -> Any:
        """The job in our words, once it is in one of `states`."""
        ends = time.monotonic() + PATIENCE_S
        while time.monotonic() < ends:
            job = self.call("GET", f"/danlu/v1/{{p}}/jobs/{job_id}").json
            if job["state"] in states:
                return job
            time.sleep(0.02)
        raise AssertionError(f"{job_id} did not become {states}")

    def clear(self) -> None:
        """End every job that lives, whatever it thinks of SIGTERM."""
        running = self.running
        caller = Caller(running.admin.user, running.workspace)
        ends = time.monotonic() + PATIENCE_S
        while entries := running.board.entries():
            assert time.monotonic() < ends, [entry.job.spec.name for entry in entries]
            for entry in entries:
                with suppress(Missing, Refused):
                    want_stop(running.platform, running.board, caller, entry.job.id, lambda: None)
                for ref in entry.refs:
                    self.engine.stop(ref, 0)
            running.loop.wake()
            time.sleep(0.01)

    def another(self, name: str = "bob", password: str = "") -> tuple[Workspace, tuple[str, str]]:
        """A user of a project of their own, and their key."""
        records = self.running.platform.records
        workspace = Workspace(f"project-{name}", self.running.workspace.region)
        hashed = hash_password(password) if password else ""
        user = User(f"id-{name}", name, workspace.id, f"domain-{name}", hashed)
        pair = (f"AK{name.upper()}", secrets.token_urlsafe(20))
        records.add_workspace(workspace).result()
        records.add_user(user).result()
        records.add_access_key(AccessKey(pair[0], Secret(pair[1]), user)).result()
        return workspace, pair


def create_body(name: str, **algorithm: Any) -> dict[str, Any]:
    """A create body that runs a command; `algorithm` replaces its fields."""
    return {
        "kind": "job",
        "metadata": {"name": name},
        "algorithm": {"command": "true", **algorithm},
        "spec": {"resource": {"flavor_id": "danlu.cpu.1u", "node_count": 1}},
    }


@contextmanager
def live(root: Path, *, turning: bool = True, **flags: Any) -> Iterator[Live]:
    """Run a server on loopback until the block ends. Without `turning` its loop stands still, for
    tests that turn it themselves.
    """
    loaded = settings.load(root, {"engine": "memory", "port": 0, **flags}, {}).settings
    with listen(loaded) as opened, listen_obs(loaded, opened) as gateway:
        api = url(loaded, opened)
        running = open_platform(loaded, api, url(loaded, gateway))
        if turning:
            running.start()
        server = listener(running, api, gateway)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]}, daemon=True)
        ticking = threading.Event()
        ticker = threading.Thread(target=_tick, args=(running, ticking), daemon=True)
        thread.start()
        if turning:
            ticker.start()
        try:
            _until_started(server)
            yield Live(running, server, opened.getsockname()[1])
        finally:
            ticking.set()
            server.should_exit = True
            thread.join(PATIENCE_S)
            if turning:
                ticker.join(PATIENCE_S)
            server.state.close()
            running.close()
    assert not thread.is_alive()


def _until_started(server: Listener) -> None:
    ends = time.monotonic() + PATIENCE_S
    while not server.started:
        assert time.monotonic() < ends, "the server did not start"
        time.sleep(0.005)


def _tick(running: Running, ended: threading.Event) -> None:
    """The scripted engine knows no time of its own: have the loop look often."""
    while not ended.wait(0.01):
        running.loop.wake()
