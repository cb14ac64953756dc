"""After the end: outputs and logs are stored, and the task's work is removed."""

from __future__ import annotations

import errno
import itertools
import secrets
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from danlu.model.errors import PlatformError
from danlu.model.event import Level
from danlu.model.manifest import Owner
from danlu.model.reason import ReasonCode
from danlu.model.resources import size
from danlu.model.script import TaskPlan, world
from danlu.model.url import Url, parse
from danlu.node import full, log_rules, places
from danlu.node.commit import Superseded
from danlu.node.directory import TaskDirectory, now_ms
from danlu.node.log_files import LogFiles, LogStream
from danlu.node.stage import in_words
from danlu.node.stored import Stored
from danlu.node.sync import PROBLEMS, OutputSync
from danlu.node.target import open_target
from danlu.ports import task_directory as files
from danlu.ports.crash import crash_point
from danlu.ports.task_directory import AgentPlan, DoneFile

TRIES = 3
WAIT_S = 1.0
LONGEST_WAIT_S = 30.0
AWAY = frozenset(
    {
        0,  # our own: something did not arrive
        errno.EAGAIN,
        errno.EBUSY,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EHOSTDOWN,
        errno.EHOSTUNREACH,
        errno.EIO,
        errno.ENETUNREACH,
        errno.ENOTCONN,
        errno.ESTALE,
        errno.ETIMEDOUT,
    }
)
"""What file systems of other machines say while those do not answer."""


def output_syncs(directory: TaskDirectory, plan: AgentPlan) -> list[OutputSync]:
    """The outputs of a task that has been staged. Raises one of PROBLEMS."""
    stored = Stored(directory)
    task = plan.plan
    roots = world(task, plan.layout).outputs
    owner = Owner(task.job_id, task.attempt, task.task_name, task.token)
    return [
        OutputSync(
            index,
            output,
            Path(root),
            open_target(output.url, plan.objects, plan.isolation, output.name),
            stored,
            owner,
        )
        for index, (output, root) in enumerate(zip(plan.plan.outputs, roots, strict=True))
        if Path(root).is_dir()
    ]


class Collector:
    """Stores what a task left. Every step may be done again by another agent."""

    def __init__(
        self, directory: TaskDirectory, plan: AgentPlan, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._directory = directory
        self._plan = plan
        self._sleep = sleep
        self._cause = ReasonCode.OUTPUT_FAILED

    def run(self) -> None:
        """Store outputs and log, publish `done.json`, and remove the work unless it is all that
        is left of an output that could not be stored.
        """
        self._tell_of_the_end()
        log_rules.tell(self._directory, self._plan.plan.log_rules)
        problem = self._outputs() or self._log()
        done: DoneFile = {
            "token": self._plan.plan.token,
            "at": now_ms(),
            "problem": str(self._cause) if problem else "",
            "detail": problem or {},
            "log_bytes": LogFiles(self._directory.path).end(),
        }
        crash_point("agent.before-done", self._directory.path)
        self._directory.publish_surely(files.DONE, done)
        crash_point("agent.after-done", self._directory.path)
        if not problem:
            places.remove_work(self._plan.layout, self._directory.path)

    def _tell_of_the_end(self) -> None:
        detail = (self._directory.read(files.EXIT) or {}).get("detail")
        detail = detail if isinstance(detail, dict) else {}
        if "leftovers" in detail:
            self._directory.note("leftovers-killed", Level.WARNING, count=detail["leftovers"])
        if "log_left_open" in detail:
            self._directory.note("log-left-open", Level.WARNING, wait_s=1)
        if "log_dropped_bytes" in detail:
            self._directory.note(
                "log-dropped", Level.WARNING, size=size(int(detail["log_dropped_bytes"]))
            )
        if "unkillable" in detail:
            self._directory.note("leftovers-unkillable", Level.ERROR, count=detail["unkillable"])

    def _outputs(self) -> dict[str, str | int]:
        """Store every output; what its reason needs if one could not be stored."""
        try:
            syncs = output_syncs(self._directory, self._plan)
        except PROBLEMS as error:
            return {"detail": in_words(error), "path": self._directory.file(files.WORK)}
        problem: dict[str, str | int] = {}
        for sync in syncs:
            said = self._try(sync.output.name, partial(self._store, sync))
            if said and not problem:
                problem = {"detail": said, "path": str(sync.root)}
        return problem

    def _store(self, sync: OutputSync) -> None:
        ended = self._directory.read(files.EXIT) or {}
        found = sync.store_all(int(ended.get("exit_code", 0)))
        if found.skipped:
            self._directory.note(
                "output-skipped",
                Level.WARNING,
                name=sync.output.name,
                count=found.skipped,
                example=found.example,
            )
        self._directory.note(
            "output-stored",
            name=sync.output.name,
            files=found.files,
            size=size(found.size),
            url=str(sync.output.url),
        )

    def _log(self) -> dict[str, str | int]:
        plan = self._plan.plan
        log = Path(self._directory.file(files.LOG))
        if not plan.log_url or not log.exists():
            return {}
        error = self._try("log", lambda: self._store_log(plan, parse(plan.log_url, "log"), log))
        return {"detail": error, "path": str(log)} if error else {}

    def _store_log(self, plan: TaskPlan, url: Url, log: Path) -> None:
        # The log of a further attempt stands beside those of the earlier ones.
        again = f"-attempt-{plan.attempt}" if plan.attempt > 1 else ""
        name = f"modelarts-job-{plan.job_id}-{plan.task_name}{again}.log"
        target = open_target(url, self._plan.objects, self._plan.isolation, "log")
        kept = LogFiles(self._directory.path)
        # Copied and not linked: the task's own log stays as it is whatever happens to the copy.
        if kept.end() == log.stat().st_size:
            stored = target.put(log, name, last=False).state[0]
        else:
            stored = target.put_stream(cast("BinaryIO", LogStream(kept)), name)
        if target.settle({name: stored}):
            raise OSError(0, f"{name} did not arrive")
        self._directory.note("log-stored", url=f"{str(url).rstrip('/')}/{name}")

    def _try(self, name: str, step: Callable[[], None]) -> str:
        """Do `step`, again and again if need be; what went wrong at last, or nothing. A store that
        is away for the moment is waited for as long as the plan says.
        """
        waited = 0.0
        for count in itertools.count(1):
            try:
                step()
            except PROBLEMS as error:
                said = in_words(error)
                wait_s = min(LONGEST_WAIT_S, WAIT_S * 2 ** (count - 1))
                patience_s = self._plan.storing.patience_s if passing(error) else 0
                if isinstance(error, Superseded) or (
                    count >= TRIES and waited + wait_s > patience_s
                ):
                    if full.is_cause(error):
                        self._cause = ReasonCode.OUT_OF_DISK
                    return said
                self._directory.note("output-retry", Level.WARNING, name=name, detail=said)
                # Not all at once: many tasks may wait for one store.
                self._sleep(wait_s * secrets.SystemRandom().uniform(0.5, 1))
                waited += wait_s
            else:
                break
        return ""


def passing(error: Exception) -> bool:
    """Whether an error may go away by itself: a store or a network that does not answer now."""
    if isinstance(error, PlatformError):
        return error.retry
    return isinstance(error, OSError) and error.errno in AWAY
