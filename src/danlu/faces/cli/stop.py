"""danlu stop: stop jobs."""

from __future__ import annotations

from danlu.faces.cli.session import Session
from danlu.faces.cli.waiting import until_final


def stop(session: Session, *, jobs: tuple[str, ...], wait: bool) -> int:
    """Ask for a stop of every job that is named; all are looked up before one is stopped."""
    found = [session.get("jobs", job) for job in jobs]
    for job in found:
        stopping = session.client().post("jobs", job["id"], "stop")
        if wait:
            stopping = until_final(session, job["id"])
        if session.json:
            session.put_json(stopping)
        elif session.quiet:
            session.put(job["id"])
        else:
            key = "stopped" if stopping.get("ended_at") else "stopping"
            session.say(key, name=job["name"], id=job["id"][:8], state=stopping["state"])
    return 0
