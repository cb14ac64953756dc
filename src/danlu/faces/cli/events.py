"""danlu events: what happened to a job."""

from __future__ import annotations

from danlu.faces.cli import view
from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import printable

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any

PAGE = 500
COLORS = {"Error": "red", "Warning": "yellow"}


def events(session: Session, *, job: str, count: int | None) -> int:
    """List a job's events, the first one first; with --json one object a line."""
    found = session.get("jobs", job)
    listed = every(session, found["id"])
    listed = listed[-count:] if count else listed
    if session.json:
        for one in listed:
            session.put_json(one)
        return 0
    rows = [(view.instant(one["at"]), one["level"], _sentence(one)) for one in listed]
    session.terminal.table(session.text("columns.events").split("|"), rows, COLORS)
    return 0


def every(session: Session, job_id: str) -> list[Any]:
    """All events of a job, page by page."""
    listed: list[Any] = []
    after = 0
    while True:
        page = session.get("jobs", job_id, "events", query={"after": after, "limit": PAGE})
        listed += page["events"]
        if len(page["events"]) < PAGE:
            return listed
        after = page["events"][-1]["sequence"]


def _sentence(event: Any) -> str:
    said = printable(str(event["sentence"]))
    task = event.get("task")
    return f"{task}: {said}" if task and not said.startswith(f"{task}:") else said
