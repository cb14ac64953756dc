"""execute: a command beside a running job's program, with who ran what in the job's history."""

from __future__ import annotations

from concurrent.futures import Future

from danlu.flow.platform import Platform
from danlu.flow.refs import ref
from danlu.model.attempt import State
from danlu.model.errors import Refused
from danlu.model.event import JobEvent
from danlu.model.execute import Command
from danlu.model.identity import Caller
from danlu.model.job import JobView
from danlu.ports.engine import Executes, Execution

NAME_CHARS = 100


def check(platform: Platform, view: JobView, task: str) -> None:
    """Refused where no command can be run in a task now, Missing where there is no such task."""
    ref(view, task)
    if not isinstance(platform.engine, Executes):
        raise Refused("exec-unsupported")
    if view.attempt.state is not State.RUNNING:
        raise Refused("exec-job-not-running", job=view.job.id, state=view.attempt.state)


def note(platform: Platform, view: JobView, task: str, caller: Caller, what: str) -> Future[bool]:
    """Record that a user runs a command: its name, not its arguments, which may be secrets. False
    where the attempt has ended.
    """
    params = {"user": caller.user.name, "command": what[:NAME_CHARS]}
    event = JobEvent(platform.clock.now(), "exec-started", params, task=task)
    return platform.records.note(view.attempt.key, [event])


def note_end(
    platform: Platform, view: JobView, task: str, caller: Caller, what: str, code: int | None
) -> Future[bool]:
    """Record how it ended; None = nobody waited for that."""
    params: dict[str, str | int] = {"user": caller.user.name, "command": what[:NAME_CHARS]}
    key = "exec-left"
    if code is not None:
        params["exit_code"] = code
        key = "exec-ended"
    event = JobEvent(platform.clock.now(), key, params, task=task)
    return platform.records.note(view.attempt.key, [event])


def execute(platform: Platform, view: JobView, task: str, command: Command) -> Execution:
    """Run it. May take a moment. Refused where the task does not run any more."""
    engine = platform.engine
    if not isinstance(engine, Executes):
        raise Refused("exec-unsupported")
    return engine.execute(ref(view, task), command)
