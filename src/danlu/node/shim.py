"""The shim: the program's parent. It holds the lock, keeps the log, and writes the exit record.

It is forked from the agent and needs it no more: the agent may die, and nothing is lost. It
waits for everything below the program, not for the program alone, and only then lets go.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field

from danlu.model.reason import ReasonCode
from danlu.model.script import TaskPlan
from danlu.node import ending, exits, identity, linux, program, tree
from danlu.node.directory import TaskDirectory, now_ms
from danlu.node.logs import Pump, open_log
from danlu.node.oom import OomWatch
from danlu.node.program import Program
from danlu.node.signals import PROMPT_ONLY, SignalPipe
from danlu.ports import task_directory as files
from danlu.ports.task_directory import ExitFile, TaskFile

LEFTOVER_GRACE_S = 2.0
"""What the program leaves running has this long to end by itself."""
KILL_LIMIT_S = 10.0
LOG_DRAIN_S = 1.0
LOOK_EVERY_S = 1.0


@dataclass(slots=True)
class Shim:
    """One task's shim. `output` is the write end of the log's pipe, `source` its read end;
    `started` tells the agent; `lock` is held as long as this process lives.
    """

    directory: TaskDirectory
    plan: TaskPlan
    program: Program
    source: int
    output: int
    started: int
    lock: int
    _pump: Pump = field(init=False)
    _signals: SignalPipe = field(init=False)
    _oom: OomWatch = field(init=False)
    _status: int | None = field(default=None, init=False)
    _ended_at: int = field(default=0, init=False)
    _pid: int = field(default=0, init=False)

    def run(self) -> None:
        """Live the program's life beside it. Returns when the exit record is published."""
        linux.name_process("danlu-shim")
        linux.adopt_orphans()
        # A machine that goes down sends SIGTERM to everyone; the program's end is still recorded.
        self._signals = SignalPipe((signal.SIGCHLD,), (signal.SIGTERM, *PROMPT_ONLY))
        self._oom = OomWatch()
        log = open_log(self.directory.file(files.LOG))
        self._pump = Pump(self.source, log)
        failed = self._start()
        if failed is not None:
            self.directory.publish_surely(files.EXIT, failed)
            return
        self._attend(until_s=None)
        record = self._record()
        self._see_off_leftovers(record)
        if not self._pump.drain(LOG_DRAIN_S):
            record["detail"]["log_left_open"] = 1
        if self._pump.dropped_bytes:
            record["detail"]["log_dropped_bytes"] = self._pump.dropped_bytes
        try:
            os.fsync(log)
        except OSError:
            record["detail"]["log_damaged"] = 1
        self.directory.publish_surely(files.EXIT, record)

    def _start(self) -> ExitFile | None:
        """Start the program; the exit record if it cannot be started."""
        try:
            pending = program.prepare(self.program, self.output)
        except OSError as error:
            detail = f"no process could be made: {error.strerror}"
            return self._not_started(program.NOT_RUNNABLE, detail)
        self._pid = pending.pid
        os.close(self.output)
        record: TaskFile = {
            "token": self.plan.token,
            "shim": identity.mine(),
            "program": identity.of(pending.pid) or identity.mine(),
            "started_at": now_ms(),
        }
        # On record before the program's first instruction: whoever finds no record may launch.
        self.directory.publish(files.TASK, record)
        failure = pending.go()
        if failure is not None:
            os.waitpid(pending.pid, 0)
            return self._not_started(failure.exit_code, failure.detail)
        with suppress(OSError):  # the agent may be gone by now
            os.write(self.started, b"s")
        os.close(self.started)
        self.directory.reserve(files.EXIT)
        return None

    def _not_started(self, exit_code: int, detail: str) -> ExitFile:
        return exits.unstarted(self.plan, ReasonCode.BOOT_FAILED, exit_code, detail=detail)

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
            self._oom.look_again()

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
        record = exits.of_status(self.plan, status, self._ended_at)
        killed = record["signal"] == "SIGKILL"
        told = self.directory.exists(files.NOTICE)
        record["out_of_memory"] = not told and self._oom.explains(
            killed=killed, failed=record["exit_code"] != 0
        )
        exits.explain(record, self.directory, self.plan)
        return record

    def _see_off_leftovers(self, record: ExitFile) -> None:
        """Wait for what the program left running, as long as it may, then kill it."""
        own_end = time.monotonic() + LEFTOVER_GRACE_S
        while not self._attend(until_s=self._leftovers_until(own_end)):
            if self._leftovers_until(own_end) > time.monotonic():
                continue
            killed, left = tree.kill_all(_below, KILL_LIMIT_S, between=self._reap)
            if killed:
                record["detail"]["leftovers"] = killed
            if left:
                record["detail"]["unkillable"] = left
            self._reap()
            return

    def _leftovers_until(self, own_end: float) -> float:
        """When patience ends, by the monotonic clock. A program that is being stopped may leave
        its last children (a shell's training script, say) the whole grace.
        """
        given = ending.notice(self.directory)
        if given is None:
            return own_end
        return time.monotonic() + given["deadline_boot_s"] - ending.boot_clock()


def _below() -> list[identity.Process]:
    return tree.descendants({os.getpid()})
