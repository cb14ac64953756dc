"""A house with notebooks, as a face uses them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from danlu.engines.memory_script import Script
from danlu.flow import notebook as wishes
from danlu.flow.platform import Limits
from danlu.model.notebook import Lease, Notebook, NotebookSpec, State
from danlu.ports.engine import ACTIVITY
from danlu.ports.records import EventQuery
from tests.flow.house import House

READY = Script(duration_s=None, stage_s=1, ready_s=2, on_term_s=0.5)
HOUR = 3600


class Desk(House):
    """A house with notebooks, as a face uses them."""

    def __init__(self, root: Path, limits: Limits | None = None) -> None:
        super().__init__(root)
        if limits is not None:
            self.limits = limits
            self.restart()
        self.records.add_user(self.caller.user).result(30)
        self.pids = [1, 17]
        self.active_at: int | None = None

    def create(self, name: str = "nb", lease: Lease = Lease(), **changes: Any) -> str:  # noqa: B008 -- it cannot be changed
        self.scripts.setdefault(name, READY)
        spec = replace(NotebookSpec(name, "danlu.cpu.1u"), **changes)
        made, events = wishes.create(self.platform, self.caller, spec, lease)
        assert self.loop.notebooks.add(made, events).result(30)
        return made.id

    def notebook(self, notebook_id: str) -> Notebook:
        return self.records.notebook("p1", notebook_id)

    def wish(self, notebook_id: str, step: Callable[..., wishes.Step], *arguments: Any) -> Notebook:
        before = self.notebook(notebook_id)
        taken = (self.platform, self.caller, before, *arguments)
        to, events = step(*taken)
        done = self.loop.notebooks.change(before, to, events).result(30)
        assert done is not None
        return done

    def until(self, notebook_id: str, state: State, step_s: float = 0.5) -> Notebook:
        found = self.notebook(notebook_id)
        for _ in range(200):
            if found.state is state:
                return found
            self.turn(step_s)
            found = self.notebook(notebook_id)
        raise AssertionError(f"it is {found.state}, not {state}: {self.told(notebook_id)}")

    def told(self, notebook_id: str) -> list[str]:
        found = self.records.notebook_events("p1", notebook_id, EventQuery())
        return [event.key for event in found]

    def idle_for(self, seconds: float, step_s: float = 30) -> None:
        """Let time pass in which an instance says what it is used for."""
        passed = 0.0
        while passed < seconds:
            self.look()
            self.turn(step_s)
            passed += step_s

    def look(self) -> None:
        now = self.clock.now()
        active = now if self.active_at is None else self.active_at
        self.engine.sayings[ACTIVITY] = {
            "at": now,
            "processes": {"active_at": active, "detail": "python train.py"},
            "kernels": {"active_at": active},
            "terminals": {"active_at": active},
            "pids": self.pids,
        }
        self.loop.activity.look()


def running(desk: Desk, **options: Any) -> str:
    made = desk.create(**options)
    desk.until(made, State.RUNNING)
    return made
