"""The shim: the program's parent. It holds the lock, keeps the log, and writes the exit record.

It is forked from the agent and needs it no more: the agent may die, and nothing is lost. It
waits for everything below the program, not for the program alone, and only then lets go.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from danlu.model.reason import ReasonCode
from danlu.node import cgroup, ending, exits, identity, linux, namespaces, program, tree
from danlu.node.cgroup import Group, Limits
from danlu.node.directory import TaskDirectory, now_ms, open_end
from danlu.node.limits import LimitWatch
from danlu.node.log_files import LogWriter
from danlu.node.logs import Pump, open_pipe
from danlu.node.namespaces import First
from danlu.node.oom import LOOK_EVERY_S
from danlu.node.program import Pending, Program
from danlu.node.signals import PROMPT_ONLY, SignalPipe
from danlu.ports import task_directory as files
from danlu.ports.crash import crash_point
from danlu.ports.task_directory import ExitFile, ProcessIdentity, TaskFile

LEFTOVER_GRACE_S = 2.0
"""What the program leaves running has this long to end by itself."""
KILL_LIMIT_S = 10.0
LOG_DRAIN_S = 1.0
CRASH_EXIT = 70


@dataclass(frozen=True, slots=True)
class Handle:
    """The agent's end of a shim that waits for its order. `source` is a second read end of the
    log's pipe, for what is left in it if the shim is killed; `started` becomes readable when the
    program runs.
    """

    pid: int
    identity: ProcessIdentity
    source: int
    started: int
    apart: str
    _orders: socket.socket

    def order(
        self,
        directory: TaskDirectory,
        lock: int,
        start: Program,
        group: Group,
        limits: Limits,
    ) -> None:
        """Have it start a program in `group`, which holds it to `limits`. It holds `lock` from now
        on, together with the caller.
        """
        order = {
            "directory": [
                directory.path,
                directory.token,
                directory.limit_s,
                directory.bell,
                directory.log_limit_bytes,
            ],
            "program": asdict(start),
            "group": group.described(),
            "limits": asdict(limits),
        }
        with self._orders, suppress(BrokenPipeError):
            socket.send_fds(self._orders, [b"l"], [lock])
            self._orders.sendall(json.dumps(order).encode())

    def dismiss(self) -> None:
        """Let it end without having started anything."""
        self._orders.close()
        os.close(self.source)
        os.close(self.started)
        os.waitpid(self.pid, 0)


def fork(apart: str = "") -> Handle:
    """Fork a shim, which forks the process that will be the program. `apart` = who makes
    namespaces for it (`namespaces.Offer`). OSError if that fails.
    """
    source, output = open_pipe()
    started, say_started = os.pipe()
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        _live(theirs, source, output, say_started, apart)
    theirs.close()
    os.close(output)
    os.close(say_started)
    found = identity.of(pid)
    if found is None:
        raise ProcessLookupError("the shim has disappeared")
    return Handle(pid, found, source, started, apart, ours)


def _live(orders: socket.socket, source: int, output: int, started: int, apart: str) -> None:
    """The shim's whole life; does not return."""
    code = CRASH_EXIT
    try:
        linux.close_all_but({0, 1, 2, orders.fileno(), source, output, started})
        Shim(orders, source, output, started, apart).run()
        code = 0
    finally:
        if code:
            report_crash()
        os._exit(code)


def report_crash() -> None:
    """Write the exception that is being handled to stderr, which is `agent.err`."""
    import traceback

    traceback.print_exc()


