"""What a task of the memory engine does, and how far it is at an instant. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from danlu.model.event import Level
from danlu.model.reason import ReasonCode
from danlu.model.resources import GIB
from danlu.model.script import TaskPlan
from danlu.ports.engine import Exit, Note, Phase, Sample, Seen

NEVER = 1 << 62
KILLED = 137


@dataclass(frozen=True, slots=True)
class Script:
    """The life of a task. Seconds count from the step before.

    `duration_s` None = runs until it is stopped. `on_term_s` is how long the program takes to end
    after SIGTERM, None = it ignores it. `output` and `notes` say how many seconds after the start
    (of the program; of the launch) each piece appears. `starts` False = the program never ran:
    staging failed with `problem`.
    """

    stage_s: float = 0.0
    duration_s: float | None = 0.0
    exit_code: int = 0
    signal: str = ""
    out_of_memory: bool = False
    starts: bool = True
    problem: ReasonCode | None = None
    detail: Mapping[str, str | int] = field(default_factory=dict)
    output: Sequence[tuple[float, bytes]] = ()
    notes: Sequence[tuple[float, str, Mapping[str, str | int]]] = ()
    on_term_s: float | None = 0.0
    on_term_code: int = 143
    collect_s: float = 0.0
    storing_problem: ReasonCode | None = None
    storing_detail: Mapping[str, str | int] = field(default_factory=dict)
    hangs_after_s: float | None = None
    """Nothing moves any more from so many seconds after the start on."""
    ready_s: float | None = None
    """The endpoints of a notebook answer so many seconds after the start; None = never."""
    cpu_cores: float = 1.0
    memory_bytes: int = GIB


@dataclass(frozen=True, slots=True)
class Look:
    """Everything that can be seen of a task at one instant."""

    seen: Seen
    log: bytes
    exit: Exit | None
    script: Script
    ran: tuple[int, int] | None
    """From when until when the program ran; None = not at all."""
    log_limit_bytes: int = 0

    @property
    def samples(self) -> Sequence[Sample]:
        """One a second of the run, the first minute of it."""
        if self.ran is None:
            return ()
        began, until = self.ran
        cores, memory = self.script.cpu_cores, self.script.memory_bytes
        count = min(60, (until - began) // 1000 + 1)
        return tuple(Sample(began + 1000 * i, cores, memory) for i in range(count))


def follow(
    script: Script,
    plan: TaskPlan,
    launched_at: int,
    stops: Sequence[tuple[int, float]],
    now: int,
) -> Look:
    """How far `script` is at `now`. `stops` are (instant, grace in seconds), oldest first."""
    starts_at = launched_at + _ms(script.stage_s)
    before_start = [at for at, _ in stops if at < starts_at]
    if before_start or not script.starts:
        ended = _unstarted(script, starts_at, before_start)
    else:
        ended = _run(script, plan, starts_at, stops)
    started = script.starts and not before_start and now >= starts_at
    done_at = ended.ended_at + _ms(script.collect_s)
    exit_ = ended if now >= ended.ended_at else None
    done = exit_ is not None and now >= done_at
    seen = Seen(
        phase=_phase(started, exit_, done),
        started_at=starts_at if started else None,
        exit=exit_,
        problem=script.storing_problem if done else None,
        detail=script.storing_detail if done else {},
        notes=_notes(script, launched_at, now),
        hung_at=_after(script.hangs_after_s, starts_at, now) if started and not exit_ else None,
        ready=bool(started and not exit_ and _after(script.ready_s, starts_at, now)),
    )
    until = min(now, ended.ended_at)
    log = _log(script, starts_at, until) if started else b""
    ran = (starts_at, until) if started else None
    return Look(seen, log, exit_, script, ran, plan.log_limit_bytes)


def _after(after_s: float | None, starts_at: int, now: int) -> int | None:
    """The instant so long after the start, once it has come."""
    if after_s is None:
        return None
    at = starts_at + _ms(after_s)
    return at if now >= at else None


def _phase(started: bool, exit_: Exit | None, done: bool) -> Phase:  # noqa: FBT001 -- private
    if done:
        return Phase.DONE
    if exit_ is not None:
        return Phase.COLLECTING
    return Phase.RUNNING if started else Phase.LAUNCHING


def _unstarted(script: Script, starts_at: int, stops: Sequence[int]) -> Exit:
    if stops:
        return Exit(min(stops), 143, "SIGTERM")
    code = script.exit_code or 1
    return Exit(starts_at, code, problem=script.problem, detail=script.detail)


def _run(
    script: Script, plan: TaskPlan, starts_at: int, stops: Sequence[tuple[int, float]]
) -> Exit:
    ends_at = NEVER if script.duration_s is None else starts_at + _ms(script.duration_s)
    limit_at = NEVER
    if plan.time_limit_s is not None:
        limit_at = starts_at + _ms(plan.time_limit_s)
    told = [stop for stop in stops if stop[0] < min(ends_at, limit_at)]
    if not told and limit_at < ends_at:
        return _stopped(script, limit_at, limit_at + _ms(plan.grace_s), plan)
    if told:
        kill_at = min(at + _ms(grace_s) for at, grace_s in told)
        stopped = _stopped(script, told[0][0], kill_at, None)
        if stopped.ended_at < ends_at:
            return stopped
    return Exit(
        ends_at,
        script.exit_code,
        script.signal,
        script.out_of_memory,
        script.problem,
        script.detail,
    )


def _stopped(script: Script, term_at: int, kill_at: int, limited: TaskPlan | None) -> Exit:
    leaves_at = NEVER if script.on_term_s is None else term_at + _ms(script.on_term_s)
    problem = None if limited is None else ReasonCode.TIME_LIMIT
    detail = {} if limited is None else {"limit_s": limited.time_limit_s or 0}
    if kill_at < leaves_at:
        return Exit(kill_at, KILLED, "SIGKILL", problem=problem, detail=detail)
    signal = "SIGTERM" if script.on_term_code == 143 else ""
    return Exit(leaves_at, script.on_term_code, signal, problem=problem, detail=detail)


def _notes(script: Script, launched_at: int, now: int) -> tuple[Note, ...]:
    return tuple(
        Note(launched_at + _ms(after_s), key, params, Level.INFO)
        for after_s, key, params in script.notes
        if launched_at + _ms(after_s) <= now
    )


def _log(script: Script, starts_at: int, until: int) -> bytes:
    return b"".join(data for after_s, data in script.output if starts_at + _ms(after_s) <= until)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
