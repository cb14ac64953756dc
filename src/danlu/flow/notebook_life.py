"""notebook_life: bring every live notebook on, by what has become of its job.

The notebook's record says what is wanted; this verb sees to it that a job carries it out, and
records what came of that. Each step may be repeated: a server that dies between two of them takes
them again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Protocol

from danlu.flow.board import Board
from danlu.flow.notebooks import Notebooks, job_spec
from danlu.flow.platform import Platform
from danlu.model.attempt import FINAL
from danlu.model.attempt import State as AttemptState
from danlu.model.errors import EngineError, Missing, PlatformError, Refused, Unavailable
from danlu.model.event import JobEvent, Level
from danlu.model.identity import Caller
from danlu.model.job import Intent, JobSpec, JobView
from danlu.model.notebook import STARTS, Event, Notebook, State, moved
from danlu.model.reason import Reason, ReasonCode
from danlu.ports.crash import crash_point
from danlu.ports.engine import Ref, Seen, Volumes
from danlu.ports.records import Submitted

log = logging.getLogger(__name__)

NO_ROOM = (429, 507)
"""What is refused for want of room, in the queue or on the disk, is tried again."""
LAB_MISSING_EXIT = 78
"""What `danlu_notebook` exits with where there is no JupyterLab."""
BEFORE_RUNNING = (AttemptState.QUEUED, AttemptState.PLACED, AttemptState.LAUNCHING)


class Submit(Protocol):
    """The verb that records a job."""

    def __call__(
        self,
        platform: Platform,
        board: Board,
        caller: Caller,
        spec: JobSpec,
        *,
        job_id: str,
        wake: Callable[[], None],
    ) -> Future[Submitted]:
        """Check and record a job under this id."""


class Stop(Protocol):
    """The verb that records that a job shall stop."""

    def __call__(
        self,
        platform: Platform,
        board: Board,
        caller: Caller,
        job_id: str,
        wake: Callable[[], None],
    ) -> Future[bool]:
        """Record it."""


class Life:
    """Carries notebooks on. `submit` and `stop` are the verbs for their jobs."""

    def __init__(
        self,
        platform: Platform,
        board: Board,
        notebooks: Notebooks,
        submit: Submit,
        stop: Stop,
        wake: Callable[[], None],
    ) -> None:
        self._platform = platform
        self._board = board
        self._notebooks = notebooks
        self._submit = submit
        self._stop = stop
        self._wake = wake

    def turn(self, seen: Mapping[Ref, Seen]) -> None:
        """Look at every live notebook once. `seen` is what the engine saw in this turn."""
        for notebook in self._notebooks.live():
            try:
                self._bring_on(notebook, seen)
            except (EngineError, Unavailable) as error:
                log.warning("notebook %s: %s", notebook.id, error)

    def _bring_on(self, notebook: Notebook, seen: Mapping[Ref, Seen]) -> None:
        view = self._job(notebook)
        if notebook.state in STARTS:
            if view is None:
                self._begin(notebook)
            elif not self._over(notebook, view) and _ready(view, seen):
                self._became_ready(notebook, view)
        elif notebook.state is State.RUNNING:
            if view is None:
                self._change(notebook, Event.FAILED, _lost())
            elif not self._over(notebook, view) and view.attempt.state in BEFORE_RUNNING:
                self._change(notebook, Event.AGAIN, view.attempt.reason)
        elif self._is_over(notebook, view):
            if notebook.state is State.STOPPING:
                self._change(notebook, Event.ENDED, notebook.reason)
            else:
                self._remove(notebook, view)

    def _job(self, notebook: Notebook) -> JobView | None:
        entry = self._board.get(notebook.job_id)
        if entry is not None:
            return entry.view
        try:
            return self._platform.records.job(notebook.workspace, notebook.job_id)
        except Missing:
            return None

    # starting

    def _begin(self, notebook: Notebook) -> None:
        """Have a job recorded for the start that is wanted."""
        platform = self._platform
        caller = self._caller(notebook)
        if caller is None:
            detail = f"the user {notebook.user} is gone"
            self._change(
                notebook, Event.FAILED, Reason(ReasonCode.LAUNCH_FAILED, {"detail": detail})
            )
            return
        if notebook.stale_job_id:
            # Its log was there for as long as nothing followed it.
            platform.records.delete(notebook.workspace, notebook.stale_job_id).result()
        if isinstance(platform.engine, Volumes):
            platform.engine.make_volume(notebook.id)
        crash_point("notebook.before-submit")
        try:
            self._submit(
                platform,
                self._board,
                caller,
                job_spec(platform, notebook.spec, notebook.id),
                job_id=notebook.job_id,
                wake=self._wake,
            ).result()
        except (EngineError, Unavailable):
            raise
        except PlatformError as error:
            if error.http in NO_ROOM:
                log.warning("notebook %s waits: %s", notebook.id, error)
                return
            reason = Reason(ReasonCode.LAUNCH_FAILED, {"detail": str(error)})
            self._change(notebook, Event.FAILED, reason)
        crash_point("notebook.after-submit")

    def _caller(self, notebook: Notebook) -> Caller | None:
        user = self._platform.records.user(notebook.user)
        workspace = self._platform.records.workspace(notebook.workspace)
        return Caller(user, workspace) if user is not None and workspace is not None else None

    def _became_ready(self, notebook: Notebook, view: JobView) -> None:
        now = self._platform.clock.now()
        took_s = f"{max(0, now - view.job.created_at) / 1000:.1f}"
        self._record(
            notebook,
            moved(notebook, Event.READY, now),
            JobEvent(now, "notebook-ready", {"took_s": took_s}),
        )

    # ending

    def _over(self, notebook: Notebook, view: JobView) -> bool:
        """Record it where the job has ended by itself."""
        attempt = view.attempt
        if attempt.state not in FINAL:
            return False
        wanted = attempt.reason is not None and attempt.reason.code is ReasonCode.STOPPED
        ended = attempt.state is AttemptState.SUCCEEDED or wanted
        event = Event.ENDED if ended else Event.FAILED
        self._change(notebook, event, _why(attempt.reason))
        return True

    def _is_over(self, notebook: Notebook, view: JobView | None) -> bool:
        """Whether the job of a notebook that is to end has ended; it is told to, if not yet."""
        if view is None or view.attempt.state in FINAL:
            return True
        caller = self._caller(notebook)
        if view.job.intent is Intent.RUN and caller is not None:
            with suppress(Refused):  # it has ended in this moment
                self._stop(self._platform, self._board, caller, view.job.id, self._wake).result()
        return False

    def _remove(self, notebook: Notebook, view: JobView | None) -> None:
        """Remove what is left of a notebook: its home, and its jobs."""
        platform = self._platform
        crash_point("notebook.before-remove")
        if isinstance(platform.engine, Volumes):
            try:
                platform.engine.remove_volume(notebook.id)
            except EngineError as error:
                reason = Reason(ReasonCode.HOME_KEPT, {"detail": str(error)})
                self._change(notebook, Event.KEPT, reason)
                return
        for job_id in {notebook.stale_job_id, notebook.job_id if view is not None else ""} - {""}:
            platform.records.delete(notebook.workspace, job_id).result()
        crash_point("notebook.after-remove")
        self._change(notebook, Event.REMOVED, None)

    def _change(self, notebook: Notebook, event: Event, reason: Reason | None) -> None:
        now = self._platform.clock.now()
        to = moved(notebook, event, now, reason)
        told = {} if reason is None else reason.told()
        bad = event in (Event.FAILED, Event.KEPT)
        level = Level.ERROR if bad else Level.WARNING if event is Event.AGAIN else Level.INFO
        key = "notebook-again" if event is Event.AGAIN else f"notebook-{to.state}"
        self._record(notebook, to, JobEvent(now, key, told, level))

    def _record(self, notebook: Notebook, to: Notebook, event: JobEvent) -> None:
        # Where somebody else was first, the next turn sees what they made of it.
        self._notebooks.change(notebook, to, (event,)).result()


def _ready(view: JobView, seen: Mapping[Ref, Seen]) -> bool:
    key = view.attempt.key
    look = seen.get(Ref(key.job_id, key.number, 0, key.token))
    return view.attempt.state is AttemptState.RUNNING and look is not None and look.ready


def _why(reason: Reason | None) -> Reason | None:
    """How the job ended, in a notebook's words."""
    code = None if reason is None else reason.code
    if code is ReasonCode.EXIT and reason and reason.params.get("exit_code") == LAB_MISSING_EXIT:
        return Reason(ReasonCode.LAB_MISSING)
    return reason


def _lost() -> Reason:
    return Reason(ReasonCode.TASK_LOST, {"task": "worker-0"})
