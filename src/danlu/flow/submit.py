"""submit: check what a user asks for, and put it on record. Nothing is half-created."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace

from danlu.flow.board import Board
from danlu.flow.platform import Platform
from danlu.model import rules
from danlu.model.attempt import Attempt, AttemptKey, State
from danlu.model.errors import Invalid, Missing, Refused
from danlu.model.event import JobEvent
from danlu.model.identity import Caller
from danlu.model.job import Job, JobSpec, JobView
from danlu.model.url import LocalUrl, ObjectUrl, Url
from danlu.ports.records import Submission, Submitted

FLAVOR_FIELD = "spec.resource.flavor_id"


@dataclass(frozen=True, slots=True)
class Draft:
    """A checked job that is not on record yet."""

    spec: JobSpec


def check(platform: Platform, board: Board, spec: JobSpec) -> Draft:
    """Check `spec` against the rules and this platform; Invalid, Missing or Refused."""
    rules.check(spec)
    platform.catalog.check(spec.engine, "algorithm.engine")
    flavor = platform.catalog.flavor(spec.flavor, spec.node_count, FLAVOR_FIELD)
    spec = replace(spec, flavor=flavor.id, shape=flavor.shape)
    _code(platform, spec)
    for index, channel in enumerate(spec.inputs):
        _input(platform, channel.url, f"algorithm.inputs[{index}].remote.obs.obs_url")
    for index, output in enumerate(spec.outputs):
        field = f"algorithm.outputs[{index}].remote.obs.obs_url"
        _any_below(platform, output.url, field)
        _unshared(board, output.url, field)
    if spec.log_url is not None:
        _any_below(platform, spec.log_url, "spec.log_export_path.obs_url")
    return Draft(spec)


def submit(
    platform: Platform,
    board: Board,
    caller: Caller,
    spec: JobSpec,
    *,
    client_token: str = "",
    wake: Callable[[], None],
) -> Future[Submitted]:
    """Check `spec`, record the job, and wake the loop once it is on disk.

    The same non-empty `client_token` in one workspace gives the same job again.
    """
    if client_token:
        rules.printable("client_token", client_token)
        rules.at_most("client_token", client_token, 128, "characters", "use a UUID")
    draft = check(platform, board, spec)
    if board.queued() >= platform.limits.queued_jobs:
        raise Refused(
            "queue-full", http=429, count=board.queued(), limit=platform.limits.queued_jobs
        )
    now = platform.clock.now()
    job = Job(
        id=platform.dice.job_id(),
        workspace=caller.workspace.id,
        spec=draft.spec,
        created_at=now,
        user=caller.user.name,
        client_token=client_token,
    )
    attempt = Attempt(AttemptKey(job.id, 1, platform.dice.token()), State.QUEUED, now)
    event = JobEvent(now, "job-submitted", {"user": job.user})
    future = platform.records.submit(Submission(job, attempt, (event,)))

    def recorded(done: Future[Submitted]) -> None:
        if not done.cancelled() and done.exception() is None and done.result().created:
            board.add(JobView(done.result().job, attempt))
            if board.due:
                wake()

    future.add_done_callback(recorded)
    return future


def _code(platform: Platform, spec: JobSpec) -> None:
    if spec.code is None:
        return
    if spec.boot_file and _exists(platform, spec.code.child(spec.boot_file)):
        return
    if not _any_below(platform, spec.code, "algorithm.code_dir"):
        raise Invalid("code-dir-missing", value=spec.code)
    if spec.boot_file:
        raise Invalid("boot-file-missing", value=spec.boot_file, code_dir=spec.code)


def _input(platform: Platform, url: Url, field: str) -> None:
    if _any_below(platform, url, field) or isinstance(url, LocalUrl):
        return
    if not (url.key and _exists(platform, url)):
        raise Invalid("object-missing", field=field, value=url)


def _exists(platform: Platform, url: ObjectUrl) -> bool:
    try:
        platform.objects.head(url.bucket, url.key)
    except Missing:
        return False
    return True


def _any_below(platform: Platform, url: Url, field: str) -> bool:
    """Whether anything is stored below `url`; raises where this caller may not name that place."""
    if isinstance(url, LocalUrl):
        if not (platform.limits.local_paths and platform.engine.powers.local_paths):
            raise Refused("path-local-refused", field=field, value=url.path)
        return True
    try:
        return bool(platform.objects.list(url.bucket, url.directory, limit=1).objects)
    except Missing:
        buckets = platform.objects.buckets()
        raise Invalid(
            "bucket-missing",
            field=field,
            value=url,
            bucket=url.bucket,
            buckets=", ".join(buckets[:20]) or "none",
        ) from None


def _unshared(board: Board, url: Url, field: str) -> None:
    writer = board.writer(url)
    if writer is not None:
        raise Refused("output-shared", field=field, value=url, job=writer)
