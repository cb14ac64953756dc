"""danlu rm: delete jobs that have ended."""

from __future__ import annotations

import sys

from danlu.faces.cli import view
from danlu.faces.cli.failure import INTERRUPTED, USAGE, Failure
from danlu.faces.cli.session import Session
from danlu.faces.cli.waiting import until_final

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any


def rm(session: Session, *, jobs: tuple[str, ...], stop: bool, yes: bool) -> int:
    """Delete jobs with their logs; all are looked up, and asked about, before one is deleted."""
    found = [session.get("jobs", job) for job in jobs]
    if not yes and not _confirmed(session, found):
        return INTERRUPTED
    for job in found:
        if stop and job["state"] in view.LIVE:
            session.client().post("jobs", job["id"], "stop")
            until_final(session, job["id"])
        session.client().delete("jobs", job["id"])
        if session.json:
            session.put_json({"id": job["id"], "deleted": True})
        elif session.quiet:
            session.put(job["id"])
        else:
            session.say("deleted", name=job["name"], id=job["id"][: view.ID_CHARS])
    return 0


def _confirmed(session: Session, jobs: list[Any]) -> bool:
    """Ask at a terminal; elsewhere nobody could answer."""
    if not sys.stdin.isatty():
        raise Failure(USAGE, "rm-needs-yes")
    names = ", ".join(f"{job['name']} ({job['id'][: view.ID_CHARS]})" for job in jobs)
    session.terminal.err.write(f"{session.text('rm-ask', jobs=names)} ")
    session.terminal.err.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes", "是")
