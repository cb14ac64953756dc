"""A whole platform on a clock that the test turns: scripted engine, real records and objects."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from danlu.engines.memory import Cluster, ManualClock, MemoryEngine
from danlu.engines.memory_script import Script
from danlu.flow.board import Board
from danlu.flow.catalog import Catalog, Environment
from danlu.flow.loop import Loop
from danlu.flow.platform import Limits, Platform
from danlu.flow.stop import want_stop
from danlu.flow.submit import submit
from danlu.model.attempt import State
from danlu.model.identity import Caller, User, Workspace
from danlu.model.idle import Signal
from danlu.model.job import JobSpec, JobView
from danlu.model.resources import GIB, Offer, Shape
from danlu.model.script import TaskPlan
from danlu.ports.engine import Engine, Ref
from danlu.ports.records import EventQuery
from danlu.stores.folder import FolderStore
from danlu.stores.sql import open_records

NODE = Offer("memory-0", 8, 32 * GIB)


class CountingDice:
    """Randomness that is not."""

    def __init__(self) -> None:
        self._count = itertools.count(1)

    def token(self) -> str:
        return f"{next(self._count):032x}"

    def job_id(self) -> str:
        return str(uuid.UUID(int=next(self._count)))

    def fraction(self) -> float:
        return 0.5


class House:
    """A server without its faces. `restart` is what a SIGKILL and a new start leave."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = ManualClock()
        self.dice = CountingDice()
        self.cluster = Cluster()
        self.workspace = Workspace("p1", "here")
        self.caller = Caller(User("u1", "alice", "p1", "d1"), self.workspace)
        self.scripts: dict[str, Script] = {}
        self.by_attempt: dict[str, Sequence[Script]] = {}
        """What each attempt of a job does, by the job's name; the last one serves the rest."""
        self.by_task: dict[tuple[str, int, int], Script] = {}
        """The same for one task of one attempt."""
        self.nodes = [NODE]
        self.restored_at = 0
        self.limits = Limits()
        self.signals: Sequence[Signal] = ()
        """What notebooks are used for, as their instances say."""
        self._open()
        self.records.add_workspace(self.workspace).result()

    def _open(self) -> None:
        self.records = open_records(str(self.root / "db.sqlite"), self.root / "key", self.clock)
        self.objects = FolderStore(str(self.root / "objects"))
        self.objects.create_bucket("danlu")
        self.engine = MemoryEngine(
            self.clock,
            script_of=self._script,
            nodes=self.nodes,
            cluster=self.cluster,
            sleep=lambda _s: None,
        )
        catalog = Catalog(self.engine.capacity, lambda _: [Environment("default", "/usr")])
        self.platform = Platform(
            self.records,
            self.objects,
            self.engine,
            catalog,
            self.clock,
            self.dice,
            self.limits,
            readers=(("kernels", self._kernels),),
            restored_at=self.restored_at,
        )
        self.board = Board(self.records)
        self.loop = Loop(self.platform, self.board)

    def _kernels(self, _engine: Engine, _ref: Ref) -> Sequence[Signal]:
        return self.signals

    def _script(self, plan: TaskPlan) -> Script:
        one = self.by_task.get((plan.job_name, plan.attempt, plan.index))
        several = self.by_attempt.get(plan.job_name)
        if one is None and several:
            one = several[min(plan.attempt, len(several)) - 1]
        return one or self.scripts.get(plan.job_name, Script())

    def restart(self) -> None:
        """Forget everything that was only in memory."""
        self.records.close()
        self._open()
        self.board.load()

    def submit(self, name: str = "job", *, token: str = "", **changes: Any) -> str:
        """Record a job that runs `true` on one core; its id."""
        spec = JobSpec(name, "danlu.cpu.1u", Shape(1, 1), command="true")
        spec = replace(spec, **changes)
        future = submit(
            self.platform, self.board, self.caller, spec, client_token=token, wake=lambda: None
        )
        job_id = future.result(timeout=30).job.id
        # The writer tells who waits before it runs the callback that puts the job on the board;
        # both are done when it has written once more.
        self.records.set_setting("written", name).result(timeout=30)
        return job_id

    def stop(self, job_id: str) -> bool:
        """Ask for a stop as a user does."""
        future = want_stop(self.platform, self.board, self.caller, job_id, lambda: None)
        return future.result(timeout=30)

    def turn(self, seconds: float = 0.0) -> None:
        """Let time pass and the loop look once."""
        self.clock.advance(seconds)
        self.loop.turn()

    def view(self, job_id: str) -> JobView:
        return self.records.job("p1", job_id)

    def state(self, job_id: str) -> State:
        return self.view(job_id).attempt.state

    def history(self, job_id: str) -> list[str]:
        """The keys of a job's events, in order."""
        return [event.key for event in self.records.events("p1", job_id, EventQuery())]
