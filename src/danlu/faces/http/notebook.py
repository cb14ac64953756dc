"""ModelArts' calls on notebooks: create, list, show, update, delete, start, stop, leases."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Any

from danlu.faces.http.call import Call, plain_id
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.reply import Answer, json_reply
from danlu.faces.http.route import Describe, Parameter, Routes
from danlu.faces.http.server import Server
from danlu.faces.http.ssh import address
from danlu.flow import explain, ssh, submit
from danlu.flow import notebook as wishes
from danlu.flow.notebook_idle import outlook
from danlu.flow.notebooks import job_spec
from danlu.model.attempt import State as AttemptState
from danlu.model.errors import Invalid, Missing, Refused, Unavailable
from danlu.model.event import JobEvent
from danlu.model.notebook import LEAST_LEASE_MS, MOST_LEASE_MS, Lease, Notebook, State
from danlu.ports.records import EventQuery
from danlu.wire import modelarts_notebook as wire
from danlu.wire import modelarts_notebook_reply as replies
from danlu.wire.danlu import waiting_sentence

NOTEBOOKS = "/v1/{project_id}/notebooks"
NOTEBOOK = f"{NOTEBOOKS}/{{notebook_id}}"
TAG = "notebooks"
MOST = 200
TRIES = 5
"""So often a wish is tried when something else changed the notebook at the same moment."""
KEYS_FIELD = "endpoints.key_pair_names"
SORTS = ("create_at", "update_at", "name", "status", "flavor")
FILTERS = (
    "feature", "name", "pool_id", "owner", "status", "workspace_id", "flavor", "image_id", "id",
    "billing", "tags", "swr_path", "pool_name", "description", "ip", "username",
)  # fmt: skip
DURATION = {"type": "integer", "minimum": LEAST_LEASE_MS, "maximum": MOST_LEASE_MS}
SHOWN = {200: replies.NOTEBOOK_SCHEMA}

routes = Routes()


def rule(verb: str, *, writes: bool = False) -> Rule:
    """What a call on notebooks asks of its caller."""
    return Rule(f"modelarts:notebook:{verb}", Access.PROJECT, writes=writes)


def found(server: Server, call: Call) -> Notebook:
    """The notebook that the path names."""
    notebook_id = call.params["notebook_id"]
    if not plain_id(notebook_id):
        raise Missing("notebook-missing", notebook=notebook_id)
    return server.platform.records.notebook(call.caller.workspace.id, notebook_id)


def shown(server: Server, call: Call, notebook: Notebook) -> dict[str, Any]:
    """A notebook's reply, with how far its start is or what is to become of it."""
    steps, why = _progress(server, call, notebook)
    seen = replies.Outlook()
    if notebook.state is State.RUNNING:
        now = outlook(server.platform, server.activity, notebook)
        verdict = now.verdict
        seen = replies.Outlook(
            now.ends_at,
            now.because,
            verdict.idle_since,
            verdict.stops_at,
            now.after_s,
            verdict.unknown,
            verdict.signals,
            now.held,
        )
    used = server.activity.home_bytes(notebook)
    runs = notebook.state is State.RUNNING and notebook.spec.ssh
    uri = address(server, call, notebook.id) if runs else ""
    saving = notebook.id in server.saving
    shown = replies.Shown(
        server.now(), call.language, steps, why, used, seen, ssh=uri, saving=saving
    )
    return replies.notebook(notebook, shown)


def _progress(server: Server, call: Call, notebook: Notebook) -> tuple[int, str]:
    """How many steps of its start are done, and why it waits."""
    entry = server.board.get(notebook.job_id)
    if entry is None:
        return 0, ""
    state = entry.attempt.state
    if state is AttemptState.QUEUED:
        line = explain.why(server.platform, server.board, notebook.job_id)
        return 0, "" if line is None else waiting_sentence(line, call.language)
    return (2 if state is AttemptState.RUNNING else 1), ""


