"""A command in a task's container, as the runtime's API runs one (`docker exec`)."""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGHUP, Signals
from typing import Any

from danlu.model import execute as words
from danlu.model.execute import Command
from danlu.node import identity, tree
from danlu.node.container.api import Api, RuntimeAway, RuntimeRefused, part
from danlu.node.execute.beside import HANG_UP_S, KILL_LIMIT_S, Gone
from danlu.node.identity import Process
from danlu.ports.task_directory import ContainerPlan, ProcessIdentity

HEAD = struct.Struct("!BxxxI")
"""In front of each piece of a stream: whose it is, and how long."""
NO_DETACHING = "ctrl-^,ctrl-_"
"""The runtime lets go of a command at two keys, by default such as are typed in shells."""
START_S = 10.0
ASK_EVERY_S = 0.05
NOT_FOUND, NOT_RUNNABLE = 127, 126


class NotStarted(Exception):
    """The runtime could not start the command; `code` as a shell gives it."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code = code


@dataclass(slots=True)
class Inside:
    """A command that runs (`relay.Ran`). `ended` is the file that is there when the task's program
    has ended.
    """

    api: Api
    id: str
    stream: socket.socket
    job: int
    ended: Path
    terminal: bool
    process: ProcessIdentity | None = None
    watch: int = -1
    """A pidfd of the command."""
    _input: bool = field(default=True, init=False)
    _rest: bytes = field(default=b"", init=False)
    _over: bool = field(default=False, init=False)
    _code: int | None = field(default=None, init=False)
    _asked_at: float = field(default=0.0, init=False)
    _until: float = field(default=0.0, init=False)

    @property
    def quiet_s(self) -> float:
        return 4.0  # the runtime and its monitor are on the way, and the machine may be busy

    def outputs(self) -> dict[int, int]:
        return {self.stream.fileno(): words.STDOUT}

    def unpack(self, descriptor: int, data: bytes) -> list[bytes]:
        del descriptor
        if self.terminal:
            return [words.message(words.STDOUT, data)]
        found = []
        self._rest += data
        while len(self._rest) >= HEAD.size:
            channel, length = HEAD.unpack_from(self._rest)
            end = HEAD.size + length
            if len(self._rest) < end:
                break
            # A runtime sends pieces of its own choosing.
            for at in range(HEAD.size, end, words.PIECE):
                piece = self._rest[at : min(at + words.PIECE, end)]
                found.append(words.message(words.STDERR if channel == 2 else words.STDOUT, piece))
            self._rest = self._rest[end:]
        return found

    def closed(self, descriptor: int) -> None:
        del descriptor
        self._over = True
        self._input = False

    def stdin(self) -> int:
        return self.stream.fileno() if self._input else -1

    def end_stdin(self) -> None:
        if not self._input:
            return
        self._input = False
        with suppress(OSError):
            if self.terminal:
                self.stream.send(b"\4")
            else:
                self.stream.shutdown(socket.SHUT_WR)

    def resize(self, columns: int, rows: int) -> None:
        if self.terminal:
            with suppress(RuntimeAway, RuntimeRefused):
                self.api.call("POST", f"{self._path}/resize", {"w": columns, "h": rows})

    def signal(self, name: str) -> None:
        self._signal(Signals[f"SIG{name}"])

    def _signal(self, number: Signals) -> None:
        for process in self._alive():
            group = process.group
            if process.pid == group:
                for one in tree.processes():
                    if one.group == group:
                        identity.send_to(one, number)
            else:
                identity.send_to(process, number)

    def _alive(self) -> list[Process]:
        if self.process is None or not identity.alive(self.process):
            return []
        found = identity.read(self.process["pid"])
        return [] if found is None else [found]

    def exit_code(self) -> int | None:
        if self._code is not None or not (self._over or self._gone()):
            return self._code
        now = time.monotonic()
        self._until = self._until or now + START_S
        if now - self._asked_at < ASK_EVERY_S:
            return None
        self._asked_at = now
        try:
            found = self._look()
        except (RuntimeAway, RuntimeRefused):
            found = {}
        if found and not found.get("Running"):
            self._code = int(found.get("ExitCode") or 0)
        elif now > self._until:
            self._code = words.NO_EXIT_CODE
        return self._code

    def _gone(self) -> bool:
        return self.process is not None and not identity.alive(self.process)

    def job_ended(self) -> bool:
        poll = select.poll()
        poll.register(self.job, select.POLLIN)
        return bool(poll.poll(0)) or self.ended.exists()

    def watched(self) -> list[int]:
        return [self.job] if self._gone() or self.watch < 0 else [self.job, self.watch]

    def end(self) -> None:
        if self._alive():
            self._signal(SIGHUP)
            if self.watch >= 0:
                poll = select.poll()
                poll.register(self.watch, select.POLLIN)
                poll.poll(HANG_UP_S * 1000)
        tree.kill_all(self._all, KILL_LIMIT_S)
        self.stream.close()

    def _all(self) -> list[Process]:
        head = self._alive()
        return [*head, *tree.descendants({one.pid for one in head})] if head else []

    @property
    def _path(self) -> str:
        return f"/exec/{part(self.id)}"

    def _look(self) -> dict[str, Any]:
        found = self.api.call("GET", f"{self._path}/json")
        return found if isinstance(found, dict) else {}

    def find_process(self) -> None:
        """Learn which process of this machine it is. NotStarted where there never was one."""
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            found = self._look()
            pid = int(found.get("Pid") or 0)
            self.process = identity.of(pid) if pid else None
            if self.process is not None:
                with suppress(OSError):
                    self.watch = os.pidfd_open(pid)
                return
            if not found.get("Running") and found.get("ExitCode") is not None:
                return
            time.sleep(ASK_EVERY_S / 5)


def start(
    plan: ContainerPlan, beside: ProcessIdentity, command: Command, cwd: str, ended: Path
) -> Inside:
    """Run a command in the container whose first process has this identity. Gone if it has ended;
    NotStarted, RuntimeAway.
    """
    job = identity.open_process(beside)
    if job is None:
        raise Gone
    api = Api(plan.socket)
    body: dict[str, Any] = {
        "AttachStdin": True,
        "AttachStdout": True,
        "AttachStderr": True,
        "Tty": command.terminal,
        "Cmd": list(command.argv),
        "WorkingDir": cwd,
        "DetachKeys": NO_DETACHING,
    }
    if command.terminal:
        body["Env"] = [f"TERM={command.term or 'xterm-256color'}"]
    try:
        made = api.call("POST", f"/containers/{part(plan.name)}/exec", None, body)
        name = str((made or {}).get("Id", ""))
        told: dict[str, Any] = {"Detach": False, "Tty": command.terminal}
        if command.terminal:
            told |= {"h": command.rows, "w": command.columns}
        stream = api.hijack(f"/exec/{part(name)}/start", told)
    except RuntimeRefused as refused:
        said = str(refused)
        missing = "not found" in said or "no such file" in said
        raise NotStarted(NOT_FOUND if missing else NOT_RUNNABLE, said) from refused
    stream.settimeout(None)
    ran = Inside(api, name, stream, job, ended, command.terminal)
    ran.find_process()
    ran.resize(command.columns, command.rows)
    if not command.stdin:
        ran.end_stdin()
    return ran
