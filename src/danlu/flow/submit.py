"""submit: check what a user asks for, and put it on record. Nothing is half-created."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import replace

from danlu.flow.board import Board
from danlu.flow.platform import Platform
from danlu.model import rules
from danlu.model.attempt import Attempt, AttemptKey, State
from danlu.model.errors import Denied, Invalid, Missing, PlatformError, Refused
from danlu.model.event import JobEvent
from danlu.model.identity import Caller
from danlu.model.image import DoesNotFit, ImageView
from danlu.model.job import Job, JobSpec, JobView
from danlu.model.resources import Shape
from danlu.model.url import LocalUrl, ObjectUrl, Url
from danlu.ports.crash import crash_point
from danlu.ports.records import Submission, Submitted

FLAVOR_FIELD = "spec.resource.flavor_id"
CODE_FIELD = "algorithm.code_dir"
INPUT_FIELD = "algorithm.inputs[{}].remote.obs.obs_url"
OUTPUT_FIELD = "algorithm.outputs[{}].remote.obs.obs_url"


def check(
    platform: Platform,
    board: Board,
    workspace: str,
    spec: JobSpec,
    unsent: Collection[str] = (),
) -> JobSpec:
    """Check `spec` against the rules and this platform; Invalid, Missing, Denied or Refused.

    What comes back names the flavor that will be used, and its shape. At the fields in `unsent`
    nothing is looked for: for a dry run, it has stayed where it is.
    """
    rules.check(spec)
    image = platform.catalog.check(spec.engine, "algorithm.engine", workspace)
    flavor = platform.catalog.flavor(spec.flavor, spec.node_count, FLAVOR_FIELD)
    required = spec.require_isolation or platform.limits.require_isolation
    spec = replace(
        spec,
        flavor=flavor.id,
        shape=flavor.shape,
        require_isolation=required,
        image="" if image is None else image.id,
        image_name="" if image is None else image.name,
    )
    if required and platform.engine.powers.unenforced:
        missing = ", ".join(platform.engine.powers.unenforced)
        raise Refused("isolation-missing", field="danlu.require_isolation", missing=missing)
    if flavor.shape.gpus:
        _runs_on(platform, spec, flavor.shape, image)
    places = _Places(platform, workspace)
    if CODE_FIELD not in unsent:
        _code(places, spec)
    for index, channel in enumerate(spec.inputs):
        field = INPUT_FIELD.format(index)
        if field not in unsent:
            _input(places, channel.url, field)
    for index, output in enumerate(spec.outputs):
        places.allow(output.url, OUTPUT_FIELD.format(index))
        _writable(platform, output.url, OUTPUT_FIELD.format(index))
        writer = board.writer(output.url)
        if writer is not None:
            raise _shared(index, output.url, writer)
    if spec.log_url is not None:
        places.allow(spec.log_url, "spec.log_export_path.obs_url")
    return spec


def submit(
    platform: Platform,
    board: Board,
    caller: Caller,
    spec: JobSpec,
    *,
    client_token: str = "",
    job_id: str = "",
    wake: Callable[[], None],
) -> Future[Submitted]:
    """Check `spec`, record the job, and wake the loop once it is on disk.

    The same non-empty `client_token` in one workspace gives the same job again. `job_id` is for
    whoever has written down what the job will be called; empty = a new one.
    """
    if client_token:
        rules.printable("client_token", client_token)
        rules.at_most("client_token", client_token, 128, "characters", "use a UUID")
    now = platform.clock.now()
    try:
        spec = _admitted(platform, board, caller.workspace.id, spec)
        job = Job(
            id=job_id or platform.dice.job_id(),
            workspace=caller.workspace.id,
            spec=spec,
            created_at=now,
            user=caller.user.name,
            client_token=client_token,
        )
        _claim(board, job)
    except PlatformError:
        # What would be refused now may be the second sending of what was accepted: its own job
        # writes to the output that it asks for.
        known = (
            platform.records.submitted(caller.workspace.id, client_token) if client_token else None
        )
        if known is None:
            raise
        earlier: Future[Submitted] = Future()
        earlier.set_result(Submitted(known, created=False))
        return earlier
    attempt = Attempt(AttemptKey(job.id, 1, platform.dice.token()), State.QUEUED, now)
    event = JobEvent(now, "job-submitted", {"user": job.user})
    try:
        future = platform.records.submit(Submission(job, attempt, (event,)))
    except BaseException:
        board.disclaim(job)
        raise

    def recorded(done: Future[Submitted]) -> None:
        crash_point("submit.after-commit")
        if not done.cancelled() and done.exception() is None and done.result().created:
            board.add(JobView(done.result().job, attempt))
            if board.due:
                wake()
        else:
            board.disclaim(job)

    future.add_done_callback(recorded)
    return future


def _runs_on(platform: Platform, spec: JobSpec, shape: Shape, image: ImageView | None) -> None:
    """DoesNotFit if the torch of image or environment cannot run on any GPU that the flavor may
    give.
    """
    environment = platform.catalog.environment(spec.engine)
    if image is not None:
        name, torch = image.name, image.torch
    elif environment is not None:
        name, torch = environment.id, environment.torch_version
    else:
        return
    if not torch:
        return
    offers = platform.catalog.capacity()
    models = dict.fromkeys(gpu.model for offer in offers for gpu in offer.matching(shape))
    found = [platform.against_torch(torch, (model,)) for model in models]
    against = [one for one in found if one is not None]
    if against and len(against) == len(found):
        raise DoesNotFit(name, against[0])


def _admitted(platform: Platform, board: Board, workspace: str, spec: JobSpec) -> JobSpec:
    """A checked job that the queue has room for."""
    spec = check(platform, board, workspace, spec)
    if board.queued() >= platform.limits.queued_jobs:
        raise Refused(
            "queue-full", http=429, count=board.queued(), limit=platform.limits.queued_jobs
        )
    return spec


class _Places:
    """What one submit finds out about where things lie; no bucket is asked for twice."""

    def __init__(self, platform: Platform, workspace: str) -> None:
        self._platform = platform
        self._workspace = workspace
        self._objects = platform.objects
        self._buckets: set[str] = set()

    def own(self, url: ObjectUrl, field: str) -> None:
        """Denied for a place in another workspace's bucket, before anything is said of it."""
        if self._platform.owner(url.bucket) not in ("", self._workspace):
            raise Denied("bucket-denied", http=403, field=field, value=url, bucket=url.bucket)

    def exists(self, url: ObjectUrl) -> bool:
        """Whether an object has this very key."""
        try:
            self._objects.head(url.bucket, url.key)
        except Missing:
            return False
        self._buckets.add(url.bucket)
        return True

    def any_below(self, url: ObjectUrl, field: str) -> bool:
        """Whether anything is stored below `url`; Invalid where there is no such bucket, Denied
        where it is another workspace's.
        """
        self.own(url, field)
        try:
            found = self._objects.list(url.bucket, url.directory, limit=1).objects
        except Missing:
            buckets = self._objects.buckets()
            raise Invalid(
                "bucket-missing",
                field=field,
                value=url,
                bucket=url.bucket,
                buckets=", ".join(buckets[:20]) or "none",
            ) from None
        self._buckets.add(url.bucket)
        return bool(found)

    def allow(self, url: Url, field: str) -> None:
        """Raise where this server does not take such a place, or there is no such bucket."""
        if isinstance(url, ObjectUrl):
            if url.bucket not in self._buckets:
                self.any_below(url, field)
        elif not (self._platform.limits.local_paths and self._platform.engine.powers.local_paths):
            raise Refused("path-local-refused", field=field, value=url.path)
        elif closed := self._platform.closed(url.path):
            raise Refused("path-closed", field=field, value=url.path, closed=closed)


