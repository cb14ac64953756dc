"""Start the user's program: fork and execve, with nothing of ours left in it.

No shell, no file and no argument of another program stands between the plan and the program:
argv and environment reach execve as they are. The fork is made beforehand; the process waits
for its `Program` on a pipe, so that a task does not wait for the fork.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from danlu.node import identity, linux, view
from danlu.node.confine import confine
from danlu.node.reach import Reach
from danlu.node.view import View
from danlu.ports.task_directory import ProcessIdentity

NOT_FOUND = 127
NOT_RUNNABLE = 126
"""What shells exit with when a program is not found, or found and cannot be run."""

USER_UMASK = 0o022
"""What the program creates is readable as if its user had started it by hand: models and tables
are made to be read by others. The agent's own files stay private (077)."""

OOM_SCORE_MORE = 200
"""When memory runs out the kernel should rather take the program than the server."""

_LENGTH = struct.Struct("!Q")


@dataclass(frozen=True, slots=True)
class Program:
    """What to run, where, with which variables."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    entrances: Sequence[str] = ()
    """The files by which it enters its control group."""
    within: Reach | None = None
    """The files that it keeps; None = all."""
    landlock: int = 0
    """The version of Landlock that keeps it to them; 0 = none."""
    view: View | None = None
    """What it sees as the machine's files; None = as they are."""

    @classmethod
    def read(cls, data: dict[str, Any]) -> Program:
        """What `asdict` made, after its way through JSON."""
        within, view = data["within"], data["view"]
        return cls(
            **{
                **data,
                "argv": tuple(data["argv"]),
                "within": None if within is None else Reach(**within),
                "view": None if view is None else View(**view),
            }
        )

    def without(self, known: Mapping[str, str]) -> Program:
        """The program without the variables that are on record elsewhere."""
        own = {name: value for name, value in self.env.items() if known.get(name) != value}
        return replace(self, env=own)

    def given_back(self, known: Mapping[str, str]) -> Program:
        """The program as it was before `without`."""
        return replace(self, env={**known, **self.env})


@dataclass(frozen=True, slots=True)
class BootError:
    """Why the program did not start; `exit_code` as a shell would give it."""

    exit_code: int
    detail: str


@dataclass(frozen=True, slots=True)
class Pending:
    """A forked process that waits to be told which program it is."""

    pid: int
    identity: ProcessIdentity
    _order: int
    _answer: int

    def go(self, program: Program) -> BootError | None:
        """Let it become the program; what went wrong, or None once it is the program."""
        order = json.dumps(asdict(program)).encode()
        with suppress(BrokenPipeError), os.fdopen(self._order, "wb") as stream:
            stream.write(_LENGTH.pack(len(order)) + order)
        with os.fdopen(self._answer, "rb") as answer:
            said = answer.read(8192)
        if not said:
            return None
        number, _, detail = said.decode("utf-8", "replace").partition(" ")
        code = NOT_FOUND if int(number) == errno.ENOENT else NOT_RUNNABLE
        return BootError(code, detail)


def prepare(output: int, *, apart: bool = False) -> Pending:
    """Fork the process that will be the program; its stdout and stderr are `output`. `apart` =
    children of this process live in a PID namespace of their own.
    """
    order_read, order_write = os.pipe()
    answer_read, answer_write = os.pipe()
    parent = 0 if apart else os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            linux.close_all_but({0, 1, 2, output, order_read, answer_write})
            _become(output, order_read, answer_write, parent)
        finally:
            os._exit(NOT_FOUND)
    os.close(order_read)
    os.close(answer_write)
    found = identity.of(pid)
    if found is None:
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
    return Pending(pid, found, order_write, answer_read)


def _become(output: int, order: int, answer: int, parent: int) -> None:
    where = "the process could not be set up"
    try:
        os.setsid()
        linux.die_with_parent()
        if os.getppid() != parent:
            return
        reset_signals()
        os.umask(USER_UMASK)
        offer_to_oom_killer()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        with os.fdopen(order, "rb") as stream:
            head = stream.read(_LENGTH.size)
            if len(head) < _LENGTH.size:
                return
            program = Program.read(json.loads(stream.read(_LENGTH.unpack(head)[0])))
        where = "control group"
        enter_groups(program.entrances)
        where = "private view of files"
        if program.view is not None:
            view.enter(program.view, program.within or Reach())
        where = f"working directory '{program.cwd}'"
        os.chdir(program.cwd)
        where = "isolation"
        if program.within is not None:
            confine(program.within, program.landlock)
        where = f"'{program.argv[0]}'"
        os.execve(program.argv[0], program.argv, program.env)  # noqa: S606 -- no shell is the point
    except OSError as error:
        _report(answer, error.errno or 0, f"{where}: {error.strerror}")
    except (ValueError, UnicodeError) as error:
        _report(answer, errno.EINVAL, f"{where}: {error}")


def enter_groups(entrances: Sequence[str]) -> None:
    """Enter control groups by these files. OSError if one is not there."""
    for entrance in entrances:
        group = os.open(entrance, os.O_WRONLY)
        os.write(group, b"0")
        os.close(group)


def _report(answer: int, number: int, detail: str) -> None:
    os.write(answer, f"{number} {detail}".encode("utf-8", "replace")[:4096])


def reset_signals() -> None:
    """Python ignores SIGPIPE and SIGXFSZ, the shim some more; what is ignored survives exec."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        with suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def offer_to_oom_killer() -> None:
    """Be the kernel's choice before the server is."""
    with suppress(OSError, ValueError):
        file = Path("/proc/self/oom_score_adj")
        file.write_text(str(min(1000, int(file.read_text("ascii")) + OOM_SCORE_MORE)), "ascii")
