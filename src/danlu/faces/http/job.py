"""ModelArts' calls on training jobs: create, list, show, stop, delete, describe."""

from __future__ import annotations

from typing import Any

from danlu.faces.http.call import Call
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.reply import Answer, empty_reply, json_reply
from danlu.faces.http.route import Describe, Parameter, Routes
from danlu.faces.http.server import Server
from danlu.faces.http.ssh import address
from danlu.flow import ssh
from danlu.flow.delete import delete
from danlu.flow.stop import want_stop
from danlu.flow.submit import submit
from danlu.model.attempt import FINAL, Attempt
from danlu.model.errors import Missing
from danlu.model.job import JobSpec, JobView
from danlu.ports.records import Filter, JobQuery
from danlu.wire import modelarts_training as wire
from danlu.wire import modelarts_training_fields as fields
from danlu.wire import modelarts_training_reply as replies

JOBS = "/v2/{project_id}/training-jobs"
JOB = f"{JOBS}/{{training_job_id}}"

CLIENT_TOKEN = "x-client-token"  # noqa: S105 -- the name of a header

SHOWN = {200: replies.JOB_SCHEMA}
LANGUAGE = Parameter("X-Language", about="zh-cn or en-us", place="header")
TOKEN = Parameter(
    "X-Client-Token",
    {"type": "string", "maxLength": 128},
    "the same token gives the same job again",
    "header",
)

routes = Routes()


def _rule(verb: str, *, writes: bool = False) -> Rule:
    return Rule(f"modelarts:trainJob:{verb}", Access.PROJECT, writes=writes)


@routes("GET", JOB, rule=_rule("get"), about=Describe("Show a job", SHOWN, parameters=(LANGUAGE,)))
async def show_training_job_details(server: Server, call: Call) -> Answer:
    """One job."""
    view = server.view(call.caller.workspace.id, call.job_id())
    return json_reply(_shown(server, call, view))


@routes(
    "POST",
    JOBS,
    rule=_rule("create", writes=True),
    about=Describe(
        "Create a job",
        {201: replies.JOB_SCHEMA, 200: replies.JOB_SCHEMA},
        body=fields.JOB.schema(),
        parameters=(TOKEN, LANGUAGE),
        errors=(400, 404, 409, 429),
    ),
)
async def create_training_job(server: Server, call: Call) -> Answer:
    """Submit a job; 201, or 200 where the client token gave an earlier one."""
    view, status = await submitted(server, call)
    return json_reply(_shown(server, call, view), status)


def wanted(server: Server, call: Call) -> JobSpec:
    """What a create body asks for, as far as its user's keys go; `submit` checks the rest."""
    spec = wire.job_spec(call.json())
    field = "endpoints.ssh.key_pair_names"
    ssh.check_keys(server.platform, call.caller.user, spec.key_pairs, field)
    return spec


async def submitted(server: Server, call: Call) -> tuple[JobView, int]:
    """Read, check and record what a create body asks for: the job, and 201 or 200."""
    spec = wanted(server, call)
    future = submit(
        server.platform,
        server.board,
        call.caller,
        spec,
        client_token=call.header(CLIENT_TOKEN),
        wake=server.wake,
    )
    done = await server.durable(future)
    entry = server.board.get(done.job.id) if done.created else None
    view = entry.view if entry else server.view(call.caller.workspace.id, done.job.id)
    return view, 201 if done.created else 200


@routes(
    "POST",
    "/v2/{project_id}/training-job-searches",
    rule=_rule("list"),
    about=Describe(
        "List jobs", {200: replies.JOBS_SCHEMA}, body=fields.SEARCH.schema(), errors=(400,)
    ),
)
async def list_training_jobs(server: Server, call: Call) -> Answer:
    """A page of jobs; `offset` is the number of the page."""
    search = wire.search(call.json())
    records, workspace = server.platform.records, call.caller.workspace.id
    query = JobQuery(
        filters=[Filter(item.key, item.operator, item.values) for item in search.conditions],
        sort_by=search.sort,
        descending=search.descending,
        offset=search.page * search.limit,
        limit=search.limit,
    )
    page = await server.jobs(workspace, query)
    total = records.jobs(workspace, JobQuery(limit=1)).total if query.filters else page.total
    counts: dict[str, Any] = {
        "total": total,
        "count": page.total,
        "limit": search.limit,
        "offset": search.page,
        "sort_by": search.sort_by,
        "order": "desc" if search.descending else "asc",
    }
    return json_reply(replies.jobs(page.jobs, server.now(), counts, call.language))


