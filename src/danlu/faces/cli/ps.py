"""danlu ps: the jobs that are live or ended lately."""

from __future__ import annotations

import time

from danlu.faces.cli import view
from danlu.faces.cli.failure import USAGE, Failure
from danlu.faces.cli.session import Session
from danlu.faces.cli.table import STATES
from danlu.faces.cli.texts import printable

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any

RECENT_S = 86_400
DEFAULT_COUNT = 20
PAGE = 100


def ps(
    session: Session, *, every: bool, state: str | None, name: str | None, count: int | None
) -> int:
    """List jobs, the latest first."""
    _check_states(state)
    filters = {"state": state, "name": name}
    if every or state or name or count:
        jobs, total = _latest(session, filters, count or (1 << 40 if every else DEFAULT_COUNT))
    else:
        jobs, total = _live_and_recent(session)
    if session.json:
        session.put_json({"jobs": jobs, "total": total})
    elif session.quiet:
        for job in jobs:
            session.put(job["id"])
    elif not jobs:
        session.say("no-jobs" if not total else "no-recent-jobs", total=total)
    else:
        _show(session, jobs)
    return 0


def _check_states(states: str | None) -> None:
    for one in (states or "").split(","):
        if states and one not in STATES:
            raise Failure(USAGE, "state-unknown", state=one, states=", ".join(STATES))


def _latest(session: Session, filters: dict[str, str | None], count: int) -> tuple[list[Any], int]:
    jobs: list[Any] = []
    total = 0
    while len(jobs) < count:
        query = {"limit": min(PAGE, count - len(jobs)), "offset": len(jobs), **filters}
        page = session.get("jobs", query=query)
        total = page["total"]
        jobs += page["jobs"]
        if not page["jobs"] or len(jobs) >= total:
            break
    return jobs, total


def _live_and_recent(session: Session) -> tuple[list[Any], int]:
    since = (time.time() - RECENT_S) * 1000
    latest, total = _latest(session, {}, DEFAULT_COUNT)
    jobs = [job for job in latest if job["state"] in view.LIVE or _ended(job) > since]
    if total > len(latest):
        live, _ = _latest(session, {"state": ",".join(view.LIVE)}, 1000)
        listed = {job["id"] for job in jobs}
        jobs += [job for job in live if job["id"] not in listed]
    return jobs, total


def _ended(job: Any) -> int:
    return int(job.get("ended_at") or job["created_at"])


def _show(session: Session, jobs: list[Any]) -> None:
    short = view.short_ids([job["id"] for job in jobs])
    now = time.time()
    header = session.text("columns.ps").split("|")
    rows = [
        (
            short[job["id"]],
            printable(job["name"]),
            view.state(job),
            view.age(job["created_at"], now),
            view.seconds(view.duration_s(job, now)),
            printable(str(job.get("flavor") or "-"))
            + (f" × {job['node_count']}" if job.get("node_count", 1) > 1 else ""),
            printable(view.why(job)),
        )
        for job in jobs
    ]
    session.terminal.table(header, rows, view.STATE_COLORS)
