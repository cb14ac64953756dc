"""A command beside a program of this machine: in the same control group, namespaces and view of
files, with the same environment and directory, and with no more rights.

What the agent started the program with is on record (`program.json`), so the command is started
with the same; only the namespaces are entered instead of made. The process that enters them shares
nothing with us but its terminal or pipes, and nobody in them can look into it: it is not dumpable.
"""

from __future__ import annotations

import errno
import fcntl
import os
import pty
import select
import signal
import struct
import termios
from contextlib import suppress
from dataclasses import dataclass, field

from danlu.model import execute as words
from danlu.model.execute import Command
from danlu.node import identity, linux, tree
from danlu.node.confine import confine
from danlu.node.program import (
    NOT_FOUND,
    NOT_RUNNABLE,
    USER_UMASK,
    Program,
    enter_groups,
    offer_to_oom_killer,
    reset_signals,
)
from danlu.ports.task_directory import ProcessIdentity

KINDS = (("user", linux.NEW_USER), ("pid", linux.NEW_PIDS), ("mnt", linux.NEW_MOUNTS))
HANG_UP_S = 2.0
"""After SIGHUP what still runs has this long."""
KILL_LIMIT_S = 5.0


class Gone(Exception):
    """The program beside which the command was to run has ended."""


@dataclass(slots=True)
class Beside:
    """A command that runs (`relay.Ran`)."""

    job: int
    """A pidfd of the task's program."""
    pid: int
    process: int
    """A pidfd of the command."""
    channels: dict[int, int]
    input: int
    terminal: bool
    _code: int | None = field(default=None, init=False)

    @property
    def quiet_s(self) -> float:
        return 0.1  # it is in our pipes already

    def outputs(self) -> dict[int, int]:
        return dict(self.channels)

    def unpack(self, descriptor: int, data: bytes) -> list[bytes]:
        return [words.message(self.channels[descriptor], data)]

    def closed(self, descriptor: int) -> None:
        if descriptor == self.input:
            self.input = -1  # the terminal, which nobody has open any more
        self.channels.pop(descriptor)
        os.close(descriptor)

    def stdin(self) -> int:
        return self.input

    def end_stdin(self) -> None:
        if self.input < 0:
            return
        if self.terminal:
            with suppress(OSError):
                os.write(self.input, b"\4")
        else:
            os.close(self.input)
        self.input = -1

    def resize(self, columns: int, rows: int) -> None:
        if self.terminal:
            set_size(self._screen(), columns, rows)

    def signal(self, name: str) -> None:
        number = signal.Signals[f"SIG{name}"]
        with suppress(OSError):
            group = os.tcgetpgrp(self._screen()) if self.terminal else 0
            if self._code is None:
                # It is our child and not waited for: its pid is its own, and so is its group.
                os.killpg(group or self.pid, number)

    def _screen(self) -> int:
        return next(iter(self.channels), -1)

    def exit_code(self) -> int | None:
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                self._code = code if code >= 0 else 128 - code
        return self._code

    def job_ended(self) -> bool:
        poll = select.poll()
        poll.register(self.job, select.POLLIN)
        return bool(poll.poll(0))

    def watched(self) -> list[int]:
        return [self.job, self.process]

    def end(self) -> None:
        if self.exit_code() is None:
            self.signal("HUP")
            poll = select.poll()
            poll.register(self.process, select.POLLIN)
            poll.poll(HANG_UP_S * 1000)
        roots = {os.getpid()}
        tree.kill_all(lambda: tree.descendants(roots), KILL_LIMIT_S, between=self.exit_code)


def start(program: Program, beside: ProcessIdentity, command: Command) -> Beside:
    """Run a command beside the program that has this identity. Gone if it has ended; OSError where
    its namespaces cannot be entered.
    """
    job = identity.open_process(beside)
    if job is None:
        raise Gone
    linux.adopt_orphans()
    entered = _namespaces(beside)
    if command.terminal:
        near, far = pty.openpty()
        set_size(near, command.columns, command.rows)
        streams, channels, stdin = (far, far, far), {near: words.STDOUT}, near
    else:
        far_in, stdin = os.pipe()
        out, far_out = os.pipe()
        err, far_err = os.pipe()
        streams = (far_in, far_out, far_err)
        channels = {out: words.STDOUT, err: words.STDERR}
    inside = [namespace for kind, namespace in entered if kind == linux.NEW_MOUNTS]
    for kind, namespace in entered:
        if kind != linux.NEW_MOUNTS:
            linux.set_namespace(namespace, kind)
    offer_to_oom_killer()
    linux.hide_memory()
    pid = os.fork()
    if pid == 0:
        try:
            _become(program, command, streams, inside)
        finally:
            os._exit(NOT_RUNNABLE)
    for descriptor in (*set(streams), *(namespace for _, namespace in entered)):
        os.close(descriptor)
    ran = Beside(job, pid, os.pidfd_open(pid), channels, stdin, command.terminal)
    if not command.stdin:
        ran.end_stdin()
    return ran


def _namespaces(beside: ProcessIdentity) -> list[tuple[int, int]]:
    """Descriptors of those namespaces of a process that are not ours, with their kinds."""
    found = []
    for name, kind in KINDS:
        path = f"/proc/{beside['pid']}/ns/{name}"
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError as error:
            raise Gone from error
        if os.path.samestat(os.fstat(descriptor), os.stat(f"/proc/self/ns/{name}")):  # noqa: PTH116 -- no path, a handle of the kernel
            os.close(descriptor)
        else:
            found.append((kind, descriptor))
    # Opened by pid: they are the ones that were meant if it is still there now.
    if not identity.alive(beside):
        raise Gone
    return found


def _become(
    program: Program, command: Command, streams: tuple[int, int, int], inside: list[int]
) -> None:
    where = "the process could not be set up"
    try:
        os.setsid()
        linux.die_with_parent()
        if command.terminal:
            fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        reset_signals()
        os.umask(USER_UMASK)
        where = "control group"
        enter_groups(program.entrances)
        where = "private view of files"
        for namespace in inside:
            linux.set_namespace(namespace, linux.NEW_MOUNTS)
        linux.close_all_but({0, 1, 2})
        where = f"working directory '{program.cwd}'"
        os.chdir(program.cwd)
        where = "isolation"
        if program.within is not None:
            confine(program.within, program.landlock)
        where = command.argv[0]
        os.execvpe(command.argv[0], command.argv, _environment(program, command))  # noqa: S606 -- no shell is the point
    except OSError as error:
        _fail(where, error.strerror or str(error), missing=error.errno == errno.ENOENT)
    except (ValueError, UnicodeError) as error:
        _fail(where, str(error), missing=False)


def _environment(program: Program, command: Command) -> dict[str, str]:
    variables = dict(program.env)
    if command.terminal:
        variables["TERM"] = command.term or "xterm-256color"
    return variables


def _fail(where: str, detail: str, *, missing: bool) -> None:
    os.write(2, f"danlu: {where}: {detail}\n".encode("utf-8", "replace")[:4096])
    os._exit(NOT_FOUND if missing else NOT_RUNNABLE)


def set_size(terminal: int, columns: int, rows: int) -> None:
    """Tell a terminal how large it is; who uses it is told by SIGWINCH."""
    with suppress(OSError):
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("=4H", rows, columns, 0, 0))