def _code(places: _Places, spec: JobSpec) -> None:
    if spec.code is None:
        return
    places.own(spec.code, CODE_FIELD)
    if spec.boot_file and places.exists(spec.code.child(spec.boot_file)):
        return
    if not places.any_below(spec.code, CODE_FIELD):
        raise Invalid("code-dir-missing", value=spec.code)
    if spec.boot_file:
        raise Invalid("boot-file-missing", value=spec.boot_file, code_dir=spec.code)


def _input(places: _Places, url: Url, field: str) -> None:
    if isinstance(url, LocalUrl):
        places.allow(url, field)
    elif not places.any_below(url, field) and not (url.key and places.exists(url)):
        raise Invalid("object-missing", field=field, value=url)


def _writable(platform: Platform, url: Url, field: str) -> None:
    """Refused where nothing can be written: better now than when a job has trained."""
    if isinstance(url, LocalUrl) and (path := platform.unwritable(url.path)):
        raise Refused("path-unwritable", field=field, value=url.path, path=path)


def _claim(board: Board, job: Job) -> None:
    """Two submits may have been checked at once: only one of them gets an output."""
    taken = board.claim(job)
    if taken is not None:
        index, writer = taken
        raise _shared(index, job.spec.outputs[index].url, writer)


def _shared(index: int, url: Url, writer: str) -> Refused:
    field = OUTPUT_FIELD.format(index)
    return Refused("output-shared", field=field, value=url, job=writer)
