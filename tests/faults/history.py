"""What a run of the kill harness leaves on record, for the checker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Order:
    """A job that the harness wants: its client token is `label`."""

    label: str
    steps: int
    code: int = 0
    tasks: int = 1
    stopped: bool = False
    """Whether a user asks for its stop while it lives."""
    retries: int = 0
    """Further attempts that its policy grants after failures of its own."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """The server gave this job for a label. Sent twice, a label must give one job."""

    label: str
    job: str


@dataclass(frozen=True, slots=True)
class Word:
    """Something a program said, or (`gone`) that the kernel closed its connection. `at` counts
    the words of all programs in the order in which they were heard.
    """

    at: int
    kind: str
    """start, step, end or gone."""
    label: str
    job: str
    attempt: int
    task: int
    run: str
    """Made afresh by each process."""
    step: int = 0


@dataclass(frozen=True, slots=True)
class Kill:
    """A process that was killed: server, starter, agent or shim; for the last two, whose."""

    target: str
    job: str = ""
    attempt: int = 0
    point: str = ""
    """The crash point, or empty for a kill at random."""


@dataclass(frozen=True, slots=True)
class Look:
    """What the API said of a job at one moment. Looks are in order."""

    job: str
    attempt: int
    state: str


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """An attempt in the database at the end."""

    number: int
    token: str
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class Remains:
    """A job at the end: its rows, its events, its stored outputs, and its last attempt's log."""

    job: str
    label: str
    attempts: tuple[AttemptRow, ...]
    events: tuple[str, ...]
    outputs: Mapping[str, bytes]
    logs: Mapping[int, bytes]
    """By task."""


@dataclass(slots=True)
class History:
    """One run."""

    orders: list[Order] = field(default_factory=list)
    accepted: list[Accepted] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    remains: list[Remains] = field(default_factory=list)
    integrity: list[str] = field(default_factory=list)
    """What SQLite's integrity_check said, each time it was asked."""
    survivors: list[str] = field(default_factory=list)
    """Processes of tasks that were still there when everything had ended."""
    refusals: list[str] = field(default_factory=list)
    """Answers of 500 and above, 503 excepted."""
