"""The server as a process: where it may listen, what it says when ready, and how it ends."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from danlu import settings
from danlu.faces.http.listen import check, is_loopback, listen, url
from danlu.faces.http.serve import write_ready
from danlu.model.errors import Invalid, Refused
from danlu.settings import Settings
from tests.faces.http import signing

PATIENCE_S = 60.0

SERVE = """
import sys
from pathlib import Path
from danlu.faces.http.serve import serve
from danlu.settings import load
flags = dict(part.split("=", 1) for part in sys.argv[2:])
sys.exit(serve(load(Path(sys.argv[1]), {"engine": "memory", "port": "0", **flags}, {}).settings))
"""


@contextmanager
def process(data: Path, **flags: str) -> Iterator[subprocess.Popen[bytes]]:
    given = [f"{name}={value}" for name, value in flags.items()]
    started = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(data), *given], stderr=subprocess.PIPE
    )
    try:
        yield started
    finally:
        if started.poll() is None:
            started.kill()
        started.communicate(timeout=PATIENCE_S)


def ready(data: Path, started: subprocess.Popen[bytes], name: str = "server.json") -> Any:
    ends = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends and started.poll() is None:
        try:
            said = json.loads((data / name).read_text())
        except FileNotFoundError:
            time.sleep(0.02)
            continue
        if said["pid"] == started.pid:
            return said
        time.sleep(0.02)
    raise AssertionError(f"not ready, exit status {started.poll()}")


def authority(said: Any) -> str:
    return str(said["api"]).partition("://")[2]


@contextmanager
def asked(
    said: Any, method: str, path: str, body: bytes = b""
) -> Iterator[http.client.HTTPResponse]:
    host = authority(said)
    headers = {"Host": host, "X-Sdk-Date": signing.now()}
    key = (said["access_key"], said["secret_key"])
    signed = signing.signed(key, method, path, headers, body)
    connection = http.client.HTTPConnection(host, timeout=PATIENCE_S)
    try:
        connection.request(method, path, body or None, signed)
        yield connection.getresponse()
    finally:
        connection.close()


def request(said: Any, method: str, path: str, body: bytes = b"") -> tuple[int, Any]:
    with asked(said, method, path, body) as response:
        return response.status, json.loads(response.read())


def test_ready_means_listening_and_says_how_to_get_in(tmp_path: Path) -> None:
    with process(tmp_path) as started:
        said = ready(tmp_path, started)
        assert stat.S_IMODE((tmp_path / "server.json").stat().st_mode) == 0o600
        assert {"api", "region", "project_id", "access_key", "secret_key"} <= said.keys()
        assert said["region"] == "danlu-local"
        path = f"/v2/{said['project_id']}/training-job-flavors"
        assert request(said, "GET", path)[0] == 200
        started.send_signal(signal.SIGTERM)
        assert started.wait(PATIENCE_S) == 0


def test_the_same_key_and_project_after_a_restart_on_the_same_port(tmp_path: Path) -> None:
    """(case 83) a port that was just left can be taken again"""
    with process(tmp_path) as first:
        before = ready(tmp_path, first)
        assert request(before, "GET", "/danlu/v1/health")[0] == 200
        first.send_signal(signal.SIGINT)
        assert first.wait(PATIENCE_S) == 0
    port = authority(before).rpartition(":")[2]
    with process(tmp_path, port=port) as second:
        after = ready(tmp_path, second)
    for name in ("api", "project_id", "access_key", "secret_key", "domain_id"):
        assert after[name] == before[name]


def test_a_server_ends_in_seconds_though_someone_follows_and_waits(tmp_path: Path) -> None:
    with process(tmp_path) as started:
        said = ready(tmp_path, started)
        project = said["project_id"]
        path = f"/danlu/v1/{project}/jobs"
        job_id = ""
        for name in ("first", "second"):
            # The whole node each: the second waits as long as nobody wakes the loop for it.
            body = {
                "metadata": {"name": name},
                "algorithm": {"command": "true"},
                "spec": {"resource": {"node_count": 8, "flavor_id": "danlu.cpu.1u"}},
            }
            job_id = request(said, "POST", path, json.dumps(body).encode())[1]["id"]
        log = f"{path}/{job_id}/tasks/worker-0/log?follow=1"
        with ExitStack() as stack:
            for _ in range(3):
                assert stack.enter_context(asked(said, "GET", log)).status == 200
            began = time.monotonic()
            started.send_signal(signal.SIGTERM)
            assert started.wait(PATIENCE_S) == 0
            assert time.monotonic() - began < 10


FORGETFUL = """
import sqlite3, sys
from pathlib import Path
from danlu.faces.cli.main import main
from danlu.stores.sql.sqlite import Sqlite
finish = Sqlite.finish
def forget(self, connection):
    if not Path(sys.argv[1], "forgetful").exists():
        return finish(self, connection)
    self.undo(connection)
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
    raise error
