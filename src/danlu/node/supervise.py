"""Beside a running task: outputs are stored, samples taken, orders to end carried out."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from contextlib import suppress
from typing import cast

from danlu.node import ending, identity, stacks, tree
from danlu.node.cgroup import Group
from danlu.node.collect import output_syncs
from danlu.node.directory import TaskDirectory
from danlu.node.ending import Ending
from danlu.node.identity import Process
from danlu.node.sample import Sampler
from danlu.node.signals import SignalPipe
from danlu.node.sync import PROBLEMS, OutputSync
from danlu.ports import task_directory as files
from danlu.ports.crash import crash_point
from danlu.ports.task_directory import AgentPlan, ProcessIdentity, TaskFile

KILL_LIMIT_S = 5.0
KILL_EVERY_S = 1.0
UNKILLABLE_S = 15.0
"""After this long the shim is killed too, and the task ends with processes left that nothing can
end (a device or a file system does not answer them)."""
STARTING_S = 0.01
LONGEST_S = 3600.0


class Supervisor:
    """Watches one shim. `started` is the pipe on which the shim says that the program runs, or
    None for an agent that took the task over.
    """

    def __init__(
        self,
        directory: TaskDirectory,
        plan: AgentPlan,
        shim: ProcessIdentity,
        signals: SignalPipe,
        started: int | None,
        group: Group,
        told: int | None = None,
    ) -> None:
        self._directory = directory
        self._plan = plan
        self._shim = shim
        self._signals = signals
        self._started = started
        self._told = told
        """What else wakes it."""
        self._group = group
        self._ending = Ending(directory)
        self._term_due = self._ending.deadline is not None
        self._kill_at = 0.0
        self._first_kill: float | None = None
        self._task: TaskFile | None = None

    def run(self) -> None:
        """Watch until the shim is gone."""
        shim = identity.open_process(self._shim)
        if shim is None:
            return
        syncer = Syncer(self._directory, self._plan)
        sampler = Sampler(self._directory, self._plan, self._shim["pid"])
        poll = select.poll()
        poll.register(shim, select.POLLIN)
        poll.register(self._signals.descriptor, select.POLLIN)
        for more in (self._started, self._told):
            if more is not None:
                poll.register(more, select.POLLIN)
        try:
            syncer.start()
            sampler.start()
            self._directory.reserve(files.DONE, files.NOTICE)
            while not self._over():
                pause_s = self._act()
                ready = {descriptor for descriptor, _ in poll.poll(pause_s * 1000)}
                if shim in ready:
                    return
                self._signals.taken()
                if self._started is not None and self._started in ready:
                    poll.unregister(self._started)
                    self._note_start()
        finally:
            os.close(shim)
            sampler.stop()
            syncer.stop()

    def _over(self) -> bool:
        """Whether the program has ended though the shim lives."""
        return False

    def _note_start(self) -> None:
        if self._started is not None and os.read(self._started, 1):
            pid = (self._running_program() or {"pid": 0})["pid"]
            self._directory.note("task-started", pid=pid)
        self._started = None

    def _begun(self) -> TaskFile | None:
        if self._task is None:
            self._task = cast("TaskFile | None", self._directory.read(files.TASK))
        return self._task

    def _running_program(self) -> ProcessIdentity | None:
        task = self._begun()
        return task["program"] if task else None

    def _act(self) -> float:
        """Carry out what is due; how long there is nothing to do."""
        grace_s = ending.ordered_grace(self._directory)
        if grace_s is not None and self._ordered(grace_s):
            self._term_due = True
        limit_left_s = self._limit_left_s()
        if limit_left_s is not None and limit_left_s <= 0 and self._ending.deadline is None:
            self._term_due = self._ending.order(ending.TIME_LIMIT, self._plan.plan.grace_s)
        if self._term_due and not self._terminate():
            return STARTING_S
        left_s = self._ending.left_s()
        if left_s is None:
            return LONGEST_S if limit_left_s is None else min(LONGEST_S, limit_left_s + 0.001)
        return min(LONGEST_S, left_s + 0.001) if left_s > 0 else self._kill()

    def _ordered(self, grace_s: float) -> bool:
        """Take an order to stop; True the first time."""
        reason = ending.ordered_reason(self._directory)
        hung = reason == ending.HANG and self._ending.deadline is None
        if hung and not self._directory.exists(files.HUNG):
            # Another rank hangs, and this one may be what it waits for.
            stacks.record(self._directory, self._below_shim(), self._plan.packages)
        return self._ending.order(reason, grace_s)

    def _limit_left_s(self) -> float | None:
        limit_s = self._plan.plan.time_limit_s
        if limit_s is None:
            return None
        task = self._begun()
        if task is None:
            return STARTING_S
        # A shim of an earlier program did not say; its program began with its process.
        ticks_s = task["program"]["start_ticks"] / os.sysconf("SC_CLK_TCK")
        began_s = task.get("began_s", ticks_s)
        return limit_s - (ending.boot_clock() - began_s)

    def _terminate(self) -> bool:
        """SIGTERM, or what the job wants instead, to the program's process group; False if there is
        no program yet.

        The group is what a terminal's Ctrl-C would reach: the program and those of its children
        that did not ask for a group of their own. Whoever made a group for its children means to
        look after them. If nobody of the group is left, everybody else is asked.
        """
        program = self._running_program()
        if program is None:
            return False
        crash_point("agent.noticed", self._directory.path)
        wanted = signal.Signals[self._plan.plan.stop_signal]
        if not tree.signal_group(self._below_shim, program["pid"], wanted):
            for process in self._below_shim():
                identity.send_to(process, wanted)
        self._term_due = False
        crash_point("agent.terminated", self._directory.path)
        return True

    def _kill(self) -> float:
        now = time.monotonic()
        if now >= self._kill_at:
            self._first_kill = self._first_kill or now
            tree.kill_all(self._below_shim, KILL_LIMIT_S, at_once=self._group.kill)
            self._kill_at = time.monotonic() + KILL_EVERY_S
            if now - self._first_kill > UNKILLABLE_S:
                identity.send(self._shim, signal.SIGKILL)
        return max(0.001, self._kill_at - time.monotonic())

    def _below_shim(self) -> list[Process]:
        # Its pid means nothing once it has ended.
        return tree.descendants({self._shim["pid"]}) if identity.alive(self._shim) else []


class Syncer:
    """A thread that stores what the program has written, while it runs."""

    def __init__(self, directory: TaskDirectory, plan: AgentPlan) -> None:
        self._directory = directory
        self._plan = plan
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="syncer", daemon=True)

    def start(self) -> None:
        """Begin, if the task has outputs."""
        if self._plan.plan.outputs:
            self._thread.start()

    def stop(self) -> None:
        """End after the file that is being stored."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        syncs: list[OutputSync] = []
        while not self._stopping.wait(self._plan.storing.interval_s):
            with suppress(*PROBLEMS):
                syncs = syncs or output_syncs(self._directory, self._plan)
            for sync in syncs:
                sync.store_steady(self._stopping)
