"""What the verbs work on: the seams, filled in by `wiring`, and the settings they need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from danlu.flow.catalog import Catalog
from danlu.model.attempt import Attempt
from danlu.model.errors import Missing
from danlu.model.idle import Signal
from danlu.model.image import Rejection
from danlu.model.job import JobSpec, JobView
from danlu.model.reason import Reason, ReasonCode
from danlu.model.verification import Verification, Verify
from danlu.ports.engine import Engine, Ref
from danlu.ports.objects import ObjectStore, Shelf
from danlu.ports.records import Records
from danlu.ports.world import Clock, Dice


@dataclass(frozen=True, slots=True)
class Limits:
    """What this server allows."""

    queued_jobs: int = 100_000
    local_paths: bool = True
    """Whether `file://` channels are taken; needs an engine with that power as well."""
    log_bytes: int = 1 << 30
    """What is kept of a task's log where its job does not say."""
    hang_after_s: int = 1800
    """After how long without a sign of life a task is taken to hang, where its job does not say."""
    require_isolation: bool = False
    """Whether every job is refused that cannot be isolated in full."""
    platform_retries: int = 3
    """How many attempts in a row a job may lose to the platform before it is given up."""
    verify_images: Verify = Verify.OFF
    """Whether an image is verified before it is first used on a flavor."""
    bucket: str = "danlu"
    """Where code and unnamed outputs go."""
    notebook_idle_s: int = 3600
    """After how long without activity a notebook is stopped whose user said nothing; 0 = never."""
    notebook_max_idle_s: int = 0
    """The most that users may choose for that; 0 = as they like, off included."""
    notebook_max_run_s: int = 0
    """After how long every notebook is stopped, whatever happens in it; 0 = never."""


def no_folder(path: str) -> Shelf:
    """For a platform that does not read directories of its machine."""
    raise Missing("path-missing", field="output", value=path)


def nothing_against(torch: str, gpus: tuple[str, ...]) -> Rejection | None:  # noqa: ARG001 - one form
    """For a platform that knows nothing of torch and GPUs."""
    return None


def no_verification(spec: JobSpec) -> Verification | None:  # noqa: ARG001 - one form
    """For a platform that has no images."""
    return None


def nothing_closed(path: str) -> str:  # noqa: ARG001 - one form
    """For a platform that keeps nothing on its machine."""
    return ""


def nobodys(bucket: str) -> str:  # noqa: ARG001 - one form
    """For a platform with one workspace."""
    return ""


Reader = Callable[[Engine, Ref], Sequence[Signal]]
"""Says what a notebook's instance is used for, in one respect. May block; what it cannot tell is a
signal without an instant, or an EngineError.
"""


@dataclass(frozen=True, slots=True)
class Platform:
    """The parts that every verb may use."""

    records: Records
    objects: ObjectStore
    engine: Engine
    catalog: Catalog
    clock: Clock
    dice: Dice
    limits: Limits = Limits()
    folder: Callable[[str], Shelf] = no_folder
    """Opens a directory of this machine."""
    api: str = ""
    """This server's own address, for jobs that want to call it."""
    obs: str = ""
    """Where jobs find the storage: the OBS gateway's address; empty = there is none."""
    region: str = ""
    against_torch: Callable[[str, tuple[str, ...]], Rejection | None] = nothing_against
    """Why a version of torch cannot run on GPUs of these models; None where nothing is known."""
    closed: Callable[[str], str] = nothing_closed
    """What a path of this machine is, holds or lies in that no job may be given; empty = none."""
    unwritable: Callable[[str], str] = nothing_closed
    """What of a path of this machine keeps jobs from writing below it; empty = nothing does."""
    owner: Callable[[str], str] = nobodys
    """The workspace that a bucket belongs to; empty = it is everybody's."""
    readers: tuple[tuple[str, Reader], ...] = ()
    """How it is told whether a notebook is used, each under the name of what it reads."""
    verification: Callable[[JobSpec], Verification | None] = no_verification
    """How the image of a job was verified on its flavor; None where it was not."""
    restored_at: int = 0
    """When the records were restored from a backup; 0 if they never were."""

    def attempt(self, view: JobView, number: int) -> JobView | None:
        """A job with one of its attempts in place of the one that it has; None where there is none
        of that number.
        """
        if number == view.attempt.key.number:
            return view
        for attempt, tasks in self.records.attempts(view.job.workspace, view.job.id):
            if attempt.key.number == number:
                return JobView(view.job, attempt, tuple(tasks))
        return None

    def is_from_backup(self, attempt: Attempt) -> bool:
        """Whether the attempt is older than the restore: its tasks may have ended since without a
        trace here.
        """
        return attempt.created_at < self.restored_at

    def lost(self, attempt: Attempt, task: str) -> Reason:
        """Why a task is lost that the engine does not know."""
        from_backup = self.is_from_backup(attempt)
        code = ReasonCode.RESTORED if from_backup else ReasonCode.TASK_LOST
        return Reason(code, {"task": task})