Sqlite.finish = forget
sys.exit(main(["serve", "--data", sys.argv[1], "--port", "0"]))
"""


def test_a_server_whose_disk_forgets_ends_at_once_with_an_error(tmp_path: Path) -> None:
    """(fault 23) At the first write that was not kept, though the loop has nothing to write."""
    started = subprocess.Popen(
        [sys.executable, "-c", FORGETFUL, str(tmp_path)],
        stderr=subprocess.PIPE,
        env={**os.environ, "DANLU_ENGINE": "memory", "DANLU_LANG": "en"},
    )
    try:
        said = ready(tmp_path, started)
        (tmp_path / "forgetful").touch()
        body = b'{"metadata": {"name": "a"}, "algorithm": {"command": "true"}}'
        status, problem = request(said, "POST", f"/danlu/v1/{said['project_id']}/jobs", body)
        assert (status, problem["key"]) == (503, "database-failed")
        _, errors = started.communicate(timeout=PATIENCE_S)
    finally:
        if started.poll() is None:
            started.kill()
            started.communicate(timeout=PATIENCE_S)
    assert started.returncode == 75
    assert "the disk did not keep what was written" in errors.decode()
    with process(tmp_path) as second:
        (tmp_path / "forgetful").unlink()
        assert request(ready(tmp_path, second), "GET", "/danlu/v1/health")[0] == 200


def test_a_second_server_on_the_same_data_is_refused(tmp_path: Path) -> None:
    with process(tmp_path) as first:
        ready(tmp_path, first)
        with process(tmp_path) as second:
            _, errors = second.communicate(timeout=PATIENCE_S)
        assert second.returncode != 0
        assert b"in use by another server" in errors
        assert str(first.pid).encode() in errors
        assert first.poll() is None


def test_the_ready_file_may_lie_elsewhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "中 文" / "ready.json"
    elsewhere.parent.mkdir()
    with process(tmp_path / "data", ready_file=str(elsewhere)) as started:
        assert ready(elsewhere.parent, started, elsewhere.name)["api"]


def certificate(directory: Path) -> tuple[Path, Path]:
    cert, key = directory / "cert.pem", directory / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return cert, key


def test_tls_is_served_with_the_certificate_that_is_configured(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)
    with process(tmp_path / "data", tls_cert=str(cert), tls_key=str(key)) as started:
        said = ready(tmp_path / "data", started)
        assert said["api"].startswith("https://")
        assert said["ca"] == str(cert)
        context = ssl.create_default_context(cafile=said["ca"])
        connection = http.client.HTTPSConnection(authority(said), timeout=30, context=context)
        try:
            connection.request("GET", "/danlu/v1/health")
            assert connection.getresponse().status == 200
        finally:
            connection.close()


# ---------------------------------------------------------------- addresses


def loaded(data: Path, **flags: Any) -> Settings:
    return settings.load(data, {"port": 0, **flags}, {}).settings


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "192.168.0.1", "example.org", ""])
def test_an_open_address_needs_tls_or_a_word(tmp_path: Path, host: str) -> None:
    with pytest.raises(Refused) as caught:
        check(loaded(tmp_path, host=host))
    assert caught.value.key == "bind-open"
    check(loaded(tmp_path, host=host, insecure_bind=True))
    check(loaded(tmp_path, host=host, tls_cert="a", tls_key="b"))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.3.2.1"])
def test_loopback_needs_neither(tmp_path: Path, host: str) -> None:
    check(loaded(tmp_path, host=host))
    assert is_loopback(host)


def test_half_of_tls_is_none(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="tls_key"):
        check(loaded(tmp_path, tls_cert="a"))


def test_a_port_that_is_taken_is_said_to_be(tmp_path: Path) -> None:
    """(case 81) a busy port is said at once, with the way out"""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Refused) as caught:
            listen(loaded(tmp_path, port=port))
    assert caught.value.key == "bind-failed"
    assert str(port) in str(caught.value)
    assert "--port" in str(caught.value)


@pytest.mark.parametrize("host", ["300.1.1.1", "no.such.host.invalid", "a b"])
def test_an_address_that_is_none_is_said_to_be(tmp_path: Path, host: str) -> None:
    with pytest.raises(Refused) as caught:
        listen(loaded(tmp_path, host=host))
    assert caught.value.key == "bind-failed"


def test_the_address_that_clients_use(tmp_path: Path) -> None:
    for host, shown in (("127.0.0.1", "127.0.0.1"), ("localhost", "localhost"), ("::1", "[::1]")):
        taken = loaded(tmp_path, host=host)
        with listen(taken) as opened:
            assert url(taken, opened) == f"http://{shown}:{opened.getsockname()[1]}"
    open_ = loaded(tmp_path, host="0.0.0.0", insecure_bind=True, host_names="gpu.lab,other")
    with listen(open_) as opened:
        assert url(open_, opened) == f"http://gpu.lab:{opened.getsockname()[1]}"


def test_connections_answer_at_once_and_notice_dead_clients(tmp_path: Path) -> None:
    with listen(loaded(tmp_path)) as opened, socket.socket() as client:
        client.connect(opened.getsockname())
        accepted, _ = opened.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            # asyncio's own loop sets TCP_NODELAY only where it knows the protocol.
            assert accepted.proto == socket.IPPROTO_TCP


def test_a_ready_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "server.json"
    path.write_text("old")
    path.chmod(0o644)
    write_ready(path, {"api": "x", "pid": os.getpid()})
    assert json.loads(path.read_text())["api"] == "x"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in tmp_path.iterdir()] == ["server.json"]
