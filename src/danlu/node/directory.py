"""The task directory as files: read, published by rename, appended to, locked.

Both sides use it, the agent beside the task and the engine in the server. What is read is taken
for what it is, bytes that a crash or the task itself may have spoilt: anything that is not a
JSON object of sane size reads as absent.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from danlu.model.codec import from_json
from danlu.model.event import Level
from danlu.node import wake
from danlu.node.identity import STARVED
from danlu.ports import task_directory as files
from danlu.ports.task_directory import AgentPlan

LIMIT_BYTES = 64 << 10
PLAN_LIMIT_BYTES = 32 << 20
RESERVED_BYTES = 4096
FULL_DISK_WAIT_S = 60.0
MOST_NOTES = 1000
"""Notes that one agent writes: a task with a million odd files must not flood its history."""


def now_ms() -> int:
    """UTC milliseconds."""
    return time.time_ns() // 1_000_000


def read_json(path: str | Path, limit: int = LIMIT_BYTES) -> dict[str, Any] | None:
    """The JSON object in a file, or None if there is no such file or it holds something else.
    OSError if it cannot be looked at for want of descriptors.
    """
    try:
        descriptor = open_plain(path)
    except OSError as error:
        if error.errno in STARVED:
            raise
        return None
    try:
        return json_in(descriptor, limit)
    finally:
        os.close(descriptor)


def json_in(descriptor: int, limit: int = LIMIT_BYTES) -> dict[str, Any] | None:
    """The JSON object in an open file, or None if it holds something else."""
    try:
        size = os.fstat(descriptor).st_size
        value = json.loads(os.read(descriptor, size)) if size <= limit else None
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def open_plain(path: str | Path) -> int:
    """Open a plain file for reading. OSError for anything else: a task may put a pipe or a link
    under any name here, and nobody is to wait at the one or follow the other.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(path, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    return descriptor


def open_end(path: str | Path) -> int:
    """Open a file for writing at its end, and make it if it is not there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    return os.open(path, flags, 0o600)


def publish_json(
    directory: str | Path, name: str, value: Mapping[str, Any], *, durable: bool = True
) -> None:
    """Make a whole file appear at once, and (if `durable`) stay after a power cut."""
    temporary = f"{directory}/{name}.tmp"
    # Not truncated before it is written: it may hold the space that `reserve` set aside.
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    descriptor = os.open(temporary, flags, 0o600)
    try:
        data = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        os.ftruncate(descriptor, _write(descriptor, data))
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(temporary, f"{directory}/{name}")  # noqa: PTH104 -- paths as text: a hot path
    if durable:
        sync_directory(os.path.dirname(f"{directory}/{name}"))  # noqa: PTH120 -- as above


def _write(descriptor: int, data: bytes) -> int:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    return len(data)


def sync_directory(directory: str | Path) -> None:
    """Put the names in a directory on disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class TaskDirectory:
    """One task's directory, as agent and shim use it."""

    def __init__(
        self,
        path: str,
        token: str = "",
        limit_s: int = 0,
        bell: str = "",
        log_limit_bytes: int = 0,
    ) -> None:
        self.path = path
        self.token = token
        """The attempt's token, which every record carries."""
        self.limit_s = limit_s
        """The task's time limit, 0 where it has none."""
        self.bell = bell
        """The socket on which the server is told of changes."""
        self.log_limit_bytes = log_limit_bytes
        """What is kept of the task's log, 0 = all of it."""
        self._notes = 0

    def file(self, name: str) -> str:
        """The path of one of the protocol's files."""
        return f"{self.path}/{name}"

    def exists(self, name: str) -> bool:
        """Whether that file is there."""
        return os.path.lexists(self.file(name))

    def plan(self) -> AgentPlan | None:
        """The plan, or None if there is none that can be read."""
        data = read_json(self.file(files.PLAN), PLAN_LIMIT_BYTES)
        if data is None:
            return None
        try:
            plan = from_json(AgentPlan, data)
        except (TypeError, ValueError, KeyError, AttributeError):
            return None
        self.token = plan.plan.token
        self.limit_s = plan.plan.time_limit_s or 0
        self.bell = plan.wake
        self.log_limit_bytes = plan.plan.log_limit_bytes
        return plan

    def read(self, name: str) -> dict[str, Any] | None:
        """A whole file, or None."""
        return read_json(self.file(name))

    def publish(self, name: str, value: Mapping[str, Any]) -> None:
        """Publish a whole file and tell the server."""
        publish_json(self.path, name, value)
        self.tell()

    def publish_fleeting(self, name: str, value: Mapping[str, Any]) -> None:
        """Publish what a power cut makes worthless; nobody is told, and no disk waited for."""
        publish_json(self.path, name, value, durable=False)

    def publish_surely(self, name: str, value: Mapping[str, Any]) -> None:
        """Publish what must not be lost: a full disk is waited for, up to a minute."""
        until = time.monotonic() + FULL_DISK_WAIT_S
        while True:
            try:
                self.publish(name, value)
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(1.0)
            else:
                return

    def reserve(self, *names: str) -> None:
        """Set space aside for files that must be written even when the disk is full."""
        for name in names:
            flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            with suppress(OSError):
                descriptor = os.open(self.file(f"{name}.tmp"), flags, 0o600)
                try:
                    os.posix_fallocate(descriptor, 0, RESERVED_BYTES)
                finally:
                    os.close(descriptor)

    def append(self, name: str, value: Mapping[str, Any]) -> None:
        """Add a line to a growing file. Lost if the disk is full: no line is worth the task."""
        line = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with suppress(OSError):
            descriptor = open_end(self.file(name))
            try:
                os.write(descriptor, line)
            finally:
                os.close(descriptor)

    def note(self, key: str, level: Level = Level.INFO, /, **params: str | int) -> None:
        """Write down for the job's history that something happened, and tell the server."""
        if self.remark(key, level, **params):
            self.tell()

    def remark(self, key: str, level: Level = Level.INFO, /, **params: str | int) -> bool:
        """Write down what can wait until the server looks anyway; False if there were too many."""
        self._notes += 1
        if self._notes > MOST_NOTES:
            return False
        line = {"at": now_ms(), "key": key, "params": params, "level": str(level)}
        self.append(files.NOTES, line)
        return True

    def tell(self) -> None:
        """Wake the server, if it listens."""
        wake.send(self.bell)

    def take(self, name: str) -> int | None:
        """Take one of the locks; the descriptor that holds it, or None if another has it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = os.open(self.file(name), flags, 0o600)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        if not self._still_there(name, descriptor):
            os.close(descriptor)
            return None
        return descriptor

    def _still_there(self, name: str, descriptor: int) -> bool:
        """Whether the locked file is the one under its name: the directory may have been moved
        away between opening and locking, which is how a task is fenced off.
        """
        try:
            there = os.stat(self.file(name), follow_symlinks=False)  # noqa: PTH116 -- as above
        except OSError:
            return False
        return os.path.samestat(there, os.fstat(descriptor))
