"""danlu why: why a job waits, or how it ended."""

from __future__ import annotations

from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import printable


def why(session: Session, *, job: str) -> int:
    """Print the one sentence that explains a job's state."""
    found = session.get("jobs", job)
    answer = session.get("jobs", found["id"], "why")
    if session.json:
        session.put_json({"id": found["id"], **answer})
    else:
        session.put(printable(str(answer["sentence"])))
    return 0
