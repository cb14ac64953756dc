"""danlu outputs: what a job delivered, and whether it is still that."""

from __future__ import annotations

import json

from danlu.faces.cli import view
from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import printable

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from collections.abc import Iterator
    from typing import Any

DAMAGED = 1
COLORS = {"committed": "green", "none": "yellow", "committing": "yellow"}
LINES = {"Accept": "application/x-ndjson"}


def outputs(session: Session, *, job: str, verify: bool) -> int:
    """List outputs; with --verify read every file against its manifest. The exit status is 1
    where something is not as it was delivered, or was not delivered.
    """
    found = session.get("jobs", job)
    listed = session.get("jobs", found["id"], "outputs")["outputs"]
    if session.json:
        for one in listed:
            session.put_json(one)
    else:
        _table(session, listed)
    if not verify:
        return 0
    files = bad = 0
    for one in _checked(session, found["id"]):
        files += 1
        bad += one["problem"] != ""
        if session.json:
            session.put_json(one)
        elif one["problem"]:
            name = f"{one['output']}: {one['file']}"
            session.put(f"{printable(name)}  {session.text('output.' + one['problem'])}")
    missing = sum(one["state"] != "committed" for one in listed)
    if not session.json:
        session.say("outputs-damaged" if bad else "outputs-good", files=files, bad=bad)
        if missing:
            session.say("outputs-undelivered", count=missing)
    return DAMAGED if bad or missing else 0


def _table(session: Session, listed: list[Any]) -> None:
    rows = [
        (
            printable(one["name"]),
            printable(one["task"]),
            one["state"],
            str(one["attempt"]) if one["attempt"] else "-",
            str(one["files"]) if one["attempt"] else "-",
            view.size(one["bytes"]) if one["attempt"] else "-",
            printable(one["url"]),
        )
        for one in listed
    ]
    session.terminal.table(session.text("columns.outputs").split("|"), rows, COLORS)


def _checked(session: Session, job_id: str) -> Iterator[Any]:
    path = ("jobs", job_id, "outputs", "check")
    response = session.client().send("GET", path, headers=LINES)
    response.patience(None)
    rest = b""
    for data in response.chunks():
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield json.loads(line)