@dataclass(slots=True)
class Shim:
    """One task's shim. `output` is the write end of the log's pipe, `source` its read end."""

    orders: socket.socket
    source: int
    output: int
    started: int
    apart: str = ""
    """Who makes the program's namespaces; empty = it has none of its own."""
    _first: First | None = field(default=None, init=False)
    _directory: TaskDirectory = field(init=False)
    _lock: int = field(init=False)
    _pump: Pump = field(init=False)
    _signals: SignalPipe = field(init=False)
    _group: Group = field(init=False)
    _limits: LimitWatch = field(init=False)
    _status: int | None = field(default=None, init=False)
    _ended_at: int = field(default=0, init=False)
    _pid: int = field(default=0, init=False)

    def run(self) -> None:
        """Wait for an order, then live the program's life beside it. Returns when the exit record
        is published, or when there will be no order.
        """
        linux.name_process("danlu-shim")
        linux.adopt_orphans()
        # Without an order it is of no use to anybody; with one it needs its agent no more.
        linux.die_with_parent()
        # A machine that goes down sends SIGTERM to everyone; the program's end is still recorded.
        self._signals = SignalPipe((signal.SIGCHLD,), (signal.SIGTERM, *PROMPT_ONLY))
        pending = self._prepare()
        os.close(self.output)
        start = self._receive()
        if start is None:
            return
        linux.outlive_parent()
        crash_point("shim.ordered", self._directory.path)
        failed = self._start(pending, start)
        if failed is not None:
            self._directory.publish_surely(files.EXIT, failed)
            return
        self._attend(until_s=None)
        crash_point("shim.ended", self._directory.path)
        record = self._record()
        self._see_off_leftovers(record)
        self._close_log(record)
        crash_point("shim.before-exit", self._directory.path)
        self._directory.publish_surely(files.EXIT, record)
        crash_point("shim.after-exit", self._directory.path)

    def _prepare(self) -> Pending:
        """The process that will be the program, in a namespace if it is to be apart."""
        if self.apart:
            self._first = namespaces.begin(self.apart)
        return program.prepare(self.output, apart=bool(self.apart))

    def _receive(self) -> Program | None:
        """The order, or None if the agent has gone without one."""
        with self.orders:
            _, descriptors, _, _ = socket.recv_fds(self.orders, 1, 1)
            if not descriptors:
                return None
            self._lock = descriptors[0]
            os.set_inheritable(self._lock, False)
            parts = []
            while part := self.orders.recv(1 << 20):
                parts.append(part)
        order = json.loads(b"".join(parts))
        self._directory = TaskDirectory(*order["directory"])
        self._point_errors()
        log = LogWriter(self._directory.path, self._directory.log_limit_bytes)
        self._pump = Pump(self.source, log)
        self._group = cgroup.described(order["group"])
        self._limits = LimitWatch(self._directory, self._group, Limits(**order["limits"]))
        return Program.read(order["program"])

    def _point_errors(self) -> None:
        """Let crash reports of this process go where the agent's go."""
        errors = open_end(self._directory.file(files.AGENT_ERRORS))
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        os.close(errors)

    def _start(self, pending: Pending, start: Program) -> ExitFile | None:
        """Start the program; the exit record if it cannot be started."""
        self._pid = pending.pid
        record: TaskFile = {
            "token": self._directory.token,
            "shim": identity.mine(),
            "program": pending.identity,
            "started_at": now_ms(),
            "began_s": ending.boot_clock(),
        }
        if self._first is not None:
            record["first"] = self._first.identity
        # On record before the program's first instruction: whoever finds no record may launch.
        self._directory.publish(files.TASK, record)
        crash_point("shim.recorded", self._directory.path)
        failure = pending.go(start)
        if failure is not None:
            os.waitpid(pending.pid, 0)
            return exits.unstarted(
                self._directory,
                ReasonCode.BOOT_FAILED,
                failure.exit_code,
                detail=failure.detail,
            )
        with suppress(OSError):  # the agent may be gone by now
            os.write(self.started, b"s")
        os.close(self.started)
        crash_point("shim.started", self._directory.path)
        self._directory.reserve(files.EXIT)
        return None

    def _attend(self, until_s: float | None) -> bool:
        """Keep the log and wait for children: until the program has ended, or, with `until_s`,
        until no child is left. False if that instant (of the monotonic clock) came first.
        """
        poll = select.poll()
        poll.register(self.source, select.POLLIN)
        poll.register(self._signals.descriptor, select.POLLIN)
        while True:
            children = self._reap()
            if self._status is not None and (until_s is None or not children):
                return True
            pause = LOOK_EVERY_S if until_s is None else until_s - time.monotonic()
            if pause < 0:
                return False
            ready = {descriptor for descriptor, _ in poll.poll(min(pause, LOOK_EVERY_S) * 1000)}
            if self.source in ready and not self._pump.move():
                poll.unregister(self.source)
            self._signals.taken()
            self._limits.look_again()

    def _reap(self) -> bool:
        """Take notice of every child that has ended; whether any is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._pid:
                self._status = status
                self._ended_at = now_ms()

    def _record(self) -> ExitFile:
        status = self._status or 0
        record = exits.of_status(self._directory, status, self._ended_at)
        self._limits.weigh(record)
        exits.explain(record, self._directory)
        return record

    def _see_off_leftovers(self, record: ExitFile) -> None:
        """Wait for what the program left running, as long as it may, then kill it."""
        if self._first is not None:
            os.close(self._first.hold)
        own_end = time.monotonic() + LEFTOVER_GRACE_S
        if self._directory.exists(files.NOTICE):
            self._ask_leftovers()
        while not self._attend(until_s=self._leftovers_until(own_end)):
            if self._leftovers_until(own_end) > time.monotonic():
                continue
            killed, left = tree.kill_all(
                self._leftovers, KILL_LIMIT_S, between=self._reap, at_once=self._end_all
            )
            if killed and not self._directory.exists(files.NOTICE):
                record["detail"]["leftovers"] = killed
            if left:
                record["detail"]["unkillable"] = left
            self._reap()
            return

    def _ask_leftovers(self) -> None:
        """SIGTERM to those that are not of the program's group: they were the program's to look
        after, or came beside it (a command of `danlu exec`), and nobody else would ask them.
        """
        for one in self._leftovers():
            if one.group != self._pid:
                identity.send_to(one, signal.SIGTERM)

    def _leftovers(self) -> list[identity.Process]:
        """Everybody below this process but the namespace's first, which is ours."""
        ours = self._first.identity["pid"] if self._first is not None else 0
        return [one for one in tree.descendants({os.getpid()}) if one.pid != ours]

    def _end_all(self) -> None:
        if self._first is not None:
            # With it the kernel ends everybody in the namespace.
            identity.send(self._first.identity, signal.SIGKILL)
        self._group.kill()

    def _leftovers_until(self, own_end: float) -> float:
        """When patience ends, by the monotonic clock. A program that is being stopped may leave
        its last children (a shell's training script, say) the whole grace.
        """
        given = ending.notice(self._directory)
        if given is None:
            return own_end
        return time.monotonic() + given["deadline_boot_s"] - ending.boot_clock()

    def _close_log(self, record: ExitFile) -> None:
        """Bring the last of the output to the log, and the log to the disk."""
        if not self._pump.drain(LOG_DRAIN_S):
            record["detail"]["log_left_open"] = 1
        if self._pump.dropped_bytes:
            record["detail"]["log_dropped_bytes"] = self._pump.dropped_bytes
        try:
            self._pump.sync()
        except OSError:
            record["detail"]["log_damaged"] = 1
