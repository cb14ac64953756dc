"""Staying with a job: its log, how it ended, and leaving it to itself on Ctrl-C."""

from __future__ import annotations

from danlu.faces.cli import view
from danlu.faces.cli.failure import INTERRUPTED
from danlu.faces.cli.interrupt import last_chance
from danlu.faces.cli.session import Session
from danlu.faces.cli.sinks import sink_for
from danlu.faces.cli.texts import printable
from danlu.faces.cli.waiting import until_final
from danlu.faces.cli.watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any


def submitted(session: Session, job: Any, *, detach: bool) -> int:
    """Stay with a new job, or say only which it is."""
    if not detach:
        return attach(session, job)
    if session.json:
        session.put_json(job)
    else:
        session.put(job["id"])
        session.say("detached-next", id=job["id"][: view.ID_CHARS])
    return 0


def attach(session: Session, job: Any, task: str = "worker-0") -> int:
    """Show a new job's log to its end; the exit status is the job's."""
    try:
        if session.json:
            session.put_json({"event": "submitted", "job": job})
            session.terminal.out.flush()
        session.say("submitted", name=job["name"], id=job["id"][: view.ID_CHARS])
        if job["node_count"] > 1:
            session.say("several-tasks", count=job["node_count"], id=job["id"][: view.ID_CHARS])
        watch = Watch(
            session,
            job,
            task,
            sink_for(session, task, 0),
            again=lambda: sink_for(session, task, 0),
        )
        watch.follow()
        job = watch.job if watch.job["exit"] is not None else until_final(session, job["id"])
    except KeyboardInterrupt:
        last_chance()
        detached(session, job)
        return INTERRUPTED
    session.terminal.wipe()
    if session.json:
        session.put_json({"event": "ended", "job": job})
    elif not session.quiet:
        session.terminal.say(f"danlu: {outcome(session, job)}")
    return int(job["exit"])


def detached(session: Session, job: Any) -> None:
    """Say that the job goes on without us, and how to come back to it or end it."""
    session.terminal.wipe()
    if session.terminal.err_tty:
        session.terminal.err.write("\n")  # behind the ^C
    if session.json:
        session.put_json({"event": "detached", "job": job})
    session.say("detached", name=job["name"], id=job["id"][: view.ID_CHARS])


def outcome(session: Session, job: Any) -> str:
    """One line: how a job ended, how long it ran, where its outputs are, and what comes next."""
    took = view.duration_s(job)
    parts = [
        session.text(
            f"ended-{job['state']}",
            name=job["name"],
            id=job["id"][: view.ID_CHARS],
            took=view.seconds(took) if took is not None else "0s",
        )
    ]
    why = view.why(job)
    if why:
        parts[0] += session.text("colon") + printable(why)
    parts += [f"{printable(out['name'])}: {printable(out['url'])}" for out in job["outputs"]]
    parts.append(_next(job))
    return session.text("separator").join(parts)


def _next(job: Any) -> str:
    short = job["id"][: view.ID_CHARS]
    failed = (job.get("reason") or {}).get("params", {}).get("task", "worker-0")
    if job["state"] in ("failed", "lost") and failed != "worker-0":
        return f"danlu logs {short} --task {printable(str(failed))}"
    if job["state"] in ("failed", "lost"):
        return f"danlu events {short}"
    return f"danlu show {short}"
