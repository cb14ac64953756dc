"""danlu notebook, against a server whose instances are scripted."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from danlu.engines.memory_script import Script
from danlu.faces.cli.failure import FAILED, INTERRUPTED
from tests.faces.cli.house import HANG_S
from tests.faces.http.live import Live, live

READY = Script(duration_s=None, ready_s=0.01)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("notebooks")) as running:
        yield running


class Program:
    """The real program, told of the server by its environment."""

    def __init__(self, server: Live, home: Path) -> None:
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "DANLU_SERVER": f"http://{server.host}",
            "DANLU_ACCESS_KEY": server.key[0],
            "DANLU_SECRET_KEY": server.key[1],
        }
        self.err = ""

    def __call__(self, *words: str, status: int = 0, stdin: int = subprocess.DEVNULL) -> str:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "danlu", "notebook", *words],
            env=self._environment,
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        self.err = done.stderr
        assert done.returncode == status, done.stderr
        return done.stdout

    def typed(self, text: str, *words: str, status: int = 0) -> str:
        """The same at a terminal at which somebody types."""
        terminal, inside = pty.openpty()
        try:
            os.write(terminal, text.encode())
            return self(*words, status=status, stdin=inside)
        finally:
            os.close(terminal)
            os.close(inside)

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))


@pytest.fixture
def danlu(server: Live, tmp_path: Path) -> Program:
    return Program(server, tmp_path)


@pytest.fixture
def name(server: Live, request: pytest.FixtureRequest) -> str:
    made = f"nb-{abs(hash(request.node.name)) % 10**8}"
    server.script(made, READY)
    return made


def test_from_create_to_rm(danlu: Program, name: str) -> None:
    made = danlu.json("create", name, "--flavor", "danlu.cpu.1u", "--idle", "2h", "-e", "A=1=2")
    assert made["status"] == "RUNNING"
    assert made["danlu"]["idle"]["policy"] == "7200"
    assert made["lease"]["type"] == "IDLE"
    assert name in danlu("ls")
    assert danlu("ls", "-q").split() == [name]
    assert "no limit" in danlu("show", name)

    danlu("stop", name)
    assert f"{name} is stopped" in danlu.err
    danlu("update", name, "--flavor", "danlu.cpu.2u", "--home", "20")
    started = danlu.json("start", name)
    assert (started["flavor"], started["volume"]["capacity"]) == ("danlu.cpu.2u", 20)
    again = danlu.json("restart", name, "--flavor", "danlu.cpu.1u")
    assert (again["status"], again["flavor"]) == ("RUNNING", "danlu.cpu.1u")
    assert again["danlu"]["job_id"] != started["danlu"]["job_id"]
    assert "created by admin" in danlu("events", name)

    danlu("rm", name, "--yes")
    assert f"{name} is deleted" in danlu.err
    assert "danlu notebook create" in _err(danlu, "ls")


def _err(danlu: Program, *words: str) -> str:
    danlu(*words)
    return danlu.err


def test_leases_are_renewed_and_switched_off(danlu: Program, name: str) -> None:
    danlu("create", name, "--lease", "2h")
    assert "it ends in 1h59m" in danlu.err or "it ends in 2h00m" in danlu.err

    assert danlu.json("renew", name, "3h")["lease"]["duration"] == 3 * 3_600_000
    assert danlu.json("renew", name)["lease"]["duration"] == 3 * 3_600_000
    off = danlu.json("renew", name, "off", "--idle", "off")
    assert off["lease"]["enable"] is False
    assert "not by itself" in danlu("show", name)
    danlu("rm", name, "--yes")


def shown(danlu: Program, name: str, label: str) -> str:
    (line,) = (one for one in danlu("show", name).splitlines() if one.startswith(label))
    return line.removeprefix(label).strip()


def test_what_counts_of_the_idle_stop_is_shown(danlu: Program, name: str) -> None:
    """(case 88) What is unset, off and a duration are three things, and the first is told too."""
    danlu("create", name)
    assert shown(danlu, name, "idle stop after") == "1h00m (the server's notebook_idle_s)"
    danlu("update", name, "--idle", "2h")
    assert shown(danlu, name, "idle stop after") == "2h00m"
    danlu("update", name, "--idle", "off")
    assert shown(danlu, name, "idle stop after") == "off"
    danlu("renew", name, "3h", "--idle", "default")
    assert shown(danlu, name, "idle stop after") == "off (its lease ends it)"
    danlu("rm", name, "--yes")


def test_a_hold_is_shown_and_released(danlu: Program, name: str) -> None:
    danlu("create", name)

    held = danlu.json("hold", name, "2h", "--until-pid", "17", "--why", "过夜")["danlu"]["hold"]
    assert (held["pid"], held["why"]) == (17, "过夜")
    assert "until process 17 ends" in danlu("show", name)
    assert danlu.json("hold", name, "--release")["danlu"]["hold"] is None
    danlu("rm", name, "--yes")


def test_a_start_that_fails_is_told_and_exits_1(danlu: Program, server: Live, name: str) -> None:
    server.script(name, Script(exit_code=3))

    danlu("create", name, status=FAILED)

    assert "create-failed" in danlu.err
    assert "code 3" in danlu.err
    danlu("rm", name, "--yes")


def test_without_waiting_it_says_what_it_is_at(danlu: Program, name: str) -> None:
    assert danlu.json("create", name, "--detach")["status"] in ("CREATING", "RUNNING")
    danlu("rm", name, "--yes", "--detach")
    assert "being deleted" in danlu.err


def test_a_home_is_not_deleted_without_a_word(danlu: Program, name: str) -> None:
    """What cannot be had back is asked for by its name."""
    danlu("create", name)
    danlu("rm", name, status=2)
    assert "--yes" in danlu.err

    danlu.typed("yes\n", "rm", name, status=INTERRUPTED)
    assert name in danlu("ls", "-q")
    danlu.typed(f"{name}\n", "rm", name)
    assert name not in danlu("ls", "-q")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("create", "no spaces"), "name"),
        (("create", "ok", "--lease", "10m"), "duration"),
        (("create", "ok", "-e", "novalue"), "novalue"),
        (("create", "ok", "--idle", "never"), "never"),
        (("create", "ok", "--flavor", "none"), "none"),
    ],
)
def test_bad_words_are_named(danlu: Program, words: tuple[str, ...], said: str) -> None:
    danlu(*words, status=2)

    assert said in danlu.err


def test_what_is_not_there_is_missing(danlu: Program) -> None:
    for words in (("show", "nothing"), ("stop", "nothing"), ("rm", "nothing", "--yes")):
        danlu(*words, status=4)
        assert "nothing" in danlu.err
