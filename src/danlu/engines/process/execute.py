"""Commands beside tasks: one process of ours each, which the server talks to over a socket."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import danlu.node
from danlu.model import execute as words
from danlu.model.errors import EngineError, Refused
from danlu.model.execute import Command

ANSWER_S = 30.0
END_S = 10.0


@dataclass(slots=True)
class Beside:
    """One command (`ports.engine.Execution`)."""

    wire: socket.socket
    _process: subprocess.Popen[bytes]

    def close(self) -> None:
        """End it if it runs."""
        self.wire.close()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def begin(
    directory: Path, command: Command, environment: Mapping[str, str], errors: Path
) -> Beside:
    """Run a command beside the program of the task in `directory`. Refused where that has ended."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    program = str(Path(danlu.node.__file__).with_name("__main__.py"))
    try:
        with theirs, errors.open("ab") as said:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", program, "--execute", str(directory)],
                stdin=theirs.fileno(),
                stdout=said,
                stderr=said,
                env=dict(environment),
                cwd="/",
                start_new_session=True,
            )
    except OSError as error:
        ours.close()
        raise EngineError("engine-failed", detail=str(error)) from error
    begun = Beside(ours, process)
    try:
        ours.settimeout(ANSWER_S)
        ours.send(command.to_json())
        answer = ours.recv(words.MESSAGE_BYTES)
        told = json.loads(answer) if answer else {"refused": "failed"}
    except (OSError, ValueError) as error:
        begun.close()
        raise EngineError("engine-failed", detail=str(error)) from error
    if told:
        with suppress(OSError):
            begun.close()
        if told.get("refused") == "ended":
            raise Refused("exec-not-running", task=f"worker-{directory.name.rpartition('-')[2]}")
        detail = str(told.get("detail") or "no command could be started")
        raise EngineError("engine-failed", detail=detail)
    return begun
