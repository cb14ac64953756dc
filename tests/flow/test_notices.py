"""What running instances are told of their end, and what somebody in them gets done."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from danlu.flow.platform import Limits
from danlu.model.notebook import HOUR_MS, Lease
from danlu.ports.engine import NOTICE
from tests.flow.desk import Desk, running

HOUR = 3600


class Instance:
    """Keeps what it is told, and answers what a test says."""

    def __init__(self, desk: Desk) -> None:
        self.heard: list[dict[str, Any]] = []
        self.answers: list[bytes] = []
        desk.engine.listeners[NOTICE] = self.take
        self._ends: list[socket.socket] = []

    def take(self, theirs: socket.socket) -> None:
        """Answer before the question is asked: the socket keeps it."""
        theirs.sendall(self.answers.pop(0) if self.answers else b'{"extend": false}\n')
        theirs.settimeout(30)
        self._ends.append(theirs)

    def close(self) -> None:
        """Let go of what was not looked at."""
        self.said()

    def said(self) -> list[dict[str, Any]]:
        """What has been told since the last time."""
        found = []
        for end in self._ends:
            with end:
                found.append(json.loads(end.recv(65536)))
        self._ends.clear()
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def instance(desk: Desk) -> Iterator[Instance]:
    made = Instance(desk)
    yield made
    made.close()


def test_an_instance_is_warned_in_both_languages(desk: Desk, instance: Instance) -> None:
    running(desk, lease=Lease(HOUR_MS))
    desk.loop.notices.go_round()
    assert instance.said() == [{"warned": 0, "warning": [], "answer": []}]

    desk.idle_for(HOUR - 300)
    desk.loop.notices.go_round()

    (said,) = instance.said()
    english, chinese = said["warning"]
    assert said["warned"] == 10
    assert "will be stopped in 5 min: its lease of 60 min ends; type danlu-extend" in english
    assert "5 分钟后停止" in chinese
    assert "danlu-extend" in chinese


def test_who_asks_in_the_instance_gets_more_time_and_hears_of_it(
    desk: Desk, instance: Instance
) -> None:
    made = running(desk, lease=Lease(HOUR_MS))
    desk.idle_for(HOUR - 300)
    instance.answers = [b'{"extend": true}\n']

    desk.loop.notices.go_round()

    assert desk.notebook(made).lease.ends_at == desk.clock.now() + HOUR_MS
    assert desk.told(made)[-1] == "notebook-renewed"
    asked, answered = instance.said()
    assert asked["answer"] == []
    assert answered["answer"][0].startswith("Extended. This notebook will be stopped in 60 min")
    assert (answered["warned"], answered["warning"]) == (0, [])


def test_a_program_that_asks_without_end_fills_no_history(desk: Desk, instance: Instance) -> None:
    made = running(desk, lease=Lease(HOUR_MS))
    desk.idle_for(60)
    instance.answers = [b'{"extend": true}\n', b'{"extend": true}\n'] * 20

    for _ in range(10):
        desk.loop.notices.go_round()

    assert desk.told(made).count("notebook-renewed") == 1


@pytest.mark.parametrize(
    "answer", [b"\n", b"no json\n", b"[1]\n", b"[" * 4096, b'{"extend": "yes"}\n']
)
def test_what_an_instance_answers_does_no_harm(
    desk: Desk, instance: Instance, answer: bytes
) -> None:
    made = running(desk, lease=Lease(HOUR_MS))
    desk.idle_for(60)
    instance.answers = [answer]

    desk.loop.notices.go_round()

    assert "notebook-renewed" not in desk.told(made)


def test_the_servers_own_limit_is_told_without_a_way_out(tmp_path: Path) -> None:
    desk = Desk(tmp_path, Limits(notebook_max_run_s=HOUR))
    instance = Instance(desk)
    running(desk)
    desk.idle_for(HOUR - 100)

    desk.loop.notices.go_round()

    (said,) = instance.said()
    assert "the most that this server allows" in said["warning"][0]
    assert "danlu-extend" not in said["warning"][0]
