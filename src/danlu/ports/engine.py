"""The seam to where tasks run.

Eight methods, all idempotent, addressed by our own `Ref`, batch-first. Powers that only some
engines have are one-method Protocols of their own beside a frozen `Powers` value. The contract
suite `tests/contract/engine.py` runs against every engine, the scriptable fake included.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, runtime_checkable

from danlu.model.event import Level
from danlu.model.execute import Command
from danlu.model.installed import Installed
from danlu.model.reason import ReasonCode
from danlu.model.resources import Offer
from danlu.model.script import Layout, TaskPlan
from danlu.model.texts import Language, text


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """The platform's own name for one task of one attempt; `token` proves the attempt."""

    job_id: str
    attempt: int
    task: int
    token: str

    @property
    def name(self) -> str:
        """A deterministic name for directories, containers and pods: letters, digits, `-`."""
        return f"{self.job_id}-{self.attempt}-{self.task}"


class Phase(StrEnum):
    """What an engine can say about a task."""

    ABSENT = "absent"
    """Nothing is known under this ref and token, and nothing runs: a proof, not a doubt."""
    LAUNCHING = "launching"
    """Accepted; staging inputs; the user's program has not started."""
    RUNNING = "running"
    COLLECTING = "collecting"
    """The program has ended (`exit` is set); outputs and logs are being stored."""
    DONE = "done"
    """Nothing is left to do; the log is complete."""


@dataclass(frozen=True, slots=True)
class Exit:
    """How the user's program ended. `signal` is a name such as SIGKILL, or empty.

    `problem` is set where the platform, not the program, ended the task or could not start it.
    """

    ended_at: int
    exit_code: int
    signal: str = ""
    out_of_memory: bool = False
    problem: ReasonCode | None = None
    detail: Mapping[str, str | int] = field(default_factory=dict)


TASK_HANGS = "task-hangs"
"""The note that says that nothing moves in a task."""

LOG_MATCHED = "log-matched"
"""The note that says that a line of the log matches a rule of the job."""


class StopReason(StrEnum):
    """Why a task is stopped; its program can read it (DANLU_STOP_FILE)."""

    STOP = "stop"
    PREEMPTION = "preemption"
    HANG = "hang"
    GANG = "gang"
    """Another task of the attempt has failed."""


@dataclass(frozen=True, slots=True)
class Note:
    """Something the node agent did or noticed; `key` names a text of `texts.events`."""

    at: int
    key: str
    params: Mapping[str, str | int] = field(default_factory=dict)
    level: Level = Level.INFO


@dataclass(frozen=True, slots=True)
class Seen:
    """What an engine saw of one task. Unknown values are None, never 0."""

    phase: Phase
    started_at: int | None = None
    exit: Exit | None = None
    problem: ReasonCode | None = None
    """Set with DONE where outputs or logs could not be stored."""
    detail: Mapping[str, str | int] = field(default_factory=dict)
    notes: Sequence[Note] = ()
    """Every note so far, oldest first."""
    unreachable: bool = False
    """The engine cannot tell at the moment; `phase` is the last one known."""
    hung_at: int | None = None
    """Since when (UTC ms) nothing moves in a task that runs; its stacks are recorded."""
    ready: bool = False
    """The task of a notebook says that its endpoints answer."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """What a log's limit cost in front of a chunk: bytes, line ends among them (None = unknown),
    and how many line ends there were in all before the chunk.
    """

    size: int
    lines: int | None
    line_ends_before: int

    def line(self, language: Language = "en") -> bytes:
        """What a reader is shown in its place: one line."""
        key = "log-gap-bytes" if self.lines is None else "log-gap"
        return text(key, language, size=self.size, lines=self.lines).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class LogChunk:
    """Bytes of a log from an absolute offset. `ended`: the task has ended and is drained.

    The offset is the one asked for, unless the bytes there were dropped: then it is that of the
    next byte that is kept, and `dropped` says what is missing.
    """

    offset: int
    data: bytes
    ended: bool
    dropped: Dropped | None = None

    @property
    def next(self) -> int:
        """The offset at which to go on."""
        return self.offset + len(self.data)


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a log: so many line ends lie before the byte at `offset`."""

    offset: int
    lines: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The use of one task at one instant. None = unknown, which is not 0.

    `cpu_cores` is the mean number of cores busy since the sample before; `gpu_busy` the share
    (0–1) of time in which a kernel ran, `gpu_memory` the used share, both averaged over the
    task's GPUs.
    """

    at: int
    cpu_cores: float | None = None
    memory_bytes: int | None = None
    gpu_busy: float | None = None
    gpu_memory: float | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """A task to be started on `node`. The engine fills the plan's hosts and rendezvous port."""

    ref: Ref
    node: str
    plan: TaskPlan


ISOLATION = ("memory", "cpu", "pids", "namespaces", "landlock")
"""Everything that keeps a task to its flavor and to what is its own, by the name of what does it:
three controllers, a view of processes and files of its own, rules for files."""


@dataclass(frozen=True, slots=True)
class Powers:
    """What an engine can do beyond the eight methods; *place* checks it."""

    literal_paths: bool = False
    unenforced: tuple[str, ...] = ISOLATION
    """What of ISOLATION tasks are not kept to."""
    local_paths: bool = False
    """Tasks see this machine's file system, so `file://` channels work."""
    endpoints: bool = False
    """Notebooks can run here: tasks can have endpoints (`Endpoints`) and volumes."""
    images: bool = False
    """Tasks run in images of any registry (engine.image_url), not in environments of the server."""