def _shown(server: Server, call: Call, view: JobView) -> dict[str, Any]:
    earlier = earlier_attempts(server, view)
    return replies.job(view, server.now(), call.language, earlier, _urls(server, call, view))


def _urls(server: Server, call: Call, view: JobView) -> list[str]:
    """Where each task is reached over SSH."""
    if not view.job.spec.ssh or server.ssh is None or view.attempt.state in FINAL:
        return []
    tasks = range(view.job.spec.node_count)
    return [address(server, call, ssh.host(view.job, task)) for task in tasks]


def earlier_attempts(server: Server, view: JobView) -> list[Attempt]:
    """A job's attempts before the one that is shown."""
    number = view.attempt.key.number
    if number == 1:
        return []
    attempts = server.platform.records.attempts(view.job.workspace, view.job.id)
    return [attempt for attempt, _ in attempts if attempt.key.number < number]


@routes(
    "POST",
    f"{JOB}/actions",
    rule=_rule("update", writes=True),
    about=Describe(
        "Stop a job",
        {202: replies.JOB_SCHEMA},
        body=fields.ACTION.schema(),
        errors=(400, 404, 409),
    ),
)
async def stop_training_job(server: Server, call: Call) -> Answer:
    """Record that a job shall stop. Asking twice is fine."""
    job_id = call.job_id()
    wire.action(call.json())
    await stopped(server, call, job_id)
    view = server.view(call.caller.workspace.id, job_id)
    return json_reply(_shown(server, call, view), 202)


async def stopped(server: Server, call: Call, job_id: str) -> None:
    """Record that a job shall stop."""
    future = want_stop(server.platform, server.board, call.caller, job_id, server.wake)
    await server.durable(future)


@routes(
    "DELETE",
    JOB,
    rule=_rule("delete", writes=True),
    about=Describe("Delete a job that has ended", {202: None}, errors=(400, 404, 409)),
)
async def delete_training_job(server: Server, call: Call) -> Answer:
    """Hide a job that has ended."""
    call.no_body()
    await deleted(server, call, call.job_id())
    return empty_reply(202)


async def deleted(server: Server, call: Call, job_id: str) -> None:
    """Hide a job that has ended, and tell those who follow it."""
    if not await server.durable(delete(server.platform, call.caller, job_id)):
        raise Missing("job-missing", job=job_id)
    server.board.tell(job_id)
    server.wake()


@routes(
    "PUT",
    JOB,
    rule=_rule("update", writes=True),
    about=Describe("Change a job's description", SHOWN, body=fields.UPDATE.schema()),
)
async def change_training_job_description(server: Server, call: Call) -> Answer:
    """Change what a job is said to be for."""
    job_id = call.job_id()
    text = wire.description(call.json())
    workspace = call.caller.workspace.id
    if not await server.durable(server.platform.records.describe(workspace, job_id, text)):
        raise Missing("job-missing", job=job_id)
    server.board.describe(job_id, text)
    return json_reply(_shown(server, call, server.view(workspace, job_id)))


@routes(
    "GET",
    f"{JOB}/tasks",
    rule=_rule("get"),
    about=Describe(
        "List a job's tasks",
        {200: replies.TASKS_SCHEMA},
        parameters=(Parameter("schedule_count", {"type": "integer", "minimum": 0}),),
    ),
)
async def list_training_job_tasks(server: Server, call: Call) -> Answer:
    """A job's tasks: a bare list."""
    call.only("schedule_count")
    wanted = call.number("schedule_count", 0, 0, 1_000_000)
    view = server.view(call.caller.workspace.id, call.job_id())
    listed = replies.tasks(view)
    if wanted:
        listed = [task for task in listed if task["schedule_count"] == wanted]
    return json_reply(listed)
