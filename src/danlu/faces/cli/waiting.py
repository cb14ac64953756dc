"""Waits for a job, over restarts of the server."""

from __future__ import annotations

import time

from danlu.faces.cli.failure import RETRY, Failure
from danlu.faces.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any

POLL_S = 25
PATIENCE_S = 120.0
"""How long a server may be away before waiting for it is given up."""


def until_final(session: Session, job_id: str) -> Any:
    """The job once it has ended."""
    while True:
        query = {"wait": "final", "timeout_s": POLL_S}
        job = persistently(session, lambda query=query: session.get("jobs", job_id, query=query))
        if job["exit"] is not None:
            return job


def persistently(session: Session, ask: Any) -> Any:
    """What `ask()` gives, trying again while the server is away."""
    began = time.monotonic()
    pause, told = 0.05, False
    while True:
        try:
            return ask()
        except Failure as failure:
            if failure.exit_status != RETRY or time.monotonic() - began > PATIENCE_S:
                raise
            if not told and time.monotonic() - began > 1:
                session.say("server-away", detail=failure.message(session.language))
                told = True
        time.sleep(pause)
        pause = min(2.0, pause * 2)