class Engine(Protocol):
    """Where tasks run. Every method may be called again with the same arguments."""

    @property
    def powers(self) -> Powers:
        """What this engine can do beyond these methods."""

    def capacity(self) -> Sequence[Offer]:
        """Every node that is up, with all that it has (not only what is free)."""

    def launch(self, launches: Sequence[Launch]) -> None:
        """Start all tasks or none; raise EngineError if that cannot be done.

        The same ref twice is one task: what exists under a ref and token is adopted.

        A launch fences the earlier attempts of its job: before any task starts, nothing of them
        lives, and none of them can be begun any more, however late somebody tries. An attempt
        that was fenced so is refused.
        """

    def observe(self, refs: Iterable[Ref]) -> Mapping[Ref, Seen]:
        """Say what is known of each ref. Never raises for unknown ones; cheap."""

    def stop(self, ref: Ref, grace_s: float, reason: StopReason = StopReason.STOP) -> None:
        """SIGTERM to the tree, `grace_s` seconds, then SIGKILL to all of it. Does not wait.

        The program can learn `reason`. Because of a hang, its stacks are recorded first.
        """

    def logs(self, ref: Ref, since: int, limit: int = 1 << 20) -> LogChunk:
        """At most `limit` bytes from the absolute offset `since`; does not wait for more.

        A chunk never spans what was dropped: it ends there, and the next one begins behind it.
        An unknown ref gives an empty chunk with `ended` set.
        """

    def stats(self, refs: Iterable[Ref]) -> Mapping[Ref, Sequence[Sample]]:
        """Every sample taken of each ref, oldest first; empty where there is none."""

    def remove(self, ref: Ref) -> None:
        """Forget the task, its log included, and free what it held. Stops it if it still runs."""

    def known(self) -> Sequence[Ref]:
        """Everything of ours that exists, for re-adoption and the orphan sweep."""


@runtime_checkable
class Wakes(Protocol):
    """An engine that tells when something may have changed, so that nobody has to poll."""

    def on_change(self, callback: WakeCallback) -> None:
        """Call `callback` (from any thread, quickly) whenever a task may have changed."""


@runtime_checkable
class Looks(Protocol):
    """An engine that can tell what a task has changed of its Python environment."""

    def installed(self, ref: Ref) -> Installed | None:
        """What was installed by hand in a task that runs, or has ended and is still known; None
        where that cannot be told.
        """


@runtime_checkable
class Marks(Protocol):
    """An engine that knows where a log's lines are without reading all of it."""

    def mark(self, ref: Ref, line: int, offset: int) -> Mark:
        """The last place known to lie before line `line` (counted from 1) begins, and not behind
        `offset`; the log's beginning where none is known.
        """


ENDPOINT_NAME = re.compile(r"[a-z][a-z.]{0,30}")
LAB, SSH = "lab.sock", "ssh.sock"
"""The endpoints of a notebook."""
NOTICE = "notice.sock"
"""Where its instance hears when it ends, and says whether somebody there wants it to go on."""
ACTIVITY = "activity.json"
"""What the instance of a notebook says of its own use, beside its endpoints."""


@runtime_checkable
class Endpoints(Protocol):
    """An engine whose tasks can listen where only the server reaches them: on no TCP port, and no
    other user of the machine gets there.
    """

    def endpoint(self, ref: Ref, name: str) -> socket.socket:
        """A connection to what the task listens on under `name`, without blocking: the socket is in
        non-blocking mode, and the caller closes it.

        Missing where nothing listens there (not yet, or no more), Unavailable where it takes no
        connection at the moment. `name` is one of ours, never a user's text.
        """

    def said(self, ref: Ref, name: str) -> Mapping[str, object] | None:
        """The small JSON object that the task's program published under `name` beside its
        endpoints; None where there is none. It is a user's text: it may say anything.
        """


@runtime_checkable
class Volumes(Protocol):
    """An engine that keeps directories which outlive tasks (`TaskPlan.volumes` names them)."""

    def make_volume(self, name: str) -> None:
        """Make a volume, if it is not there."""

    def volume_bytes(self, name: str) -> int | None:
        """What lies in a volume; None where there is none. Each file is looked at."""

    def remove_volume(self, name: str) -> None:
        """Remove a volume with all that is in it; EngineError where it cannot be. Repeatable."""


@runtime_checkable
class Closes(Protocol):
    """An engine that holds something of the server's (helpers, sockets) and can let go of it."""

    def close(self) -> None:
        """Let go. Tasks go on without it."""


class Execution(Protocol):
    """A command that runs beside a task's program."""

    @property
    def wire(self) -> socket.socket:
        """Both ways, a message (`model.execute`) a packet. The end of it ends the command."""

    def close(self) -> None:
        """End it if it runs, and let go. May take a moment."""


@runtime_checkable
class Executes(Protocol):
    """An engine that can run commands beside a task's program: with its files, environment, limits
    and rights.
    """

    def execute(self, ref: Ref, command: Command) -> Execution:
        """Run a command. Refused where the task does not run, EngineError where it cannot be
        done. May take a moment.
        """


class WakeCallback(Protocol):
    """What `Wakes.on_change` calls."""

    def __call__(self) -> None:
        """Something may have changed; `observe` tells what."""


@runtime_checkable
class Previews(Protocol):
    """An engine that can say where a task's fixed places would lie, for a dry run."""

    def layout(self, ref: Ref, plan: TaskPlan) -> Layout:
        """The layout that `plan` would get under `ref`; nothing is made."""
