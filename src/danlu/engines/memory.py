"""An engine without processes: every task follows a script on a clock that tests can turn.

It is shipped because the platform can be tried, taught and tested with it, and because it can
misbehave on command: be deaf, slow or late, lose a task, say things twice. It passes the same
contract suite as the engines that run real programs.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from danlu.engines.memory_script import Look, Script, follow
from danlu.model.errors import EngineError, Missing
from danlu.model.resources import GIB, Offer
from danlu.model.script import Layout, TaskPlan
from danlu.ports.engine import (
    Dropped,
    Launch,
    LogChunk,
    Phase,
    Powers,
    Ref,
    Sample,
    Seen,
    StopReason,
    WakeCallback,
)
from danlu.ports.world import Clock

ONE_NODE = (Offer("memory-0", cpus=8, memory_bytes=32 * GIB),)
SEES_LOCAL_PATHS = Powers(local_paths=True, endpoints=True)
ABSENT = Seen(Phase.ABSENT)


class ManualClock:
    """A clock that stands still until it is turned."""

    def __init__(self, start_ms: int = 1_700_000_000_000) -> None:
        self._start_ms = start_ms
        self._passed_s = 0.0

    def now(self) -> int:
        """UTC milliseconds."""
        return self._start_ms + round(self._passed_s * 1000)

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._passed_s

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass."""
        self._passed_s += seconds


@dataclass(slots=True)
class Faults:
    """How the engine misbehaves at the moment; tests change it as they go."""

    deaf: bool = False
    """Nothing answers: observe repeats what was known and says unreachable; the rest raises."""
    slow_s: float = 0.0
    """Every call takes this long (by the engine's `sleep`)."""
    late_s: float = 0.0
    """What observe says was true this long ago."""
    refuse_launches: int = 0
    """So many launches fail."""
    lose_launches: int = 0
    """So many launches are accepted and then never heard of again."""
    repeat_notes: bool = False
    """Every note is reported twice."""


@dataclass(slots=True)
class _Task:
    plan: TaskPlan
    script: Script
    launched_at: int
    stops: list[tuple[int, float]] = field(default_factory=list)


class Cluster:
    """What survives an engine object: the tasks. Two engines on one cluster see the same."""

    def __init__(self) -> None:
        self.tasks: dict[Ref, _Task] = {}
        self.volumes: dict[str, int] = {}
        """How many bytes lie in each."""
        self.lock = threading.RLock()


ScriptOf = Callable[[TaskPlan], Script]


