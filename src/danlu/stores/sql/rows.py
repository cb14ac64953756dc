"""Values of the model to rows and back. The order of columns stands here and nowhere else."""

from __future__ import annotations

import functools
import itertools
import json
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from danlu.model.attempt import Attempt, AttemptKey, Placement, State
from danlu.model.codec import from_json, one_level, to_json
from danlu.model.event import JobEvent, Level
from danlu.model.job import Intent, Job, JobSpec, JobView, Task
from danlu.model.reason import Reason
from danlu.ports.records import Submission
from danlu.stores.sql import schema
from danlu.stores.sql.bounds import maybe, whole, words

JOBS = schema.jobs.join(schema.specs, schema.specs.c.sequence == schema.jobs.c.sequence)
JOB = (
    schema.jobs.c.sequence,
    schema.jobs.c.id,
    schema.jobs.c.workspace,
    schema.jobs.c.created_at,
    schema.jobs.c.user,
    schema.jobs.c.intent,
    schema.jobs.c.client_token,
    schema.jobs.c.stopped_by,
    schema.specs.c.spec,
)
ATTEMPT = tuple(column for column in schema.attempts.c if column.key != "job_id")
TASK = tuple(column for column in schema.tasks.c if column.key not in ("job_id", "number"))

NEW_JOB = tuple(
    column.key for column in schema.jobs.c if column.key not in ("sequence", "deleted", "forgotten")
)
NEW_ATTEMPT = ("job_id", "number", "token", "state", "created_at", "due_at")
NEW_EVENT = tuple(column.key for column in schema.events.c if column.key != "sequence")
NEW_TASK = tuple(column.key for column in schema.tasks.c)
NEW_NOTEBOOK = tuple(column.key for column in schema.notebooks.c if column.key != "sequence")
NEW_NOTEBOOK_EVENT = tuple(
    column.key for column in schema.notebook_events.c if column.key != "sequence"
)

SPECS = 2048
SPEC_CHARS = 4096
"""Decoded specs are kept for jobs that are asked for again and again; large ones are not."""

_encode = json.JSONEncoder(separators=(",", ":")).encode
_STATES = {str(state): state for state in State}
_LEVELS = {str(level): level for level in Level}
_INTENTS = {str(intent): intent for intent in Intent}


def dump(value: object) -> str:
    """A value of the model as JSON. Halves of surrogate pairs, which no column can hold, stay
    escaped.
    """
    try:
        text = orjson.dumps(value, one_level, orjson.OPT_PASSTHROUGH_DATACLASS)
    except orjson.JSONEncodeError:
        return _encode(to_json(value))
    return text.decode()


def new_job(job: Job) -> tuple[Any, ...]:
    """The row of a new job, in the order of NEW_JOB."""
    spec = job.spec
    return (
        words(job.id, "id"),
        words(job.workspace, "workspace"),
        words(spec.name, "metadata.name"),
        words(spec.description, "metadata.description"),
        words(spec.flavor, "spec.resource.flavor_id"),
        words(job.user, "user"),
        whole(spec.node_count, "spec.resource.node_count"),
        whole(spec.priority, "spec.schedule_policy.priority"),
        whole(job.created_at, "created_at"),
        State.QUEUED.value,
        job.intent.value,
        words(job.stopped_by, "stopped_by"),
        words(job.client_token, "client_token"),
        spec.kind.value,
    )


def new_spec(spec: JobSpec) -> str:
    """The JSON of a spec."""
    return dump(spec)


def first_attempt(submission: Submission) -> tuple[Any, ...]:
    """The row of a first attempt, in the order of NEW_ATTEMPT."""
    if submission.attempt.key.job_id != submission.job.id:
        raise ValueError("a submission brings the job's own attempt")
    return new_attempt(submission.attempt)


def new_attempt(attempt: Attempt) -> tuple[Any, ...]:
    """The row of an attempt that begins, in the order of NEW_ATTEMPT."""
    key = attempt.key
    if attempt.state is not State.QUEUED:
        raise ValueError("an attempt begins queued")
    return (
        key.job_id,
        whole(key.number, "attempt", 1),
        words(key.token, "token"),
        State.QUEUED.value,
        whole(attempt.created_at, "created_at"),
        maybe(attempt.due_at, "due_at"),
    )


