"""The node agent: the program beside a task, from staging to the stored outputs.

`run` is all there is to it: it brings the task in a directory one step further until it is done,
whatever state it finds there. Started fresh, it stages and starts the program. Started where an
agent has died, it goes on from what that one left.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import cast

from danlu.model.reason import ReasonCode
from danlu.model.script import World
from danlu.node import ending, exits, identity, linux, places, tree
from danlu.node.collect import Collector
from danlu.node.directory import TaskDirectory
from danlu.node.identity import Process
from danlu.node.logs import Pump, open_log, open_pipe
from danlu.node.program import Program
from danlu.node.shim import LOG_DRAIN_S, Shim
from danlu.node.signals import PROMPT_ONLY, SignalPipe
from danlu.node.stage import Stage, StageFailed
from danlu.node.supervise import Supervisor
from danlu.ports import task_directory as files
from danlu.ports.task_directory import AgentFile, AgentPlan, ExitFile, TaskFile

NO_PLAN_EXIT = 66
CRASH_EXIT = 70
MOST_STARTS = 3
"""So often staging is begun; agents that keep dying in it end the task."""
TREE_LIMIT_S = 10.0
WAIT_FOR_SHIM_S = 0.01


class Stopped(Exception):
    """The task is to be stopped before its program was started."""


def run(path: str) -> int:
    """Bring the task in the directory `path` to its end; the agent's exit status."""
    directory = TaskDirectory(path)
    plan = directory.plan()
    if plan is None:
        return NO_PLAN_EXIT
    watch = directory.take(files.WATCH)
    if watch is None:
        return files.BUSY_EXIT
    linux.name_process("danlu-agent")
    linux.adopt_orphans()
    signals = SignalPipe((signal.SIGTERM,), PROMPT_ONLY)
    return Agent(directory, plan, signals, watch).run()


class Agent:
    """One agent in charge of one directory."""

    def __init__(
        self, directory: TaskDirectory, plan: AgentPlan, signals: SignalPipe, watch: int
    ) -> None:
        self._directory = directory
        self._plan = plan
        self._signals = signals
        self._watch = watch
        self._lock: int | None = None
        self._before = cast("AgentFile | None", directory.read(files.AGENT))
        self._starts = int(self._before.get("starts", 1)) if self._before else 0
        self._log_source: int | None = None

    def run(self) -> int:
        """Take the task to its end from wherever it is."""
        self._lock = self._directory.take(files.LOCK)
        if self._lock is None and self._before is None:
            return files.BUSY_EXIT
        if self._directory.exists(files.DONE):
            return 0
        self._announce()
        while not self._directory.exists(files.EXIT):
            self._step()
        self._lock = self._lock or self._directory.take(files.LOCK)
        Collector(self._directory, self._plan).run()
        return 0

    def _announce(self) -> None:
        me: AgentFile = {
            "token": self._plan.plan.token,
            "agent": identity.mine(),
            "starts": self._starts + 1,
        }
        self._directory.publish_fleeting(files.AGENT, me)

    def _step(self) -> None:
        task = cast("TaskFile | None", self._directory.read(files.TASK))
        if task is not None and identity.alive(task["shim"]):
            self._watch_over(task)
            return
        self._lock = self._lock or self._directory.take(files.LOCK)
        if self._lock is None:
            # A shim lives that has not said so yet, or has just ended.
            time.sleep(WAIT_FOR_SHIM_S)
        elif not self._directory.exists(files.EXIT):
            self._begin_or_conclude(task)

    def _begin_or_conclude(self, task: TaskFile | None) -> None:
        """Nobody else lives and there is no exit record: start the program, or say it is lost."""
        before = self._before
        rebooted = before is not None and before["agent"]["boot_id"] != identity.boot_id()
        if task is not None or rebooted:
            self._conclude(ReasonCode.TASK_LOST if rebooted else ReasonCode.AGENT_LOST, task)
        elif self._starts >= MOST_STARTS:
            self._conclude(ReasonCode.AGENT_LOST, task)
        else:
            self._begin()

    # a program to start

    def _begin(self) -> None:
        if self._starts:
            places.remove_work(self._plan.layout, self._directory.path)
            with suppress(FileNotFoundError):
                Path(self._directory.file(files.STORED)).unlink()
        self._starts += 1
        try:
            self._check()
            found = Stage(self._directory, self._plan, self._check).run()
            self._check()
        except Stopped:
            self._publish_exit(exits.stopped_before_start(self._plan.plan))
        except StageFailed as failed:
            self._publish_exit(exits.unstarted(self._plan.plan, failed.problem, **failed.detail))
        else:
            self._start_shim(found)

    def _check(self) -> None:
        if self._directory.exists(files.STOP):
            raise Stopped

    def _start_shim(self, found: World) -> None:
        """Fork the shim and watch over it."""
        source, output = open_pipe()
        started, say_started = os.pipe()
        env = {**self._plan.environment, **found.env}
        name, _, value = ending.marker(self._directory.path).partition("=")
        env[name] = value
        program = Program(found.argv, env, found.cwd)
        pid = os.fork()
        if pid == 0:
            self._be_shim(program, source, output, say_started)
        os.close(output)
        os.close(say_started)
        self._log_source = source
        shim = identity.of(pid)
        if shim is not None:
            Supervisor(self._directory, self._plan, shim, self._signals, started).run()
        os.waitpid(pid, 0)

    def _be_shim(self, program: Program, source: int, output: int, started: int) -> None:
        """The shim's whole life; does not return."""
        code = CRASH_EXIT
        try:
            lock = cast("int", self._lock)
            linux.close_all_but({0, 1, 2, lock, source, output, started})
            Shim(self._directory, self._plan.plan, program, source, output, started, lock).run()
            code = 0
        finally:
            if code:
                report_crash()
            os._exit(code)

    # a program that runs, or ran

    def _watch_over(self, task: TaskFile) -> None:
        Supervisor(self._directory, self._plan, task["shim"], self._signals, None).run()

    def _conclude(self, problem: ReasonCode, task: TaskFile | None) -> None:
        """The shim is gone and left no record: end what it left, keep its output, write down."""
        roots = {os.getpid()}
        if task is not None and task["shim"]["boot_id"] == identity.boot_id():
            roots.add(task["shim"]["pid"])
        mark = ending.marker(self._directory.path)

        def left() -> list[Process]:
            found = {process.key: process for process in tree.descendants(roots)}
            found.update((process.key, process) for process in tree.marked(mark))
            return [process for process in found.values() if process.pid != os.getpid()]

        tree.kill_all(left, TREE_LIMIT_S, between=reap)
        if self._log_source is not None:
            Pump(self._log_source, open_log(self._directory.file(files.LOG))).drain(LOG_DRAIN_S)
        record = exits.lost(self._plan.plan, problem)
        exits.explain(record, self._directory, self._plan.plan)
        self._publish_exit(record)

    def _publish_exit(self, record: ExitFile) -> None:
        self._directory.publish_surely(files.EXIT, record)


def reap() -> None:
    """Take notice of children that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def report_crash() -> None:
    """Write the exception that is being handled to stderr, which is `agent.err`."""
    import traceback

    traceback.print_exc()
