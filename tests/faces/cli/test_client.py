"""The signed client: answers, refusals, retries, and programs that are something else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from danlu.faces.cli.client import TOKEN, Client, Endpoint, Recover, base_path, connection
from danlu.faces.cli.failure import DENIED, FAULT, MISSING, REFUSED, RETRY, USAGE, Answered, Failure
from danlu.faces.cli.servers import connect, named, profiles_path
from tests.faces.cli.scripted import Scripted, reply

JSON = reply(b'{"a": 1}')


def endpoint(server: Scripted) -> Endpoint:
    return Endpoint(server.api, "p", "AK", "SK")


Make = Callable[..., Client]


@pytest.fixture
def make() -> Iterator[Make]:
    """Makes clients that are closed when the test ends."""
    made: list[Client] = []

    def one(to: Endpoint, language: str = "en", recover: Recover | None = None) -> Client:
        made.append(Client(to, language, recover=recover))
        return made[-1]

    yield one
    for client in made:
        client.close()


def refusal(status: str, key: str = "k") -> bytes:
    body = {"error_code": "ModelArts.1", "error_msg": "no\x1b[2J!", "key": key}
    return reply(json.dumps(body).encode(), status, "X-Request-Id: r1")


def test_requests_are_signed_and_say_what_language(make: Make) -> None:
    with Scripted([[JSON]]) as server:
        client = make(endpoint(server), "zh")
        assert client.get("jobs", "a/b c", query={"x": "1 2", "none": None}) == {"a": 1}
    head = server.requests[0].decode().split("\r\n")
    assert head[0] == "GET /danlu/v1/p/jobs/a%2Fb%20c?x=1%202 HTTP/1.1"
    fields = {name.lower(): value for name, _, value in (one.partition(": ") for one in head[1:])}
    assert fields["x-language"] == "zh-cn"
    assert fields["x-project-id"] == "p"
    assert fields["authorization"].startswith(
        "SDK-HMAC-SHA256 Access=AK, SignedHeaders=host;x-language;x-project-id;x-sdk-date, Sig"
    )


def test_the_same_write_twice_in_a_second_is_signed_differently(make: Make) -> None:
    with Scripted([[JSON], [JSON]]) as server:
        client = make(endpoint(server), "en")
        client.post("jobs", "1", "stop")
        client.post("jobs", "1", "stop")
    first, second = server.requests
    assert first != second
    assert b"x-client-request-id" in first.lower()


@pytest.mark.parametrize(
    ("status", "exit_status"),
    [("400 x", USAGE), ("401 x", DENIED), ("403 x", DENIED), ("404 x", MISSING), ("409 x", REFUSED),
     ("429 x", REFUSED), ("507 x", REFUSED), ("500 x", FAULT), ("502 x", FAULT), ("503 x", RETRY)],
)  # fmt: skip
def test_a_refusal_becomes_an_exit_status(make: Make, status: str, exit_status: int) -> None:
    with Scripted([[refusal(status)]]) as server, pytest.raises(Answered) as caught:
        make(endpoint(server), "en").get("x")
    assert caught.value.exit_status == exit_status
    assert caught.value.message("en") == "no\\x1b[2J! (request r1)"
    assert caught.value.record("en")["request_id"] == "r1"


@pytest.mark.parametrize(
    "answer",
    [reply(b"<html>", "404 Not Found"), reply(b"[]", "500 x"), b"SSH-2.0-x\r\n", reply(b"nope")],
    ids=["html", "no object", "no http", "no json"],
)
def test_what_is_no_danlu_server_is_said(make: Make, answer: bytes) -> None:
    with Scripted([[answer]]) as server, pytest.raises(Failure) as caught:
        make(endpoint(server), "en").get("x")
    assert (caught.value.exit_status, caught.value.key) == (FAULT, "not-danlu")


def test_a_lost_read_is_tried_elsewhere_and_a_lost_write_is_not(make: Make) -> None:
    with Scripted([[b""]]) as dead, Scripted([[JSON]]) as good:
        asked: list[bool] = []

        def recover(connected: bool) -> Endpoint:  # noqa: FBT001 - as the seam has it
            asked.append(connected)
            return endpoint(good)

        assert make(endpoint(dead), "en", recover=recover).get("x") == {"a": 1}
        with pytest.raises(Failure) as caught:
            make(endpoint(dead), "en", recover=recover).post("x", body={})
        assert (caught.value.exit_status, caught.value.key) == (RETRY, "broken")
        safe = {TOKEN: "t"}
        client = make(endpoint(dead), "en", recover=recover)
        assert client.post("x", body={}, headers=safe) == {"a": 1}
        assert asked == [False, False]


def test_a_stranger_on_the_port_is_not_believed(make: Make) -> None:
    """(rule 1) 401 from another server that took a dead one's port."""
    with Scripted([[refusal("401 x")]]) as other, Scripted([[JSON]]) as ours:
        client = make(endpoint(other), "en", recover=lambda _connected: endpoint(ours))
        assert client.get("x") == {"a": 1}
    with Scripted([[refusal("404 x")]]) as right, pytest.raises(Answered):
        make(endpoint(right), "en", recover=lambda _connected: endpoint(right)).get("x")


