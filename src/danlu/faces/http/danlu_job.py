"""Danlu's own calls on jobs: in our words, by short references, with long polls."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from danlu.faces.http.call import Call, plain_id
from danlu.faces.http.changes import Watch
from danlu.faces.http.danlu_server import described
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.job import deleted, earlier_attempts, stopped, submitted, wanted
from danlu.faces.http.reply import Answer, json_reply
from danlu.faces.http.route import Describe, Parameter, Routes
from danlu.faces.http.server import Server
from danlu.flow import explain
from danlu.flow.preempt import preempt
from danlu.flow.submit import check
from danlu.flow.verification import as_it_ran
from danlu.model import limits
from danlu.model.attempt import FINAL, Attempt, AttemptKey, State
from danlu.model.errors import Invalid, Missing, PlatformError, Refused
from danlu.model.job import Job, JobSpec, JobView
from danlu.model.verification import Verification
from danlu.ports.records import EventQuery, Filter, JobQuery
from danlu.wire import danlu as wire
from danlu.wire import danlu_schemas as schemas
from danlu.wire import modelarts_training_reply as modelarts_reply
from danlu.wire.modelarts_training_fields import JOB as CREATE

JOBS = "/danlu/v1/{project_id}/jobs"
JOB = f"{JOBS}/{{job_id}}"
TAG = "jobs"
LATEST = "@last"
PREFIX_CHARS = 4
WAIT_S = 30
MOST_WAIT_S = 60
SORTS = ("created_at", "name", "flavor", "priority", "duration")
WAITS = ("", "final", "running", "changed")
WHOLE = {"type": "integer"}

routes = Routes()


def _rule(verb: str, *, writes: bool = False) -> Rule:
    return Rule(f"modelarts:trainJob:{verb}", Access.PROJECT, writes=writes)


def resolve(server: Server, call: Call) -> str:
    """The id that the path's reference stands for: an id, the beginning of one (4 characters or
    more), a job's name (its latest), or `@last`.
    """
    ref, workspace = call.params["job_id"], call.caller.workspace.id
    records = server.platform.records
    if ref == LATEST:
        page = records.jobs(workspace, JobQuery(limit=1))
        if not page.jobs:
            raise Missing("job-missing", job=ref)
        return page.jobs[0].job.id
    if not plain_id(ref):
        raise Missing("job-missing", job=ref)
    if _is_whole(ref):
        return ref
    found = records.find(workspace, ref)
    named = [job_id for job_id in found if not job_id.startswith(ref)]
    begins = [job_id for job_id in found if job_id.startswith(ref)]
    if len(begins) == 1 and len(ref) >= PREFIX_CHARS and not named:
        return begins[0]
    if named:
        return named[0]
    if len(begins) > 1 and len(ref) >= PREFIX_CHARS:
        raise Invalid("job-ambiguous", job=ref, count=len(begins), jobs=", ".join(begins[:5]))
    raise Missing("job-missing", job=ref)


def _is_whole(ref: str) -> bool:
    """Whether `ref` has the form of an id: a UUID."""
    return len(ref) == 36 and [ref[i] for i in (8, 13, 18, 23)] == ["-"] * 4


def shown(
    server: Server,
    call: Call,
    view: JobView,
    *,
    log_bytes: int | None = None,
    earlier: Sequence[Attempt] | None = None,
    verification: Verification | None = None,
) -> dict[str, Any]:
    """A job's reply, with why it waits."""
    why = None
    if view.attempt.state is State.QUEUED:
        why = explain.why(server.platform, server.board, view.job.id)
    now, language = server.now(), call.language
    return wire.job(view, wire.Shown(now, language, why, log_bytes, earlier, verification))


@routes(
    "GET",
    JOB,
    rule=_rule("get"),
    about=Describe(
        "Show a job, perhaps once it has changed",
        {200: schemas.JOB},
        tag=TAG,
        parameters=(
            Parameter("wait", {"type": "string", "enum": list(WAITS[1:])}),
            Parameter("timeout_s", {**WHOLE, "minimum": 0, "maximum": MOST_WAIT_S}),
        ),
    ),
)
async def show_job(server: Server, call: Call) -> Answer:
    """One job; with `wait`, once it is final, once it runs (or has ended), or once it changes."""
    call.only("wait", "timeout_s")
    wanted = call.choice("wait", *WAITS)
    timeout_s = call.number("timeout_s", WAIT_S, 0, MOST_WAIT_S)
    job_id = resolve(server, call)
    workspace = call.caller.workspace.id
    view = server.view(workspace, job_id)
    if wanted and not _reached(view, wanted):
        with server.changes.watch(job_id) as watch:
            view = await _awaited(server, view, wanted, timeout_s, watch)
    log_bytes = None
    if view.attempt.started_at is not None:
        log_bytes = await server.on_worker(_log_bytes, server, view)
    earlier = earlier_attempts(server, view)
    report = None
    if view.job.spec.image:
        ran = as_it_ran(server.platform, view)
        report = await server.on_worker(server.platform.verification, ran)
    return json_reply(
        shown(server, call, view, log_bytes=log_bytes, earlier=earlier, verification=report)
    )


