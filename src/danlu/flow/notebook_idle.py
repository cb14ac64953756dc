"""notebook_idle: stop notebooks whose lease is over or that nobody uses, and say so before."""

from __future__ import annotations

from dataclasses import replace

from danlu.flow.activity import Activity
from danlu.flow.notebooks import Notebooks
from danlu.flow.platform import Platform
from danlu.model.event import JobEvent, Level
from danlu.model.idle import Outlook, Signal, judge, warning
from danlu.model.notebook import Event, Hold, Notebook, State, moved
from danlu.model.reason import Reason, ReasonCode
from danlu.model.resources import GIB, size

AFTER_HOLD_MS = 10 * 60_000
"""Whoever was held up beyond a lease that ended meanwhile is warned before the end like others."""


def outlook(platform: Platform, activity: Activity, notebook: Notebook) -> Outlook:
    """What is to become of a running notebook if nothing happens."""
    now = platform.clock.now()
    limits, lease = platform.limits, notebook.lease
    began = notebook.ready_at or now
    after_s = notebook.spec.idle.effective_s(
        limits.notebook_idle_s, limits.notebook_max_idle_s, leased=lease.duration_ms is not None
    )
    held = notebook.hold is not None and now < notebook.hold.until
    verdict = judge(
        _signals(activity, notebook, held=held), max(began, notebook.touched_at), after_s, now
    )
    ends: list[tuple[int, Reason]] = []
    if verdict.stops_at is not None and after_s is not None:
        idle = Reason(ReasonCode.IDLE, {"minutes": after_s // 60})
        ends.append((verdict.stops_at, idle))
    if lease.ends_at is not None and lease.duration_ms is not None:
        over = Reason(ReasonCode.LEASE_ENDED, {"minutes": lease.duration_ms // 60_000})
        ends.append((lease.ends_at, over))
    if notebook.hold is not None and held:
        ends = [(max(at, notebook.hold.until), why) for at, why in ends]
    if limits.notebook_max_run_s:
        most = Reason(ReasonCode.RUN_LIMIT, {"minutes": limits.notebook_max_run_s // 60})
        ends.append((began + limits.notebook_max_run_s * 1000, most))
    if not ends:
        return Outlook(verdict, after_s, held=held)
    at, because = min(ends, key=lambda end: end[0])
    return Outlook(verdict, after_s, at, because, held)


def _signals(activity: Activity, notebook: Notebook, *, held: bool) -> list[Signal]:
    reading = activity.of(notebook)
    signals = [Signal("activity", None, "not read yet")] if reading is None else [*reading.signals]
    if notebook.hold is not None and held:
        signals.append(Signal("hold", notebook.hold.until, notebook.hold.why, goes_on=True))
    return signals


def notebook_idle(platform: Platform, notebooks: Notebooks, activity: Activity) -> None:
    """Warn, and stop, where it is time."""
    for notebook in notebooks.live():
        if notebook.state is State.RUNNING:
            _weigh(platform, notebooks, activity, notebook)


def _weigh(
    platform: Platform, notebooks: Notebooks, activity: Activity, notebook: Notebook
) -> None:
    now = platform.clock.now()
    if _process_ended(activity, notebook):
        pid = notebook.hold.pid if notebook.hold else 0
        until = min(notebook.hold.until if notebook.hold else now, now + AFTER_HOLD_MS)
        to = replace(notebook, hold=Hold(until), touched_at=now, warned_at=0)
        event = JobEvent(now, "notebook-hold-over", {"pid": pid})
        notebooks.change(notebook, to, (event,)).result()
        return
    found = outlook(platform, activity, notebook)
    used = activity.overfull(notebook)
    if used is not None:
        told = {"used": size(used), "size": size((notebook.spec.home_gib or 0) * GIB)}
        event = JobEvent(now, "notebook-home-full", told, Level.WARNING)
        notebooks.change(notebook, notebook, (event,)).result()
        return
    if activity.doubtful(notebook, found.verdict.unknown) and found.after_s is not None:
        told = {"signals": ", ".join(found.verdict.unknown)}
        event = JobEvent(now, "notebook-activity-unknown", told, Level.WARNING)
        notebooks.change(notebook, notebook, (event,)).result()
        return
    if found.ends_at is None or found.because is None:
        return
    if now >= found.ends_at:
        stopping = JobEvent(now, "notebook-stopping", found.because.told(), Level.WARNING)
        to = moved(notebook, Event.STOP, now, found.because)
        notebooks.change(notebook, to, (stopping,)).result()
        return
    _warn(notebooks, notebook, found, now)


def _warn(notebooks: Notebooks, notebook: Notebook, found: Outlook, now: int) -> None:
    if found.ends_at is None or found.because is None:
        return
    left_ms = found.ends_at - now
    minutes = warning(found.ends_at, notebook.warned_at, now)
    idle_s = found.after_s if found.because.code is ReasonCode.IDLE else None
    if minutes and (idle_s is None or minutes * 60 < idle_s):
        left = {"left": -(-left_ms // 60_000)}
        event = JobEvent(now, "notebook-ends-soon", {**found.because.told(), **left}, Level.WARNING)
        notebooks.change(notebook, replace(notebook, warned_at=minutes), (event,)).result()
    elif notebook.warned_at and left_ms > (notebook.warned_at + 1) * 60_000:
        # Somebody came back: of another end is warned anew.
        notebooks.change(notebook, replace(notebook, warned_at=0)).result()


def _process_ended(activity: Activity, notebook: Notebook) -> bool:
    """Whether the process is gone for which it was held. What cannot be told is no end."""
    if notebook.hold is None or not notebook.hold.pid:
        return False
    reading = activity.of(notebook)
    return (
        reading is not None and reading.pids is not None and notebook.hold.pid not in reading.pids
    )
