"""Start the user's program: fork and execve, with nothing of ours left in it.

No shell, no file and no argument of another program stands between the plan and the program:
argv and environment reach execve as they are.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from danlu.node import linux

NOT_FOUND = 127
NOT_RUNNABLE = 126
"""What shells exit with when a program is not found, or found and cannot be run."""

USER_UMASK = 0o022
"""What the program creates is readable as if its user had started it by hand: models and tables
are made to be read by others. The agent's own files stay private (077)."""

OOM_SCORE_MORE = 200
"""When memory runs out the kernel should rather take the program than the server."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run, where, with which variables."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str


@dataclass(frozen=True, slots=True)
class BootError:
    """Why the program did not start; `exit_code` as a shell would give it."""

    exit_code: int
    detail: str


@dataclass(slots=True)
class Pending:
    """A forked process that waits for `go` before it becomes the program."""

    pid: int
    _go: int
    _answer: int

    def go(self) -> BootError | None:
        """Let it become the program; what went wrong, or None once it is the program."""
        os.write(self._go, b"g")
        os.close(self._go)
        with os.fdopen(self._answer, "rb") as answer:
            said = answer.read(8192)
        if not said:
            return None
        number, _, detail = said.decode("utf-8", "replace").partition(" ")
        code = NOT_FOUND if int(number) == errno.ENOENT else NOT_RUNNABLE
        return BootError(code, detail)


def prepare(program: Program, output: int) -> Pending:
    """Fork the process that will be the program; its stdout and stderr are `output`."""
    go_read, go_write = os.pipe()
    answer_read, answer_write = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(go_write)
            _become(program, output, go_read, answer_write, parent)
        finally:
            os._exit(NOT_FOUND)
    os.close(go_read)
    os.close(answer_write)
    return Pending(pid, go_write, answer_read)


def _become(program: Program, output: int, go: int, answer: int, parent: int) -> None:
    where = "the process could not be set up"
    try:
        os.setsid()
        linux.die_with_parent()
        if os.getppid() != parent:
            return
        _reset_signals()
        os.umask(USER_UMASK)
        _offer_to_oom_killer()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        if os.read(go, 1) != b"g":
            return
        where = f"working directory '{program.cwd}'"
        os.chdir(program.cwd)
        where = f"'{program.argv[0]}'"
        os.execve(program.argv[0], list(program.argv), dict(program.env))  # noqa: S606 -- no shell
    except OSError as error:
        _report(answer, error.errno or 0, f"{where}: {error.strerror}")
    except (ValueError, UnicodeError) as error:
        _report(answer, errno.EINVAL, f"{where}: {error}")


def _report(answer: int, number: int, detail: str) -> None:
    os.write(answer, f"{number} {detail}".encode("utf-8", "replace")[:4096])


def _reset_signals() -> None:
    """Python ignores SIGPIPE and SIGXFSZ, the shim some more; what is ignored survives exec."""
    for number in signal.valid_signals():
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _offer_to_oom_killer() -> None:
    with suppress(OSError, ValueError):
        file = Path("/proc/self/oom_score_adj")
        file.write_text(str(min(1000, int(file.read_text("ascii")) + OOM_SCORE_MORE)), "ascii")