def _reached(view: JobView, wanted: str) -> bool:
    state = view.attempt.state
    if wanted == "running":
        return state in FINAL or state not in (State.QUEUED, State.PLACED, State.LAUNCHING)
    return state in FINAL


async def _awaited(
    server: Server, view: JobView, wanted: str, timeout_s: float, watch: Watch
) -> JobView:
    ends = time.monotonic() + timeout_s
    before = view
    while not watch.closing:
        watch.clear()
        view = server.view(view.job.workspace, view.job.id)
        if _reached(view, wanted) or (wanted == "changed" and view != before):
            break
        left = ends - time.monotonic()
        if left <= 0:
            break
        await watch.wait(left)
    return view


def _log_bytes(server: Server, view: JobView) -> int | None:
    """Bytes of log of all tasks; None where the engine cannot say now."""
    tasks = range(view.job.spec.node_count)
    try:
        return sum(server.index(view, f"worker-{index}").end() for index in tasks)
    except PlatformError:
        return None


@routes(
    "GET",
    JOBS,
    rule=_rule("list"),
    about=Describe(
        "List jobs",
        {200: schemas.JOBS},
        errors=(400,),
        tag=TAG,
        parameters=(
            Parameter("limit", {**WHOLE, "minimum": 1, "maximum": 500}),
            Parameter("offset", {**WHOLE, "minimum": 0}, "how many are left out"),
            Parameter("state", about="states, with commas between"),
            Parameter("name", about="a part of the name"),
            Parameter("sort_by", {"type": "string", "enum": list(SORTS)}),
            Parameter("order", {"type": "string", "enum": ["desc", "asc"]}),
        ),
    ),
)
async def list_jobs(server: Server, call: Call) -> Answer:
    """A page of jobs, the latest first."""
    call.only("limit", "offset", "state", "name", "sort_by", "order")
    filters = []
    states = [state for state in call.text("state").split(",") if state]
    for state in states:
        if state not in set(State):
            expected = f"one of {', '.join(State)}"
            raise Invalid("field-value", field="state", value=state, expected=expected)
    if states:
        filters.append(Filter("state", "in", states))
    if name := call.text("name"):
        filters.append(Filter("name", "like", [name]))
    query = JobQuery(
        filters=filters,
        sort_by=call.choice("sort_by", *SORTS),  # type: ignore[arg-type]  # one of its literals
        descending=call.choice("order", "desc", "asc") == "desc",
        offset=call.number("offset", 0, 0, 1 << 53),
        limit=call.number("limit", 50, 1, 500),
    )
    page = await server.jobs(call.caller.workspace.id, query)
    return json_reply(
        {"jobs": [shown(server, call, view) for view in page.jobs], "total": page.total}
    )


@routes(
    "POST",
    JOBS,
    rule=_rule("create", writes=True),
    about=Describe(
        "Submit a job",
        {201: schemas.JOB, 200: schemas.JOB},
        body=CREATE.schema(),
        errors=(400, 404, 409, 429),
        tag=TAG,
        parameters=(
            Parameter("X-Client-Token", {"type": "string", "maxLength": 128}, place="header"),
        ),
    ),
)
async def create_job(server: Server, call: Call) -> Answer:
    """Submit a job; 201, or 200 where the client token gave an earlier one."""
    view, status = await submitted(server, call)
    earlier = earlier_attempts(server, view)
    return json_reply(shown(server, call, view, earlier=earlier), status)


