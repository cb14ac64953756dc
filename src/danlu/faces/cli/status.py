"""danlu status: how the server is."""

from __future__ import annotations

from danlu.faces.cli import local, view
from danlu.faces.cli.client import Client
from danlu.faces.cli.failure import RETRY
from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import printable

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any


def status(session: Session) -> int:
    """Print the server's state; a local one that is down is not started, and the status is 75."""
    client = _client(session)
    if client is None:
        if session.json:
            session.put_json({"up": False, "data": session.data})
        else:
            session.say("server-not-up", data=session.data)
        return RETRY
    found = client.get("status", timeout_s=10)
    if session.json:
        session.put_json({"up": True, "api": client.endpoint.api, **found})
        return 0
    label = session.text
    rows = [
        (label("status.api"), client.endpoint.api),
        (label("status.version"), found["version"]),
        (label("status.up"), view.seconds(found["uptime_s"])),
        (label("status.pid"), str(found.get("pid", "-"))),
        (label("status.data"), str(found.get("data", "-"))),
        (label("status.engine"), str(found.get("engine", "-"))),
        (label("status.environment"), _plain(found.get("environment"))),
        (label("status.jobs"), _jobs(session, found["jobs"])),
    ]
    if found.get("problem"):
        rows.append((label("status.problem"), printable(str(found["problem"]))))
    session.terminal.table(label("columns.status").split("|"), rows)
    session.put("")
    nodes = [_node(one) for one in found["capacity"]]
    session.terminal.table(label("columns.capacity").split("|"), nodes)
    return 0


def _client(session: Session) -> Client | None:
    if session.server:
        return session.client()
    ready = local.read_ready(session.data)
    if ready is None or local.held_by(session.data) is None:
        return None
    trace = session.trace if session.debug else None
    return Client(local.endpoint(ready, session.data), session.language, trace=trace)


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(str(part) for part in value.values() if part)
    return str(value or "-")


def _jobs(session: Session, counts: dict[str, int]) -> str:
    said = [f"{count} {state}" for state, count in counts.items() if count]
    return ", ".join(said) or session.text("status.no-jobs")


def _node(one: Any) -> tuple[str, ...]:
    free = one["free"]
    gpus = one.get("gpus") or []
    models = " / ".join(sorted({str(gpu["model"]) for gpu in gpus}))
    return (
        printable(one["node"]),
        f"{free['cpus']} / {one['cpus']}",
        f"{view.size(free['memory_bytes'])} / {view.size(one['memory_bytes'])}",
        f"{free['gpus']} / {len(gpus)} {printable(models)}".rstrip() if gpus else "-",
    )