@pytest.mark.parametrize(
    ("api", "authority", "path"),
    [
        ("http://127.0.0.1:8778", "127.0.0.1:8778", ""),
        ("https://lab.example", "lab.example:443", ""),
        ("http://lab", "lab:80", ""),
        ("https://[::1]:9/danlu/", "[::1]:9", "/danlu"),
        ("http://[::1]", "[::1]:80", ""),
    ],
)
def test_addresses(api: str, authority: str, path: str) -> None:
    assert connection(Endpoint(api, "", "", "")).authority == authority
    assert base_path(api) == path


@pytest.mark.parametrize("api", ["lab:8778", "ftp://x", "http://", "http://x:y", "http://x:１"])
def test_what_is_no_address(api: str) -> None:
    with pytest.raises(Failure, match="not a server's address"):
        connection(Endpoint(api, "", "", ""))


class TestNamedServers:
    @pytest.fixture
    def environ(self, tmp_path: Path) -> dict[str, str]:
        return {"XDG_CONFIG_HOME": str(tmp_path)}

    def write(self, environ: dict[str, str], content: object, mode: int = 0o600) -> None:
        path = Path(profiles_path(environ))
        path.parent.mkdir(exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        path.chmod(mode)

    def test_by_name_and_by_address(self, environ: dict[str, str]) -> None:
        lab = {"api": "https://lab:1", "access_key": "A", "secret_key": "S", "project_id": "p"}
        self.write(environ, {"lab": lab})
        for server in ("lab", "https://lab:1", "https://lab:1/"):
            found = named(server, environ)
            assert (found.api, found.access_key, found.secret_key, found.project_id) == (
                "https://lab:1", "A", "S", "p",
            )  # fmt: skip

    def test_keys_of_the_environment_win(self, environ: dict[str, str]) -> None:
        keys = {"DANLU_ACCESS_KEY": "A", "DANLU_SECRET_KEY": "S"}
        assert named("http://x:1", {**environ, **keys}).secret_key == "S"

    def test_without_keys_it_says_where_they_go(self, environ: dict[str, str]) -> None:
        with pytest.raises(Failure, match="DANLU_ACCESS_KEY") as caught:
            named("http://x:1", environ)
        assert caught.value.exit_status == DENIED

    def test_an_unknown_name_lists_the_known(self, environ: dict[str, str]) -> None:
        self.write(environ, {"lab": {"api": "http://x:1"}})
        with pytest.raises(Failure, match="lab") as caught:
            named("lap", environ)
        assert caught.value.exit_status == MISSING

    def test_a_file_that_others_may_read_is_refused(self, environ: dict[str, str]) -> None:
        self.write(environ, {}, 0o644)
        with pytest.raises(Failure, match="chmod 600"):
            named("lab", environ)

    @pytest.mark.parametrize("content", ["{", "[]", {"lab": 1}, {"lab": {}}, "\ufffe"])
    def test_a_broken_file_is_named(self, environ: dict[str, str], content: object) -> None:
        self.write(environ, content)
        with pytest.raises(Failure, match=r"servers\.json"):
            named("lab", environ)

    def test_the_project_is_asked_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("DANLU_ACCESS_KEY", "A")
        monkeypatch.setenv("DANLU_SECRET_KEY", "S")
        projects = reply(b'{"projects": [{"id": "p7", "name": "r"}]}')
        with Scripted([[projects], [JSON]]) as server:
            client = connect("/nowhere", server.api, "en", say=lambda *_a, **_k: None)
            client.get("x")
            client.close()
        assert server.requests[0].startswith(b"GET /v3/projects HTTP/1.1")
        assert server.requests[1].startswith(b"GET /danlu/v1/p7/x HTTP/1.1")

    def test_secrets_never_stand_in_argv(self) -> None:
        from danlu.faces.cli.table import COMMANDS, COMMON

        flags = [
            f for one in (*COMMON, *(o for row in COMMANDS for o in row.options)) for f in one.flags
        ]
        assert not [flag for flag in flags if "secret" in flag or "password" in flag]
        assert os.environ.get("DANLU_SECRET_KEY") is None