@routes(
    "POST",
    f"{JOBS}/plan",
    rule=_rule("plan"),
    about=Describe(
        "What a job would run; nothing is made",
        {200: schemas.PLAN},
        body=CREATE.schema(),
        parameters=(
            Parameter(
                "unsent", {"type": "string"}, "fields whose content stays with the client, by comma"
            ),
        ),
        errors=(400, 404, 409),
        tag=TAG,
    ),
)
async def plan_job(server: Server, call: Call) -> Answer:
    """What a job would run: argv, environment and directories of every task."""
    call.only("unsent")
    spec = check(
        server.platform,
        server.board,
        call.caller.workspace.id,
        wanted(server, call),
        call.query.get("unsent", "").split(","),
    )
    preview = explain.preview(server.platform, spec)
    known = server.platform.catalog.flavors()
    flavor = next(item for item in known if item.id == spec.flavor)
    body = modelarts_reply.job(_unsubmitted(server, call, spec), server.now())
    planned = wire.plan(
        body,
        preview.layout if preview else None,
        preview.worlds if preview else (),
        spec,
    )
    listed = described(server, known)["flavors"]
    return json_reply(
        {**planned, "flavor": next(item for item in listed if item["id"] == flavor.id)}
    )


def _unsubmitted(server: Server, call: Call, spec: JobSpec) -> JobView:
    """The job as it would be shown, without an id."""
    now = server.now()
    job = Job("", call.caller.workspace.id, spec, now, call.caller.user.name)
    return JobView(job, Attempt(AttemptKey("", 1, ""), State.QUEUED, now))


@routes(
    "POST",
    f"{JOB}/stop",
    rule=_rule("update", writes=True),
    about=Describe("Stop a job", {202: schemas.JOB}, errors=(400, 404, 409), tag=TAG),
)
async def stop_job(server: Server, call: Call) -> Answer:
    """Record that a job shall stop. Asking twice is fine."""
    call.no_body()
    job_id = resolve(server, call)
    await stopped(server, call, job_id)
    view = server.view(call.caller.workspace.id, job_id)
    return json_reply(shown(server, call, view), 202)


@routes(
    "POST",
    f"{JOB}/preempt",
    rule=_rule("update", writes=True),
    about=Describe(
        "Take a running job's place away; it begins again by its retry policy",
        {202: schemas.JOB},
        errors=(400, 404, 409),
        tag=TAG,
        parameters=(
            Parameter(
                "grace_s",
                {**WHOLE, "minimum": 0, "maximum": limits.GRACE_S},
                "seconds between SIGTERM and SIGKILL; the job's own where it is not given",
            ),
        ),
    ),
)
async def preempt_job(server: Server, call: Call) -> Answer:
    """Record that a running job loses its place."""
    call.no_body()
    call.only("grace_s")
    job_id = resolve(server, call)
    workspace = call.caller.workspace.id
    grace_s = call.number(
        "grace_s", server.view(workspace, job_id).job.spec.grace_s, 0, limits.GRACE_S
    )
    reached = await server.durable(
        preempt(server.platform, server.board, call.caller, job_id, grace_s, server.wake)
    )
    view = server.view(workspace, job_id)
    if reached is None:  # it ended in between
        raise Refused("job-not-running", job=job_id, state=view.attempt.state)
    return json_reply(shown(server, call, view), 202)


@routes(
    "DELETE",
    JOB,
    rule=_rule("delete", writes=True),
    about=Describe(
        "Delete a job that has ended", {202: schemas.EMPTY}, errors=(400, 404, 409), tag=TAG
    ),
)
async def delete_job(server: Server, call: Call) -> Answer:
    """Hide a job that has ended."""
    call.no_body()
    await deleted(server, call, resolve(server, call))
    return json_reply({}, 202)


@routes(
    "GET",
    f"{JOB}/why",
    rule=_rule("get"),
    about=Describe("Why a job waits, or ended", {200: schemas.WHY}, tag=TAG),
)
async def why_job(server: Server, call: Call) -> Answer:
    """Why a job is where it is."""
    call.only()
    view = server.view(call.caller.workspace.id, resolve(server, call))
    why = None
    if view.attempt.state is State.QUEUED:
        why = explain.why(server.platform, server.board, view.job.id)
    return json_reply(wire.why(view, why, call.language))


@routes(
    "GET",
    f"{JOB}/events",
    rule=_rule("listEvents"),
    about=Describe(
        "What happened to a job",
        {200: schemas.EVENTS},
        tag=TAG,
        parameters=(
            Parameter("after", {**WHOLE, "minimum": 0}, "the last sequence seen"),
            Parameter("limit", {**WHOLE, "minimum": 1, "maximum": 1000}),
        ),
    ),
)
async def job_events(server: Server, call: Call) -> Answer:
    """Events after a sequence number, oldest first."""
    call.only("after", "limit")
    query = EventQuery(
        after_sequence=call.number("after", 0, 0, 1 << 53),
        limit=call.number("limit", 100, 1, 1000),
    )
    job_id = resolve(server, call)
    found = server.platform.records.events(call.caller.workspace.id, job_id, query)
    return json_reply({"events": [wire.event(event, call.language) for event in found]})