async def wish(
    server: Server,
    call: Call,
    step: Callable[[Notebook], tuple[Notebook, Sequence[JobEvent]]],
    notebook_id: str = "",
) -> Notebook:
    """Have a step taken from the notebook as it stands, and record it."""
    for _ in range(TRIES):
        if notebook_id:
            before = server.platform.records.notebook(call.caller.workspace.id, notebook_id)
        else:
            before = found(server, call)
        to, events = step(before)
        if to is before and not events:
            return before
        changed = await server.durable(server.notebooks.change(before, to, events))
        if changed is not None:
            server.wake()
            return changed
    raise Unavailable("busy", detail="the notebook changes all the time")


async def created(server: Server, call: Call) -> Notebook:
    """Record what a create body asks for."""
    platform, caller = server.platform, call.caller
    spec, lease = wire.create(call.json())
    ssh.check_keys(platform, caller.user, spec.key_pairs, KEYS_FIELD)
    made, events = wishes.create(platform, caller, spec, lease)
    # Whatever would make its first start fail is told at once.
    submit.check(
        platform, server.board, caller.workspace.id, job_spec(platform, made.spec, made.id)
    )
    if not await server.durable(server.notebooks.add(made, events)):
        raise Refused("notebook-name", field="name", value=made.spec.name)
    server.wake()
    return made


@routes(
    "POST",
    NOTEBOOKS,
    rule=rule("create", writes=True),
    about=Describe(
        "Create a notebook and start it",
        {201: replies.NOTEBOOK_SCHEMA},
        body=wire.CREATE.schema(),
        errors=(400, 404, 409),
        tag=TAG,
    ),
)
async def create_notebook(server: Server, call: Call) -> Answer:
    """A new notebook, whose start is under way."""
    return json_reply(shown(server, call, await created(server, call)), 201)


def _listed(call: Call, notebooks: Sequence[Notebook], saving: Container[str]) -> list[Notebook]:
    """Those that the query's filters leave, sorted."""
    status, name = call.text("status"), call.text("name")
    if status and status not in replies.MODELARTS_STATUSES:
        expected = f"one of {', '.join(replies.MODELARTS_STATUSES)}"
        raise Invalid("field-value", field="status", value=status, expected=expected)
    owner = call.text("owner") or call.text("username")
    left = [
        one
        for one in notebooks
        if name in one.spec.name
        and status in ("", replies.status(one, saving=one.id in saving))
        and owner in ("", one.user)
        and call.text("flavor") in ("", one.spec.flavor)
        and call.text("image_id") in ("", one.spec.image)
        and call.text("id") in ("", one.id)
        and call.text("description") in one.spec.description
    ]
    key = call.choice("sort_key", *SORTS)
    orders: dict[str, Callable[[Notebook], Any]] = {
        "create_at": lambda one: one.sequence,
        "update_at": lambda one: one.updated_at,
        "name": lambda one: one.spec.name,
        "status": lambda one: one.state,
        "flavor": lambda one: one.spec.flavor,
    }
    return sorted(left, key=orders[key], reverse=call.choice("sort_dir", "DESC", "ASC") == "DESC")


LISTING = (
    *(Parameter(name) for name in FILTERS),
    Parameter("limit", {"type": "integer", "minimum": 1, "maximum": MOST}),
    Parameter("offset", {"type": "integer", "minimum": 0}),
    Parameter("sort_key", {"type": "string", "enum": list(SORTS)}),
    Parameter("sort_dir", {"type": "string", "enum": ["DESC", "ASC"]}),
)


def page(server: Server, call: Call) -> dict[str, Any]:
    """The page of notebooks that a query asks for."""
    call.only(*FILTERS, "limit", "offset", "sort_key", "sort_dir")
    limit, offset = call.number("limit", MOST, 1, MOST), call.number("offset", 0, 0, 2**31)
    left = _listed(call, server.platform.records.notebooks(call.caller.workspace.id), server.saving)
    part = [shown(server, call, one) for one in left[offset : offset + limit]]
    return replies.page(part, len(left), offset, limit)


