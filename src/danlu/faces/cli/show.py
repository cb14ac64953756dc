"""danlu show: everything about one job."""

from __future__ import annotations

from danlu.faces.cli import view
from danlu.faces.cli.repository import COMMIT, DIFF, DIRTY
from danlu.faces.cli.session import Session
from danlu.faces.cli.terminal import width
from danlu.faces.cli.texts import printable

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any

STEPS = ("created_at", "placed_at", "launched_at", "started_at", "exited_at", "ended_at")


def show(session: Session, *, job: str) -> int:
    """Print a job: what runs, how it is and why, when what happened, its tasks and channels."""
    found = session.get("jobs", job)
    if session.json:
        session.put_json(found)
        return 0
    if session.quiet:
        session.put(found["id"])
        return 0
    rows = [*_head(session, found), *_timeline(session, found)]
    rows += [(session.text("show.input"), _input(one)) for one in found["inputs"]]
    rows += [
        (session.text("show.output"), f"{one['name']}: {one['url']}") for one in found["outputs"]
    ]
    rows += [
        (session.text("show.parameter"), f"--{one['name']}={one['value']}")
        for one in found["parameters"]
    ]
    label = max(width(name) for name, _ in rows) + 2
    for name, value in rows:
        padding = " " * (label - width(name))
        plain = printable(value)
        color = view.STATE_COLORS.get(value, "")
        session.put(f"{name}{padding}{session.terminal.paint(plain, color)}")
    if found.get("earlier"):
        session.put("")
        _attempts(session, found)
    session.put("")
    _tasks(session, found)
    return 0


def _head(session: Session, job: Any) -> list[tuple[str, str]]:
    rows = [
        ("id", job["id"]),
        ("name", job["name"]),
        ("state", view.state(job)),
        ("why", view.why(job)),
        ("command", job["command"]),
        ("flavor", job["flavor"]),
        ("nodes", str(job["node_count"]) if job["node_count"] > 1 else ""),
        ("priority", str(job["priority"]) if job["priority"] > 1 else ""),
        ("attempt", str(job["attempt"]) if job["attempt"] > 1 else ""),
        ("retries", str(job["retries"]) if job["retries"] else ""),
        ("user", job["user"]),
        ("description", job["description"]),
        ("exit", "" if job["exit_code"] is None else str(job["exit_code"])),
        ("image", " ".join(filter(None, [job["image_name"], job["image"][:19]]))),
        ("commit", _commit(session, job["annotations"])),
        ("log", "" if job.get("log_bytes") is None else view.size(job["log_bytes"])),
    ]
    return [(session.text(f"show.{key}"), str(value)) for key, value in rows if value]


def _commit(session: Session, annotations: Any) -> str:
    """What the code's repository was at."""
    commit = str(annotations.get(COMMIT, ""))[:12]
    if annotations.get(DIRTY) != "true":
        return commit
    return session.text("commit-dirty", commit=commit, diff=annotations.get(DIFF, "-"))


def _timeline(session: Session, job: Any) -> list[tuple[str, str]]:
    """Each step that was reached, and how long after the one before."""
    rows: list[tuple[str, str]] = []
    before: int | None = None
    for step in STEPS:
        at = job.get(step)
        if at is None:
            continue
        later = "" if before is None else f"  +{view.seconds((at - before) / 1000)}"
        rows.append((session.text(f"show.{step}"), f"{view.instant(at)}{later}"))
        before = at
    return rows


def _input(channel: Any) -> str:
    where = f" → {channel['dir']}" if channel.get("dir") else ""
    return f"{channel['name']}: {channel['url']}{where}"


def _attempts(session: Session, job: Any) -> None:
    """The attempts before this one: how each ended, and what the policy takes that for."""
    rows = [
        (
            str(one["attempt"]),
            printable(one["state"]),
            view.instant(one["started_at"]),
            _lasted({**one, "ended_at": one["exited_at"] or one["ended_at"]}),
            printable(str(one["cause"] or "-")),
            printable(str((one["reason"] or {}).get("sentence", "-"))),
        )
        for one in job["earlier"]
    ]
    session.terminal.table(session.text("columns.attempts").split("|"), rows)


def _tasks(session: Session, job: Any) -> None:
    rows = [
        (
            printable(task["name"]),
            printable(task.get("node") or "-"),
            _task_state(session, task),
            _lasted(task),
            _exit(session, task),
        )
        for task in job["tasks"]
    ]
    session.terminal.table(session.text("columns.tasks").split("|"), rows)


def _task_state(session: Session, task: Any) -> str:
    hung = f" ({session.text('hangs')})" if task.get("hung_at") is not None else ""
    return printable(str(task.get("state") or "-")) + hung


def _lasted(task: Any) -> str:
    if task.get("started_at") is None:
        return "-"
    if task.get("ended_at") is None:
        return view.age(task["started_at"])
    return view.seconds((task["ended_at"] - task["started_at"]) / 1000)


def _exit(session: Session, task: Any) -> str:
    if task.get("out_of_memory"):
        return session.text("out-of-memory")
    if task.get("signal"):
        return printable(str(task["signal"]))
    return "-" if task.get("exit_code") is None else str(task["exit_code"])
