"""How notebooks look to a person."""

from __future__ import annotations

import time

from danlu.faces.cli import view
from danlu.faces.cli.session import Session
from danlu.faces.cli.terminal import width
from danlu.faces.cli.texts import printable

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any

UNDER_WAY = ("creating", "starting", "stopping")
FAILED = ("create-failed", "start-failed", "error")
STATE_COLORS = {
    "running": "blue",
    "stopping": "yellow",
    "deleting": "yellow",
    **dict.fromkeys((*FAILED, "delete-failed"), "red"),
}


def row(one: Any, now: float) -> tuple[str, ...]:
    """A line of the list: what people look for first is when it ends."""
    ours = one["danlu"]
    since = ours["idle"]["since"]
    ends = ours["ends_at"]
    return (
        printable(one["name"]),
        ours["state"],
        "-" if ends is None else view.seconds(ends / 1000 - now),
        "-" if since is None else view.age(since, now),
        view.seconds(ours["metered_s"]) if ours["metered_s"] else "-",
        printable(one["flavor"]),
        printable(ours["why"] or ours["reason"]),
    )


def progress(one: Any) -> str:
    """What a start is at, and what it waits for."""
    step = next((s for s in one["action_progress"] if s["status"] == "PROCESSING"), None)
    if step is None:
        return ""
    why = one["danlu"]["why"]
    return f"{step['description']}: {why}" if why else str(step["description"])


def show(session: Session, one: Any) -> None:
    """Everything about one."""
    rows = [
        (session.text(f"notebook.{name}"), value) for name, value in _values(session, one) if value
    ]
    label = max(width(name) for name, _ in rows) + 2
    for name, value in rows:
        color = STATE_COLORS.get(value, "")
        painted = session.terminal.paint(printable(value), color)
        session.put(f"{name}{' ' * (label - width(name))}{painted}")
    signals = one["danlu"]["idle"]["signals"]
    if signals:
        session.put("")
        header = session.text("columns.signals").split("|")
        session.terminal.table(header, [_signal(session, signal) for signal in signals])


def _values(session: Session, one: Any) -> list[tuple[str, str]]:
    ours, now = one["danlu"], time.time()
    idle, home, held = ours["idle"], ours["home"], ours["hold"]
    limit = view.size(home["limit_bytes"]) if home["limit_bytes"] else session.text("home-free")
    return [
        ("id", one["id"]),
        ("name", one["name"]),
        ("state", ours["state"]),
        ("why", ours["why"] or ours["reason"]),
        ("progress", progress(one)),
        ("ends", _ends(session, ours, now)),
        ("lease", "" if ours["lease_ends_at"] is None else view.instant(ours["lease_ends_at"])),
        ("idle", _idle(session, ours)),
        ("unknown", ", ".join(idle["unknown"])),
        ("hold", "" if held is None else _hold(session, held)),
        ("metered", view.seconds(ours["metered_s"])),
        ("flavor", one["flavor"]),
        ("image", one["image"]["id"]),
        ("home", f"{view.size(home['used_bytes'])} / {limit}"),
        *(("data", f"{data['url']} {data['mount_path']}") for data in one["data_volumes"]),
        ("description", one["description"]),
        ("job", ours["job_id"]),
        ("created", view.instant(one["create_at"])),
    ]


def _ends(session: Session, ours: Any, now: float) -> str:
    if ours["ends_at"] is None:
        return session.text("ends-never") if ours["state"] == "running" else ""
    left = view.seconds(ours["ends_at"] / 1000 - now)
    return session.text(
        "ends-at", at=view.instant(ours["ends_at"]), left=left, why=ours["ends_because"]
    )


def _idle(session: Session, ours: Any) -> str:
    """After how long without use it is stopped: what counts, and whose word that is."""
    policy, after_s = ours["idle"]["policy"], ours["idle"]["after_s"]
    if ours["state"] != "running":  # what counts is known of one that runs
        names = {"off": session.text("idle-off"), "": session.text("idle-default")}
        return names.get(policy) or view.seconds(int(policy))
    counts = session.text("idle-off") if after_s is None else view.seconds(after_s)
    if policy == "":
        leased = after_s is None and ours["lease_ends_at"] is not None
        return session.text("idle-leased" if leased else "idle-of-server", after=counts)
    own_s = None if policy == "off" else int(policy)
    return counts if own_s == after_s else session.text("idle-at-most", after=counts)


def _hold(session: Session, held: Any) -> str:
    process = session.text("hold-pid", pid=held["pid"]) if held["pid"] else ""
    return " ".join(filter(None, [view.instant(held["until"]), process, held["why"]]))


def _signal(session: Session, signal: Any) -> tuple[str, ...]:
    if signal["goes_on"]:
        age = session.text("signal-now")
    elif signal["age_s"] is None:
        age = session.text("signal-unknown")
    else:
        age = session.text("signal-ago", age=view.seconds(signal["age_s"]))
    return signal["name"], age, printable(str(signal["detail"]))