class MemoryEngine:
    """Tasks that exist only in this process. `script_of` says what the task of a plan does."""

    def __init__(
        self,
        clock: Clock,
        *,
        script_of: ScriptOf | None = None,
        nodes: Sequence[Offer] = ONE_NODE,
        cluster: Cluster | None = None,
        powers: Powers = SEES_LOCAL_PATHS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.scripts: dict[str, Script] = {}
        """What the tasks of a job do, by the job's name; before `script_of`."""
        self.faults = Faults()
        self.nodes = tuple(nodes)
        self.listeners: dict[str, Callable[[socket.socket], None]] = {}
        """Who takes the connections to an endpoint of running tasks, by the endpoint's name."""
        self.sayings: dict[str, Mapping[str, object]] = {}
        """What the programs of running tasks publish, by the file's name."""
        self.kept_volumes = False
        """Whether volumes cannot be removed."""
        self.calls: list[str] = []
        """The names of the methods that were called, in order."""
        self._clock = clock
        self._script_of = script_of or (lambda _plan: Script())
        self._cluster = cluster or Cluster()
        self._powers = powers
        self._sleep = sleep
        self._callbacks: list[WakeCallback] = []
        self._last_seen: dict[Ref, Seen] = {}

    @property
    def powers(self) -> Powers:
        """What this engine can do beyond the eight methods."""
        return self._powers

    def on_change(self, callback: WakeCallback) -> None:
        """Call `callback` whenever a task may have changed."""
        self._callbacks.append(callback)

    def changed(self) -> None:
        """Tell everyone that asked; for a test that turned the clock."""
        for callback in self._callbacks:
            callback()

    def vanish(self, ref: Ref) -> None:
        """Lose a task without a trace, as a machine that was wiped does."""
        with self._cluster.lock:
            self._cluster.tasks.pop(ref, None)

    def layout(self, ref: Ref, plan: TaskPlan) -> Layout:  # noqa: ARG002 -- Previews' signature
        """Where the fixed places of a task would lie: nowhere, but under the right names."""
        root = f"/memory/{ref.name}"
        return Layout(
            home=f"{root}/home",
            cache=f"{root}/cache",
            temp=f"{root}/temp",
            python="/usr/bin/python3",
            path="/usr/bin:/bin",
        )

    # the eight

    def capacity(self) -> Sequence[Offer]:
        """The nodes that were given, or none while the engine is deaf."""
        self._called("capacity")
        return () if self.faults.deaf else self.nodes

    def launch(self, launches: Sequence[Launch]) -> None:
        """Begin the tasks' scripts."""
        self._called("launch")
        self._must_answer()
        if self.faults.refuse_launches:
            self.faults.refuse_launches -= 1
            raise EngineError("engine-failed", detail="the fake engine was told to refuse")
        if self.faults.lose_launches:
            self.faults.lose_launches -= 1
            return
        with self._cluster.lock:
            for launch in launches:
                self._check_token(launch.ref)
                self._fence_earlier(launch.ref)
            for launch in launches:
                self._begin(launch)
        self.changed()

    def observe(self, refs: Iterable[Ref]) -> Mapping[Ref, Seen]:
        """Say how far each script is."""
        self._called("observe")
        return {ref: self._seen(ref) for ref in refs}

    def stop(self, ref: Ref, grace_s: float, reason: StopReason = StopReason.STOP) -> None:
        """Send the script its SIGTERM, and SIGKILL after `grace_s`."""
        del reason
        self._called("stop")
        self._must_answer()
        with self._cluster.lock:
            task = self._cluster.tasks.get(ref)
            if task is not None:
                task.stops.append((self._clock.now(), grace_s))
        self.changed()

    def logs(self, ref: Ref, since: int, limit: int = 1 << 20) -> LogChunk:
        """What the script has printed, from an absolute offset."""
        self._called("logs")
        self._must_answer()
        look = self._look(ref)
        if look is None:
            return LogChunk(since, b"", ended=True)
        start, end, dropped = _kept(look, max(0, since))
        data = look.log[start : min(start + limit, end)]
        drained = start + len(data) >= len(look.log)
        return LogChunk(start, data, look.exit is not None and drained, dropped)

    def stats(self, refs: Iterable[Ref]) -> Mapping[Ref, Sequence[Sample]]:
        """One sample a second of the script's run, the first minute of it."""
        self._called("stats")
        self._must_answer()
        found: dict[Ref, Sequence[Sample]] = {}
        for ref in refs:
            look = self._look(ref)
            found[ref] = look.samples if look is not None else ()
        return found

    def remove(self, ref: Ref) -> None:
        """Forget the task."""
        self._called("remove")
        self._must_answer()
        self.vanish(ref)
        self._last_seen.pop(ref, None)
        self.changed()

    def known(self) -> Sequence[Ref]:
        """Every task that was launched and not removed."""
        self._called("known")
        self._must_answer()
        with self._cluster.lock:
            return sorted(self._cluster.tasks)

    # endpoints and volumes

    def endpoint(self, ref: Ref, name: str) -> socket.socket:
        """One end of a pair of sockets; who listens under `name` gets the other."""
        self._called("endpoint")
        look = self._look(ref)
        listener = self.listeners.get(name)
        if look is None or look.seen.phase is not Phase.RUNNING or listener is None:
            raise Missing("endpoint-missing", name=name)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        listener(theirs)
        return ours

    def said(self, ref: Ref, name: str) -> Mapping[str, object] | None:
        """What `sayings` holds, while the task runs."""
        look = self._look(ref)
        running = look is not None and look.seen.phase is Phase.RUNNING
        return self.sayings.get(name) if running else None

    def make_volume(self, name: str) -> None:
        """Make a volume, if it is not there."""
        self._called("make_volume")
        self._must_answer()
        self._cluster.volumes.setdefault(name, 0)

    def volume_bytes(self, name: str) -> int | None:
        """What lies in a volume."""
        return self._cluster.volumes.get(name)

    def remove_volume(self, name: str) -> None:
        """Remove a volume."""
        self._called("remove_volume")
        self._must_answer()
        if self.kept_volumes:
            raise EngineError("engine-failed", detail="the fake engine was told to keep volumes")
        self._cluster.volumes.pop(name, None)

    # how

    def _called(self, name: str) -> None:
        self.calls.append(name)
        if self.faults.slow_s:
            self._sleep(self.faults.slow_s)

    def _must_answer(self) -> None:
        if self.faults.deaf:
            raise EngineError("engine-failed", detail="the fake engine does not answer")

    def _check_token(self, ref: Ref) -> None:
        for other in self._cluster.tasks:
            if other.name == ref.name and other.token != ref.token:
                raise EngineError(
                    "engine-failed", detail=f"{ref.name} exists under the token of another attempt"
                )

    def _fence_earlier(self, ref: Ref) -> None:
        others = [other for other in self._cluster.tasks if other.job_id == ref.job_id]
        if any(other.attempt > ref.attempt for other in others):
            raise EngineError("engine-failed", detail=f"attempt {ref.attempt} is over")
        for other in others:
            if other.attempt < ref.attempt:
                self._cluster.tasks[other].stops.append((self._clock.now(), 0.0))

    def _begin(self, launch: Launch) -> None:
        if launch.ref not in self._cluster.tasks:
            script = self.scripts.get(launch.plan.job_name) or self._script_of(launch.plan)
            self._cluster.tasks[launch.ref] = _Task(launch.plan, script, self._clock.now())

    def _seen(self, ref: Ref) -> Seen:
        if self.faults.deaf:
            return replace(self._last_seen.get(ref, Seen(Phase.LAUNCHING)), unreachable=True)
        look = self._look(ref, self._clock.now() - round(self.faults.late_s * 1000))
        seen = ABSENT if look is None else look.seen
        if self.faults.repeat_notes:
            seen = replace(seen, notes=tuple(note for note in seen.notes for _ in range(2)))
        self._last_seen[ref] = seen
        return seen

    def _look(self, ref: Ref, at: int | None = None) -> Look | None:
        with self._cluster.lock:
            task = self._cluster.tasks.get(ref)
            if task is None:
                return None
            now = self._clock.now() if at is None else at
            return follow(task.script, task.plan, task.launched_at, task.stops, now)


def _kept(look: Look, since: int) -> tuple[int, int, Dropped | None]:
    """From where to where a log may be read at `since`: of a long one, head and tail are kept."""
    size, limit = len(look.log), look.log_limit_bytes
    if not limit or size <= limit:
        return since, size, None
    head = look.log.find(b"\n", limit // 2) + 1 or limit // 2
    tail = look.log.find(b"\n", size - limit // 2) + 1 or size - limit // 2
    if since < head:
        return since, head, None
    if since >= tail:
        return since, size, None
    lines = look.log.count(b"\n", since, tail)
    return tail, size, Dropped(tail - since, lines, look.log.count(b"\n", 0, tail))
