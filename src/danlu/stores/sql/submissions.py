"""New jobs, many in one go; a client token makes one job, however often it is sent."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, bindparam, select

from danlu.model.job import Job
from danlu.ports.crash import crash_point
from danlu.ports.records import Submission, Submitted
from danlu.stores.sql import rows, schema
from danlu.stores.sql.database import MOST_ROWS, powers
from danlu.stores.sql.reads import Reads
from danlu.stores.sql.session import Session


class NewJob(NamedTuple):
    """A submission as rows, made on the caller's thread."""

    job: Job
    row: tuple[Any, ...]
    spec: str
    attempt: tuple[Any, ...]
    events: list[tuple[Any, ...]]

    @property
    def token(self) -> tuple[str, str]:
        """The client token, which means something inside a workspace only."""
        return (self.job.workspace, self.job.client_token)


def new_job(submission: Submission) -> NewJob:
    """Raise Invalid for what no column can hold."""
    job = submission.job
    return NewJob(
        job,
        rows.new_job(job),
        rows.new_spec(job.spec),
        rows.first_attempt(submission),
        rows.new_events(job.id, submission.events),
    )


def submit(session: Session, items: Sequence[NewJob]) -> list[Submitted]:
    """Add the jobs whose client token is new, and find the jobs of the other tokens."""
    known = _by_token(session, items)
    new: list[NewJob] = []
    for item in items:
        if not item.job.client_token:
            new.append(item)
        elif item.token not in known:
            known[item.token] = item.job
            new.append(item)
    numbers = session.insert_jobs([item.row for item in new])
    specs = [(number, item.spec) for number, item in zip(numbers, new, strict=True)]
    session.insert(schema.specs, specs)
    session.insert(schema.attempts, [item.attempt for item in new])
    session.insert(schema.events, [event for item in new for event in item.events])
    crash_point("submit.before-commit")
    made = {
        item.job.id: dataclasses.replace(item.job, sequence=number)
        for item, number in zip(new, numbers, strict=True)
    }
    added = {id(item) for item in new}
    results = []
    for item in items:
        job = known.get(item.token, item.job)
        results.append(Submitted(made.get(job.id, job), created=id(item) in added))
    return results


def _by_token(session: Session, items: Sequence[NewJob]) -> dict[tuple[str, str], Job]:
    """The jobs that earlier submissions made with the client tokens of these."""
    tokens: dict[str, set[str]] = {}
    for item in items:
        if item.job.client_token:
            tokens.setdefault(item.job.workspace, set()).add(item.job.client_token)
    known: dict[tuple[str, str], Job] = {}
    for workspace, of_workspace in tokens.items():
        listed = list(of_workspace)
        at = 0
        for count in powers(len(listed)):
            part = {f"token_{i}": token for i, token in enumerate(listed[at : at + count])}
            at += count
            for row in session.rows(_BY_TOKEN[count], workspace=workspace, **part):
                job = rows.job(row)
                known[(workspace, job.client_token)] = job
    return known


def of_token(reads: Reads, workspace: str, token: str) -> Job | None:
    """The job that an earlier submission made with a client token."""
    found = reads.rows(_BY_TOKEN[1], workspace=workspace, token_0=token)
    return rows.job(found[0]) if found else None


def _by(count: int) -> Select[Any]:
    jobs = schema.jobs.c
    tokens = [bindparam(f"token_{i}", type_=jobs.client_token.type) for i in range(count)]
    return (
        select(*rows.JOB)
        .select_from(rows.JOBS)
        .where(
            jobs.workspace == bindparam("workspace"),
            jobs.client_token.in_(tokens),
            schema.HAS_TOKEN,
        )
    )


_BY_TOKEN = {1 << bit: _by(1 << bit) for bit in range(MOST_ROWS.bit_length())}
