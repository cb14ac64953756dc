"""Jobs to put on record, and the places where records are kept."""

from __future__ import annotations

import itertools
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from danlu.engines.memory import ManualClock
from danlu.model.attempt import MOVES, Attempt, AttemptKey, Event, State
from danlu.model.event import JobEvent, Level
from danlu.model.identity import User, Workspace
from danlu.model.job import Access, EngineChoice, Input, Job, JobSpec, Output, Parameter
from danlu.model.resources import Shape
from danlu.model.url import LocalUrl, ObjectUrl
from danlu.ports.records import Move, Records, Submission
from danlu.stores.sql import open_records

WAIT = 60
"""Seconds that a write may take before a test is taken to hang."""

WORKSPACE = Workspace("ws", "here-1")
OTHER = Workspace("other", "here-1")
USER = User("u1", "alice", "ws", "d1", "$argon2id$x")

_numbers = itertools.count(1)


@dataclass(slots=True)
class Store:
    """A database that may be opened again and again; all that was opened is closed at the end."""

    where: str | Path
    key_file: Path
    clock: ManualClock
    opened: list[Records] = field(default_factory=list)

    @property
    def is_sqlite(self) -> bool:
        return isinstance(self.where, Path)

    def open(self) -> Records:
        self.opened.append(open_records(self.where, self.key_file, self.clock))
        return self.opened[-1]

    def close(self) -> None:
        for records in self.opened:
            records.close()
        self.opened.clear()


def spec(name: str = "train", **values: Any) -> JobSpec:
    """A small job; `values` replace fields of the spec."""
    made = JobSpec(name, "danlu.cpu.1u", Shape(1, 1 << 30), command="python train.py")
    return replace(made, **values)


def full_spec() -> JobSpec:
    """A job that uses every field, with texts that are hard to keep."""
    return JobSpec(
        name="训练-Ünïcode",
        flavor="danlu.gpu.v100.1",
        shape=Shape(8, 64 << 30, 1, "Tesla V100"),
        node_count=2,
        description='line\nbreak, "quotes", \\, 🔥, e\u0301',
        annotations={"k": "v", "空": ""},
        engine=EngineChoice("id", "PyTorch", "2.1", "swr/x:1"),
        code=ObjectUrl("danlu", "code/a b/"),
        boot_file="train.py",
        working_dir="/home/ma-user/x",
        local_code_dir="/home/ma-user/c",
        parameters=(Parameter("lr", "1e-3"), Parameter("lr", ""), Parameter("空", "a=b\n'\"$x`")),
        inputs=(
            Input("data", ObjectUrl("danlu", "d/"), Access.ENV, "/cache/d"),
            Input("own", LocalUrl("/srv/data set/训练")),
        ),
        outputs=(Output("out", ObjectUrl("danlu", "o/"), prefetch=True),),
        environments={"A": "x\ny", "B": "\ud800 half a pair, and a NUL \0"},
        priority=3,
        time_limit_s=3600,
        grace_s=5,
        log_url=ObjectUrl("danlu", "log/"),
    )


def submission(
    wanted: JobSpec | None = None,
    *,
    workspace: str = WORKSPACE.id,
    at: int | None = None,
    token: str = "",
    user: str = "alice",
    job_id: str | None = None,
) -> Submission:
    """A job that nobody submitted before, with two events."""
    number = next(_numbers)
    created = 1_000_000 + number if at is None else at
    made = job_id or str(uuid.uuid4())
    job = Job(made, workspace, wanted or spec(), created, user, client_token=token)
    attempt = Attempt(AttemptKey(made, 1, uuid.uuid4().hex), State.QUEUED, created)
    events = (
        JobEvent(created, "job-submitted", {"user": user}),
        JobEvent(created, "job-queued", level=Level.WARNING),
    )
    return Submission(job, attempt, events)


def submitted(records: Records, *wanted: Submission) -> list[AttemptKey]:
    """Submit all of them and wait."""
    made = wanted or (submission(),)
    futures = [records.submit(one) for one in made]
    for future in futures:
        future.result(WAIT)
    return [one.attempt.key for one in made]


def way_to(state: State) -> list[Event]:
    """The shortest run of events that leads from queued to `state`."""
    ways: dict[State, list[Event]] = {State.QUEUED: []}
    found = [State.QUEUED]
    for source in found:
        for (left, event), reached in MOVES.items():
            if left is source and reached not in ways:
                ways[reached] = [*ways[source], event]
                found.append(reached)
    return ways[state]


def brought_to(records: Records, state: State, at: int = 1) -> AttemptKey:
    """A new job whose attempt has been moved to `state`."""
    wanted = submission()
    futures: list[Any] = [records.submit(wanted)]
    key = wanted.attempt.key
    futures += [records.move(Move(key, event, at)) for event in way_to(state)]
    for future in futures:
        future.result(WAIT)
    return key
