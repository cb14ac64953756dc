"""One command's process: told what to run by the server, it runs it beside a task and relays."""

from __future__ import annotations

import json
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import cast

from danlu.model import execute as words
from danlu.model.execute import Command
from danlu.model.script import world
from danlu.node import linux
from danlu.node.container.api import RuntimeAway, RuntimeRefused
from danlu.node.containment import literal
from danlu.node.directory import PLAN_LIMIT_BYTES, TaskDirectory, read_json
from danlu.node.execute import beside, inside
from danlu.node.execute.beside import Gone
from danlu.node.execute.inside import NotStarted
from danlu.node.execute.relay import Ran, Relay, hang_up
from danlu.node.program import Program
from danlu.ports import task_directory as files
from danlu.ports.task_directory import AgentPlan, TaskFile

RECORD_S = 5.0
"""The agent puts on record what it has started while that starts."""


def serve(path: str) -> int:
    """Run the command that stdin, a socket of messages, asks for beside the task in `path`."""
    linux.name_process("danlu-exec")
    with socket.socket(fileno=0) as wire:
        order = wire.recv(words.MESSAGE_BYTES)
        if not order:
            return 0
        try:
            ran = _start(TaskDirectory(path), Command.from_json(order))
        except Gone:
            _answer(wire, refused="ended")
        except NotStarted as problem:
            _answer(wire)
            said = f"danlu: {problem}\n".encode("utf-8", "replace")
            wire.send(words.message(words.STDERR, said[: words.PIECE]))
            wire.send(words.ended(problem.code))
            hang_up(wire)
        except (OSError, RuntimeAway, RuntimeRefused) as problem:
            _answer(wire, refused="failed", detail=str(problem))
        else:
            _answer(wire)
            Relay(wire, ran).run()
    return 0


def _answer(wire: socket.socket, **told: str) -> None:
    with suppress(OSError):
        wire.send(json.dumps(told).encode("utf-8", "replace"))


def _start(directory: TaskDirectory, command: Command) -> Ran:
    plan = directory.plan()
    task = cast("TaskFile | None", directory.read(files.TASK))
    if plan is None or task is None or directory.exists(files.EXIT):
        raise Gone
    if plan.container is not None:
        cwd = world(plan.plan, literal(plan.layout)).cwd
        ended = Path(directory.file(files.EXIT))
        return inside.start(plan.container, task["program"], command, cwd, ended)
    return beside.start(_program(directory, plan), task["program"], command)


def _program(directory: TaskDirectory, plan: AgentPlan) -> Program:
    until = time.monotonic() + RECORD_S
    while time.monotonic() < until:
        data = read_json(directory.file(files.PROGRAM), PLAN_LIMIT_BYTES)
        if data is not None and data.get("token") == plan.plan.token:
            return Program.read(data["program"]).given_back(plan.plan.storage_variables)
        time.sleep(0.02)
    raise Gone
