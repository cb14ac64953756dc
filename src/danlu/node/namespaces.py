"""A task's own view of processes and mounts, made by root or through a user namespace.

The processes of a task are in a PID namespace (pid_namespaces(7)). Its first process is ours and
does nothing but wait for orphans; when it ends, for whatever reason, the kernel kills everything in
the namespace, and it ends with the shim. The program itself is the shim's child and not the first
process's, so the shim has its exit status from the kernel, and signals act on it as on any program.
"""

from __future__ import annotations

import functools
import os
import select
import signal
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from danlu.node import identity, linux
from danlu.node.signals import SignalPipe
from danlu.ports.task_directory import ProcessIdentity

ROOT = "root"
USER = "user"


@dataclass(frozen=True, slots=True)
class Offer:
    """`kind`: who may make namespaces here: ROOT, USER (in a user namespace), or nobody, and then
    `problem` says what the kernel said.
    """

    kind: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class First:
    """The first process of a namespace. It ends when `hold` is closed and nobody else is left."""

    identity: ProcessIdentity
    hold: int


@functools.cache
def offered() -> Offer:
    """What this machine allows, found by doing it once in a process of its own."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            linux.close_all_but({0, 1, 2, tell})
            os.write(tell, _try().encode())
            code = 0
        finally:
            os._exit(code)
    os.close(tell)
    with os.fdopen(told, "rb") as answer:
        said = answer.read(1024).decode("utf-8", "replace")
    os.waitpid(pid, 0)
    kind, _, problem = said.partition(" ")
    return Offer(kind if kind in (ROOT, USER) else "", problem)


def _try() -> str:
    problem = ""
    for kind in (ROOT, USER):
        try:
            _try_one(kind)
        except OSError as error:
            problem = error.strerror or str(error)
        else:
            return kind
    return f"- {problem}"


def _try_one(kind: str) -> None:
    """Do what a task's start does, in children: it cannot be undone."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            first = begin(kind)
            child = os.fork()
            if child == 0:
                _try_mounts(tell)
            os.waitpid(child, 0)
            os.close(first.hold)
        except OSError as error:
            os.write(tell, f"{error.errno}".encode())
        finally:
            os._exit(0)
    os.close(tell)
    with os.fdopen(told, "rb") as answer:
        said = answer.read(16)
    os.waitpid(pid, 0)
    if said != b"ok":
        number = int(said) if said.isdigit() else 0
        raise OSError(number, os.strerror(number) if number else "it ended without an answer")


def _try_mounts(tell: int) -> None:
    try:
        linux.unshare(linux.NEW_MOUNTS)
        linux.mount(None, "/", None, linux.MS_REC | linux.MS_SLAVE)
        place = tempfile.gettempdir()
        linux.mount("danlu", place, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755")
        proc = f"{place}/proc"
        Path(proc).mkdir()
        linux.mount("proc", proc, "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
        os.write(tell, b"ok")
    except OSError as error:
        os.write(tell, f"{error.errno}".encode())
    finally:
        os._exit(0)


def begin(kind: str) -> First:
    """Have children of this process from now on live in a namespace; its first process. OSError
    where that cannot be done. This process itself stays where it is.
    """
    if kind == USER:
        user, group = os.getuid(), os.getgid()
        linux.unshare(linux.NEW_USER | linux.NEW_PIDS)
        # Everybody is who he was, and nobody else is anybody.
        Path("/proc/self/setgroups").write_text("deny", "ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", "ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", "ascii")
    else:
        linux.unshare(linux.NEW_PIDS)
    waits, hold = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _be_first(waits)
        finally:
            os._exit(0)
    os.close(waits)
    found = identity.of(pid)
    if found is None:
        raise ProcessLookupError("the first process has disappeared")
    return First(found, hold)


def _be_first(hold: int) -> None:
    """Wait for whoever lost its parent, until the holder lets go and nobody is left."""
    linux.die_with_parent()
    if os.getppid() != 0:  # the parent is outside; any other has taken its place
        return
    linux.close_all_but({0, 1, 2, hold})
    os.setsid()
    linux.name_process("danlu-init")
    signals = SignalPipe((signal.SIGCHLD,), ())
    poll = select.poll()
    poll.register(hold, select.POLLIN)
    poll.register(signals.descriptor, select.POLLIN)
    held = True
    while _reap() or held:
        ready = {descriptor for descriptor, _ in poll.poll()}
        signals.taken()
        if hold in ready:
            poll.unregister(hold)
            held = False


def _reap() -> bool:
    """Take notice of children that have ended; whether any is left."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return True
    return False
