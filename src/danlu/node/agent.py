"""The node agent: the program beside a task, from staging to the stored outputs.

`run` is all there is to it: it brings the task in a directory one step further until it is done,
whatever state it finds there. Started fresh, it stages and starts the program. Started where an
agent has died, it goes on from what that one left.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import cast

from danlu.model.codec import to_json
from danlu.model.reason import ReasonCode
from danlu.model.script import World
from danlu.node import ending, exits, identity, layer, places, seen, shim, tree, verifying
from danlu.node.collect import Collector
from danlu.node.containment import Containment
from danlu.node.directory import TaskDirectory
from danlu.node.identity import Process
from danlu.node.log_files import LogWriter
from danlu.node.logs import Pump
from danlu.node.shim import LOG_DRAIN_S, Handle
from danlu.node.signals import SignalPipe
from danlu.node.stage import Stage, StageFailed
from danlu.node.supervise import Supervisor
from danlu.ports import task_directory as files
from danlu.ports.crash import crash_point
from danlu.ports.task_directory import AgentFile, AgentPlan, ExitFile, ProcessIdentity, TaskFile

MOST_STARTS = 5
"""So often staging is begun; agents that keep dying in it end the task. As often as an engine
starts agents anew before it waits long: who kills some of them costs a task time, not an attempt,
in which other tasks of the gang may have done work."""
TREE_LIMIT_S = 10.0
WAIT_FOR_SHIM_S = 0.01


class Stopped(Exception):
    """The task is to be stopped before its program was started."""


class Agent:
    """One agent in charge of one directory."""

    def __init__(
        self,
        directory: TaskDirectory,
        plan: AgentPlan,
        signals: SignalPipe,
        watch: int,
        ready: Handle | None,
    ) -> None:
        self._directory = directory
        self._plan = plan
        self._signals = signals
        self._watch = watch
        self._lock: int | None = None
        self._shim = ready
        self._before = cast("AgentFile | None", directory.read(files.AGENT))
        self._starts = int(self._before.get("starts", 1)) if self._before else 0
        self._log_source: int | None = None
        self._containment = Containment(directory, plan)

    def run(self) -> int:
        """Take the task to its end from wherever it is."""
        self._lock = self._directory.take(files.LOCK)
        if self._lock is None and self._before is None:
            return files.BUSY_EXIT
        if self._directory.exists(files.DONE):
            return 0
        crash_point("agent.locked", self._directory.path)
        self._announce()
        crash_point("agent.announced", self._directory.path)
        while not self._directory.exists(files.EXIT):
            self._step()
        self._lock = self._lock or self._directory.take(files.LOCK)
        self._dismiss()
        crash_point("agent.collecting", self._directory.path)
        self._take_down()
        Collector(self._directory, self._plan).run()
        return 0

    def _take_down(self) -> None:
        """Remove what held the program, of which nothing lives any more, and note what it has
        installed: that lies in its work.
        """
        self._containment.remove()
        if layer.changed(self._directory.file(files.WORK)):
            from danlu.node import installed  # most tasks install nothing

            with suppress(OSError, ValueError):
                found = installed.look(self._directory.file(files.WORK))
                if found is not None:
                    self._directory.publish(files.INSTALLED, to_json(found))

    def _announce(self) -> None:
        me: AgentFile = {
            "token": self._plan.plan.token,
            "agent": identity.mine(),
            "starts": self._starts + 1,
        }
        self._directory.publish_fleeting(files.AGENT, me)

    def _dismiss(self) -> None:
        """Let the shim go that was kept ready, if it was not needed."""
        ready, self._shim = self._shim, None
        if ready is not None:
            ready.dismiss()

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
            self._conclude(ReasonCode.REBOOTED if rebooted else ReasonCode.AGENT_LOST)
        elif self._starts >= MOST_STARTS:
            self._conclude(ReasonCode.AGENT_LOST)
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
            found = self._prepare()
            self._check()
        except Stopped:
            self._publish_exit(exits.stopped_before_start(self._directory))
        except StageFailed as failed:
            self._publish_exit(exits.unstarted(self._directory, failed.problem, **failed.detail))
        else:
            self._start(found)

    def _prepare(self) -> World:
        """Bring everything that has to be there; StageFailed where it cannot be had."""
        # What a task sees of the machine depends on where its environment leads.
        Stage(self._directory, self._plan, self._check).environment()
        mounts = self._containment.set_apart()
        stage = Stage(self._directory, self._plan, self._check, mounts=mounts, shares=mounts)
        found = stage.run()
        self._containment.kept = stage.kept
        return found

    def _check(self) -> None:
        if self._directory.exists(files.STOP):
            raise Stopped

    def _start(self, found: World) -> None:
        """Have a shim start the program, and watch over it."""
        program = self._containment.program(found)
        try:
            argv = verifying.order(self._directory, self._plan, program.argv, program.env)
        except StageFailed as failed:
            self._publish_exit(exits.unstarted(self._directory, failed.problem, **failed.detail))
            return
        program = replace(program, argv=argv)
        if self._plan.plan.require_isolation and self._containment.missing:
            missing = ", ".join(self._containment.missing)
            self._publish_exit(
                exits.unstarted(self._directory, ReasonCode.NOT_ISOLATED, missing=missing)
            )
            return
        if self._shim is not None and self._shim.apart != self._containment.apart:
            self._dismiss()
        handle, self._shim = self._shim, None
        if handle is None:
            try:
                handle = shim.fork(self._containment.apart)
            except OSError as error:
                detail = f"no process could be made: {error.strerror}"
                self._publish_exit(
                    exits.unstarted(self._directory, ReasonCode.BOOT_FAILED, detail=detail)
                )
                return
        crash_point("agent.staged", self._directory.path)
        held = self._containment
        handle.order(self._directory, cast("int", self._lock), program, held.group, held.limits)
        crash_point("agent.ordered", self._directory.path)
        self._log_source = handle.source
        # The key for the storage is in the plan, and in no second file.
        told = program.without(self._plan.plan.storage_variables)
        started = {"token": self._plan.plan.token, "program": asdict(told)}
        self._directory.publish_fleeting(files.PROGRAM, started)
        self._say_what_it_runs_on(found)
        self._supervise(handle.identity, handle.started)
        os.waitpid(handle.pid, 0)

    def _say_what_it_runs_on(self, found: World) -> None:
        """While the program starts: nobody waits for it."""
        own = found.env["MA_SCRIPT_INTERPRETER"]
        # An environment for a job's requirements sees the one below it; one of an image is whole.
        below = [] if self._plan.plan.image else [self._plan.layout.python]
        on = seen.seen(self._plan.plan, list(dict.fromkeys([own, *below])))
        self._directory.remark("task-runs-on", what=seen.sentence(on), **on)

    # a program that runs, or ran

    def _watch_over(self, task: TaskFile) -> None:
        self._dismiss()
        self._supervise(task["shim"], None)

    def _supervise(self, shim: ProcessIdentity, started: int | None) -> None:
        group = self._containment.group
        with verifying.Watch(self._directory, self._plan):
            Supervisor(self._directory, self._plan, shim, self._signals, started, group).run()

    def _conclude(self, problem: ReasonCode) -> None:
        """The shim is gone and left no record: end what it left, keep its output, write down."""
        self._dismiss()
        group = self._containment.group
        tree.kill_all(self._left_behind, TREE_LIMIT_S, between=reap, at_once=group.kill)
        if self._log_source is not None:
            log = LogWriter(self._directory.path, self._directory.log_limit_bytes)
            Pump(self._log_source, log).drain(LOG_DRAIN_S)
        record = exits.lost(self._directory, problem)
        exits.explain(record, self._directory)
        self._publish_exit(record)

    def _left_behind(self) -> list[Process]:
        """What a shim left that was killed: given to this agent if it was its parent, otherwise
        known by control group or variable. The shim's own pid says nothing any more.
        """
        me = os.getpid()
        mark = ending.marker(self._directory.path)
        members = tree.of(self._containment.group.pids())
        everyone = (*tree.descendants({me}), *members, *tree.marked(mark))
        found = {process.key: process for process in everyone}
        return [process for process in found.values() if process.pid != me]

    def _publish_exit(self, record: ExitFile) -> None:
        self._directory.publish_surely(files.EXIT, record)


def reap() -> None:
    """Take notice of children that have ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