def new_events(job_id: str, events: Iterable[JobEvent]) -> list[tuple[Any, ...]]:
    """Rows of events, in the order of NEW_EVENT."""
    return [
        (
            job_id,
            whole(event.at, "at"),
            event.level.value,
            words(event.key, "key"),
            words(event.task, "task"),
            dump(event.params) if event.params else "{}",
        )
        for event in events
    ]


def new_tasks(key: AttemptKey, tasks: Iterable[Task]) -> list[tuple[Any, ...]]:
    """Rows of tasks, in the order of NEW_TASK."""
    return [
        (
            key.job_id,
            key.number,
            whole(task.index, "index", 0),
            words(task.node, "node"),
            words(task.host, "host"),
            maybe(task.started_at, "started_at"),
            maybe(task.ended_at, "ended_at"),
            maybe(task.exit_code, "exit_code"),
            words(task.signal, "signal"),
            int(task.out_of_memory),
            whole(task.notes_seen, "notes_seen", 0),
            maybe(task.hung_at, "hung_at"),
        )
        for task in tasks
    ]


def facts(value: Reason | Sequence[Placement] | None) -> str | None:
    """A JSON column that may be empty."""
    return None if value is None else dump(value)


def described(spec: str, description: str) -> str:
    """The JSON of a spec with another description."""
    return dump({**json.loads(spec), "description": description})


def job(row: Sequence[Any]) -> Job:
    """A job from the columns JOB."""
    sequence, job_id, workspace, created_at, user, intent, client_token, stopped_by, text = row
    spec = _spec(text) if len(text) <= SPEC_CHARS else read_spec(text)
    return Job(
        job_id,
        workspace,
        spec,
        created_at,
        user,
        _INTENTS[intent],
        sequence,
        client_token,
        stopped_by,
    )


def attempt(job_id: str, row: Sequence[Any]) -> Attempt:
    """An attempt from the columns ATTEMPT."""
    number, token, state, created, placed, launched, started, exited, ended = row[:9]
    reason, placement, unreachable, due = row[9:]
    return Attempt(
        AttemptKey(job_id, number, token),
        _STATES[state],
        created,
        placed,
        launched,
        started,
        exited,
        ended,
        None if reason is None else from_json(Reason, json.loads(reason)),
        () if placement is None else from_json(tuple[Placement, ...], json.loads(placement)),
        bool(unreachable),
        due,
    )


def task(row: Sequence[Any]) -> Task:
    """A task from the columns TASK."""
    index, node, host, started, ended, exit_code, signal, out_of_memory, notes, hung = row
    return Task(
        index, node, host, started, ended, exit_code, signal, bool(out_of_memory), notes, hung
    )


def views(rows: Iterable[Sequence[Any]]) -> list[JobView]:
    """Jobs from rows of JOB + ATTEMPT + TASK: one row a task, and one for a job without."""
    found = []
    for _, group in itertools.groupby(rows, operator.itemgetter(0)):
        same = list(group)
        first = same[0]
        found.append(
            JobView(
                job(first[:_ATTEMPT_AT]),
                attempt(first[1], first[_ATTEMPT_AT:_TASK_AT]),
                tuple(task(row[_TASK_AT:]) for row in same if row[_TASK_AT] is not None),
            )
        )
    return found


def in_order(row: Sequence[Any]) -> tuple[int, int]:
    """Sorts rows of JOB + ATTEMPT + TASK by the number of submission, then by task."""
    return (row[0], row[_TASK_AT] or 0)


def attempts(job_id: str, rows: Iterable[Sequence[Any]]) -> list[tuple[Attempt, list[Task]]]:
    """Attempts from rows of ATTEMPT + TASK."""
    found = []
    tasks_at = len(ATTEMPT)
    for _, group in itertools.groupby(rows, operator.itemgetter(0)):
        same = list(group)
        tasks = [task(row[tasks_at:]) for row in same if row[tasks_at] is not None]
        found.append((attempt(job_id, same[0][:tasks_at]), tasks))
    return found


def event(row: Sequence[Any]) -> JobEvent:
    """An event from the columns sequence, at, level, key, task, params."""
    sequence, at, level, key, task_name, params = row
    read = {} if params == "{}" else json.loads(params)
    return JobEvent(at, key, read, _LEVELS[level], task_name, sequence)


_ATTEMPT_AT = len(JOB)
_TASK_AT = _ATTEMPT_AT + len(ATTEMPT)


def read_spec(text: str) -> JobSpec:
    """The spec of this JSON."""
    return from_json(JobSpec, json.loads(text))


_spec = functools.lru_cache(SPECS)(read_spec)