@routes(
    "GET",
    NOTEBOOKS,
    rule=rule("list"),
    about=Describe(
        "List notebooks",
        {200: replies.pages(replies.NOTEBOOK_SCHEMA)},
        parameters=LISTING,
        errors=(400,),
        tag=TAG,
    ),
)
async def list_notebooks(server: Server, call: Call) -> Answer:
    """The project's notebooks."""
    return json_reply(page(server, call))


@routes(
    "GET",
    f"{NOTEBOOKS}/all",
    rule=rule("list"),
    about=Describe(
        "List notebooks of all users",
        {200: replies.pages(replies.NOTEBOOK_SCHEMA)},
        parameters=LISTING,
        errors=(400,),
        tag=TAG,
    ),
)
async def list_all_notebooks(server: Server, call: Call) -> Answer:
    """The same: a project's users see its notebooks."""
    return json_reply(page(server, call))


def _flavors(server: Server, call: Call) -> dict[str, Any]:
    names = ("category", "type", "flavor_type", "feature", "sort_dir", "sort_key")
    call.only(*names, "limit", "offset")
    wanted = call.choice("category", "", "CPU", "GPU", "ASCEND") or call.choice(
        "flavor_type", "", "CPU", "GPU", "ASCEND"
    )
    limit, offset = call.number("limit", MOST, 1, MOST), call.number("offset", 0, 0, 2**31)
    known = server.platform.catalog.flavors()
    listed = [replies.flavor(one) for one in known if wanted in ("", one.kind)]
    return replies.page(listed[offset : offset + limit], len(listed), offset, limit)


_FLAVORS = Describe(
    "List flavors of notebooks",
    {200: replies.pages(replies.FLAVOR_SCHEMA)},
    parameters=(
        Parameter("category", {"type": "string", "enum": ["CPU", "GPU", "ASCEND"]}),
        Parameter("flavor_type", {"type": "string", "enum": ["CPU", "GPU", "ASCEND"]}),
        *(Parameter(name) for name in ("type", "feature", "sort_dir", "sort_key")),
        Parameter("limit", {"type": "integer", "minimum": 1, "maximum": MOST}),
        Parameter("offset", {"type": "integer", "minimum": 0}),
    ),
    errors=(400,),
    tag=TAG,
)


@routes("GET", f"{NOTEBOOKS}/flavors", rule=rule("list"), about=_FLAVORS)
async def list_flavors(server: Server, call: Call) -> Answer:
    """What notebooks may have."""
    return json_reply(_flavors(server, call))


@routes("GET", f"{NOTEBOOK}/flavors", rule=rule("get"), about=replace(_FLAVORS, errors=(400, 404)))
async def show_switchable_flavors(server: Server, call: Call) -> Answer:
    """What this one may be changed to while it is stopped: everything else that there is."""
    own = found(server, call).spec.flavor
    listed = _flavors(server, call)
    listed["data"] = [one for one in listed["data"] if one["id"] != own]
    return json_reply(listed)


@routes("GET", NOTEBOOK, rule=rule("get"), about=Describe("Show a notebook", SHOWN, tag=TAG))
async def show_notebook(server: Server, call: Call) -> Answer:
    """One notebook."""
    call.only()
    return json_reply(shown(server, call, found(server, call)))


@routes(
    "PUT",
    NOTEBOOK,
    rule=rule("update", writes=True),
    about=Describe(
        "Change a notebook; flavor and image while it is stopped",
        SHOWN,
        body=wire.UPDATE.schema(),
        errors=(400, 404, 409),
        tag=TAG,
    ),
)
async def update_notebook(server: Server, call: Call) -> Answer:
    """Change what is asked for."""
    changes = wishes.Changes(**wire.update(call.json()))
    ssh.check_keys(server.platform, call.caller.user, changes.key_pairs or (), KEYS_FIELD)
    try:
        done = await wish(server, call, lambda one: wishes.update(server.platform, one, changes))
    except Refused as refused:
        if refused.key != "record-conflict":
            raise
        raise Refused("notebook-name", field="name", value=changes.name) from refused
    return json_reply(shown(server, call, done))


