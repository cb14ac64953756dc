"""observe: compare what the engine sees with what is on record, and record the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from danlu.flow.board import Board, Entry
from danlu.flow.platform import Platform
from danlu.model.attempt import FINAL, Event, State, after
from danlu.model.event import JobEvent, Level
from danlu.model.job import Task
from danlu.ports.crash import crash_point
from danlu.ports.engine import Exit, Phase, Ref, Seen
from danlu.ports.records import Move

WATCHED = (State.LAUNCHING, State.RUNNING, State.STOPPING, State.COLLECTING)
ENDED = (Phase.COLLECTING, Phase.DONE, Phase.ABSENT)


def observe(platform: Platform, board: Board) -> dict[Ref, Seen]:
    """Look at every attempt that the engine was given; return what was seen."""
    watched = [entry for entry in board.entries(*WATCHED) if _handed_over(platform, entry)]
    seen = dict(platform.engine.observe([ref for entry in watched for ref in entry.refs]))
    for entry in watched:
        _compare(platform, board, entry, [seen[ref] for ref in entry.refs])
    return seen


def _handed_over(platform: Platform, entry: Entry) -> bool:
    if entry.attempt.state is not State.LAUNCHING or entry.launched:
        return True
    # It was being launched when the backup was made, so it has run since: not a second time.
    return platform.is_from_backup(entry.attempt)


def _compare(platform: Platform, board: Board, entry: Entry, seen: Sequence[Seen]) -> None:
    board.flag(entry, unreachable=any(look.unreachable for look in seen))
    if any(look.unreachable for look in seen):
        return
    tasks, events = _facts(entry, seen)
    event = _event(entry.attempt.state, seen)
    while event is not None:
        crash_point("observe.before-commit")
        move = _move(platform, entry, event, seen, tasks, events)
        if after(entry.attempt.state, event) in FINAL:
            board.end(move)
            return
        board.send(move)
        tasks, events = [], []
        # A short task may have started and ended between two looks: record both.
        event = _event(entry.attempt.state, seen)
    if tasks or events:
        board.note(entry, events, tasks)


def _event(state: State, seen: Sequence[Seen]) -> Event | None:
    """What the tasks' phases mean for an attempt in `state`, or None if nothing new."""
    ended = all(look.phase in ENDED for look in seen)
    if ended and any(look.phase is Phase.ABSENT for look in seen):
        return Event.VANISHED if state in (State.LAUNCHING, State.RUNNING, State.STOPPING) else None
    if state is State.LAUNCHING:
        if all(look.started_at is not None for look in seen):
            return Event.STARTED
        return Event.EXITED if ended else None
    if state in (State.RUNNING, State.STOPPING):
        return Event.EXITED if ended else None
    return None


def _move(
    platform: Platform,
    entry: Entry,
    event: Event,
    seen: Sequence[Seen],
    tasks: Sequence[Task],
    events: list[JobEvent],
) -> Move:
    now = platform.clock.now()
    reason = None
    at = now
    if event is Event.STARTED:
        at = max(look.started_at or 0 for look in seen)
        events = [*events, JobEvent(at, "job-running")]
    elif event is Event.EXITED:
        at = max((look.exit.ended_at for look in seen if look.exit), default=now)
        events = [*events, JobEvent(now, "job-collecting")]
    elif event is Event.VANISHED and entry.attempt.state is not State.STOPPING:
        gone = next(i for i, look in enumerate(seen) if look.phase is Phase.ABSENT)
        reason = platform.lost(entry.attempt, f"worker-{gone}")
        events = [*events, JobEvent(now, "job-lost", reason.told(), Level.ERROR)]
    return Move(entry.key, event, at, events=tuple(events), reason=reason, tasks=tuple(tasks))


def _facts(entry: Entry, seen: Sequence[Seen]) -> tuple[list[Task], list[JobEvent]]:
    """Task rows that changed, and the events that the changes and new notes give."""
    known: Mapping[int, Task] = {task.index: task for task in entry.tasks}
    places = {place.task: place for place in entry.attempt.placement}
    tasks: list[Task] = []
    events: list[JobEvent] = []
    for index, look in enumerate(seen):
        place = places.get(index)
        before = known.get(index) or Task(index, node=place.node if place else "")
        now = replace(before, started_at=look.started_at or before.started_at)
        now = replace(now, hung_at=look.hung_at)
        if look.exit is not None:
            now = _ended(now, look.exit)
        fresh = look.notes[before.notes_seen :]
        now = replace(now, notes_seen=max(len(look.notes), before.notes_seen))
        events.extend(
            JobEvent(note.at, note.key, dict(note.params), note.level, before.name)
            for note in fresh
        )
        if before.exit_code is None and look.exit is not None:
            events.append(_exit_event(now))
        if now != known.get(index):
            tasks.append(now)
    events.sort(key=lambda event: event.at)
    return tasks, events


def _ended(task: Task, exit_: Exit) -> Task:
    return replace(
        task,
        ended_at=exit_.ended_at,
        exit_code=exit_.exit_code,
        signal=exit_.signal,
        out_of_memory=exit_.out_of_memory,
    )


def _exit_event(task: Task) -> JobEvent:
    at = task.ended_at or 0
    if task.out_of_memory:
        return JobEvent(at, "task-oom", {"task": task.name}, Level.ERROR)
    if task.signal:
        params: dict[str, str | int] = {"task": task.name, "signal": task.signal}
        return JobEvent(at, "task-signal", params, Level.WARNING)
    level = Level.INFO if task.exit_code == 0 else Level.ERROR
    return JobEvent(at, "task-exit", {"task": task.name, "exit_code": task.exit_code or 0}, level)
