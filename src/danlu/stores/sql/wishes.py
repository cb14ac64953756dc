"""What users want of their jobs after submitting them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, exists, select, update

from danlu.model.job import Intent
from danlu.stores.sql import rows, schema
from danlu.stores.sql.session import Session


class OfJob(NamedTuple):
    """A job of a workspace, and what goes with the wish."""

    workspace: str
    job_id: str
    text: str = ""
    events: Sequence[tuple[Any, ...]] = ()

    @property
    def names(self) -> dict[str, str]:
        """The values that `is_job` compares with."""
        return {"of_job": self.job_id, "of_workspace": self.workspace}


def is_job() -> ColumnElement[bool]:
    """The job `of_job` of the workspace `of_workspace`, unless it was deleted."""
    jobs = schema.jobs.c
    return and_(
        jobs.id == bindparam("of_job"),
        jobs.workspace == bindparam("of_workspace"),
        schema.NOT_DELETED,
    )


def _is_live() -> ColumnElement[bool]:
    """Whether the job has a live attempt: only the latest one can be."""
    attempts = schema.attempts.c
    live = schema.LIVE_ATTEMPT
    return exists().where(attempts.job_id == schema.jobs.c.id, live)


_STOP = (
    update(schema.jobs)
    .values(intent=Intent.STOP.value, stopped_by=bindparam("by"))
    .where(is_job(), schema.jobs.c.intent == Intent.RUN.value, _is_live())
)


def want_stop(session: Session, item: OfJob) -> bool:
    """Record the wish; the flow acts on it."""
    changed = session.execute(_STOP, **item.names, by=item.text) > 0
    if changed:
        session.insert(schema.events, item.events)
    return changed


_SPEC = (
    select(schema.specs.c.sequence, schema.specs.c.spec)
    .join(schema.jobs, schema.specs.c.sequence == schema.jobs.c.sequence)
    .where(is_job())
)
_NEW_SPEC = (
    update(schema.specs)
    .values(spec=bindparam("whole"))
    .where(schema.specs.c.sequence == bindparam("of_sequence"))
)
_DESCRIBE = update(schema.jobs).values(description=bindparam("text")).where(is_job())


def describe(session: Session, item: OfJob) -> bool:
    """Change the description in the spec and in the column that is searched."""
    found = session.rows(_SPEC, **item.names)
    for sequence, spec in found:
        whole = rows.described(spec, item.text)
        session.execute(_NEW_SPEC, of_sequence=sequence, whole=whole)
        session.execute(_DESCRIBE, **item.names, text=item.text)
    return bool(found)


_DELETE = update(schema.jobs).values(deleted=1).where(is_job(), ~_is_live())


def delete(session: Session, item: OfJob) -> bool:
    """Hide a job: no read finds it any more; its id and client token stay taken."""
    return session.execute(_DELETE, **item.names) > 0


_FORGET = (
    update(schema.jobs)
    .values(forgotten=1)
    .where(schema.jobs.c.id == bindparam("of_job"), schema.UNSWEPT)
)


def forget(session: Session, job_id: str) -> bool:
    """Note that nothing is left of a deleted job outside the records."""
    return session.execute(_FORGET, of_job=job_id) > 0