@routes(
    "DELETE",
    NOTEBOOK,
    rule=rule("delete", writes=True),
    about=Describe("Delete a notebook with its home", SHOWN, errors=(400, 404, 409), tag=TAG),
)
async def delete_notebook(server: Server, call: Call) -> Answer:
    """Stop it if it runs, and remove it with its home."""
    call.no_body()
    step = wishes.delete
    done = await wish(server, call, lambda one: step(server.platform, call.caller, one))
    return json_reply(shown(server, call, done))


@routes(
    "POST",
    f"{NOTEBOOK}/start",
    rule=rule("start", writes=True),
    about=Describe(
        "Start a notebook",
        SHOWN,
        parameters=(
            Parameter("duration", DURATION, "milliseconds; default: as before"),
            Parameter("type", {"type": "string", "enum": ["TIMING", "IDLE"]}),
        ),
        errors=(400, 404, 409),
        tag=TAG,
    ),
)
async def start_notebook(server: Server, call: Call) -> Answer:
    """Begin it again, under the lease that it had, or another one."""
    call.only("duration", "type")
    call.no_body()
    kind = call.choice("type", "TIMING", "IDLE")
    duration = _duration(call)
    terms = None if duration is None else wire.terms(duration, kind)

    def step(before: Notebook) -> wishes.Step:
        lease, idle = (None, None) if terms is None else (terms.lease, terms.idle)
        return wishes.start(server.platform, call.caller, before, lease, idle)

    return json_reply(shown(server, call, await wish(server, call, step)))


def _duration(call: Call) -> int | None:
    if not call.query.get("duration"):
        return None
    return call.number("duration", 0, LEAST_LEASE_MS, MOST_LEASE_MS)


@routes(
    "POST",
    f"{NOTEBOOK}/stop",
    rule=rule("stop", writes=True),
    about=Describe("Stop a notebook; its home stays", SHOWN, errors=(400, 404, 409), tag=TAG),
)
async def stop_notebook(server: Server, call: Call) -> Answer:
    """End what runs of it."""
    call.no_body()
    step = wishes.stop
    done = await wish(server, call, lambda one: step(server.platform, call.caller, one))
    return json_reply(shown(server, call, done))


@routes(
    "GET",
    f"{NOTEBOOK}/lease",
    rule=rule("get"),
    about=Describe("Show a notebook's lease", {200: replies.LEASE_SCHEMA}, tag=TAG),
)
async def show_lease(server: Server, call: Call) -> Answer:
    """Until when it may run."""
    call.only()
    return json_reply(shown(server, call, found(server, call))["lease"])


@routes(
    "PATCH",
    f"{NOTEBOOK}/lease",
    rule=rule("update", writes=True),
    about=Describe(
        "Renew a notebook's lease, from now",
        {200: replies.LEASE_SCHEMA},
        body=wire.RENEW.schema(),
        parameters=(Parameter("duration", DURATION, "milliseconds; wins over the body"),),
        errors=(400, 404, 409),
        tag=TAG,
    ),
)
async def renew_lease(server: Server, call: Call) -> Answer:
    """A new lease, counted from now; a duration in the query wins and makes it a TIMING one."""
    call.only("duration")
    terms = wire.renewal(_duration(call), call.json() if call.body.strip() else {})
    return json_reply(shown(server, call, await renewed(server, call, terms))["lease"])


async def renewed(server: Server, call: Call, terms: wire.Terms, notebook_id: str = "") -> Notebook:
    """Put a notebook under new terms."""

    def step(before: Notebook) -> wishes.Step:
        idle = before.spec.idle if terms.idle is None else terms.idle
        if terms.idle is None and before.lease == Lease(began_at=before.lease.began_at):
            # What was its whole lease was the idleness: a TIMING one takes its place.
            idle = idle if idle.off else type(idle)()
        return wishes.renew(server.platform, call.caller, before, terms.lease, idle)

    return await wish(server, call, step, notebook_id)


def history(server: Server, notebook: Notebook, query: EventQuery) -> Sequence[JobEvent]:
    """What happened to a notebook."""
    return server.platform.records.notebook_events(notebook.workspace, notebook.id, query)
