"""Danlu's own calls on notebooks: by their names, with long polls, holds and histories."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from danlu.faces.http.call import Call
from danlu.faces.http.notebook import (
    LISTING,
    SHOWN,
    created,
    history,
    page,
    rule,
    shown,
    wish,
)
from danlu.faces.http.reply import Answer, json_reply
from danlu.faces.http.route import Describe, Parameter, Routes
from danlu.faces.http.server import Server
from danlu.flow import notebook as wishes
from danlu.model.errors import Invalid, Missing
from danlu.model.notebook import LIVE, Notebook, State
from danlu.ports.records import EventQuery
from danlu.wire import danlu, danlu_schemas
from danlu.wire import danlu_notebook as own
from danlu.wire import modelarts_notebook as wire
from danlu.wire import modelarts_notebook_reply as replies

NOTEBOOKS = "/danlu/v1/{project_id}/notebooks"
NOTEBOOK = f"{NOTEBOOKS}/{{notebook_id}}"
TAG = "notebooks"
PREFIX_CHARS = 4
WAIT_S, MOST_WAIT_S = 30, 60
WAITS = ("", "settled", "changed")

routes = Routes()


def resolve(server: Server, call: Call) -> Notebook:
    """The notebook that the path's reference stands for: its name, its id, or the beginning of one
    (4 characters or more).
    """
    return named(server, call, call.params["notebook_id"])


def named(server: Server, call: Call, ref: str) -> Notebook:
    """The notebook that a reference stands for."""
    known = server.platform.records.notebooks(call.caller.workspace.id)
    whole = [one for one in known if ref in (one.spec.name, one.id)]
    if whole:
        return whole[0]
    begins = [one for one in known if one.id.startswith(ref)]
    if len(ref) < PREFIX_CHARS or not begins:
        raise Missing("notebook-missing", notebook=ref)
    if len(begins) > 1:
        names = ", ".join(one.spec.name for one in begins[:5])
        raise Invalid("job-ambiguous", job=ref, count=len(begins), jobs=names)
    return begins[0]


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
async def notebooks(server: Server, call: Call) -> Answer:
    """The project's notebooks."""
    return json_reply(page(server, call))


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
async def new_notebook(server: Server, call: Call) -> Answer:
    """A new notebook, whose start is under way."""
    return json_reply(shown(server, call, await created(server, call)), 201)


@routes(
    "GET",
    NOTEBOOK,
    rule=rule("get"),
    about=Describe(
        "Show a notebook, perhaps once it has changed",
        SHOWN,
        parameters=(
            Parameter("wait", {"type": "string", "enum": list(WAITS[1:])}),
            Parameter("timeout_s", {"type": "integer", "minimum": 0, "maximum": MOST_WAIT_S}),
        ),
        tag=TAG,
    ),
)
async def notebook(server: Server, call: Call) -> Answer:
    """One notebook; with `wait`, once it is on its way to nowhere else, or once it changes."""
    call.only("wait", "timeout_s")
    wanted = call.choice("wait", *WAITS)
    timeout_s = call.number("timeout_s", WAIT_S, 0, MOST_WAIT_S)
    one = resolve(server, call)
    if not wanted:
        return json_reply(shown(server, call, one))
    ends = time.monotonic() + timeout_s
    before = one.version
    with server.changes.watch(one.id) as watch:
        while not _reached(one, wanted, before) and not watch.closing:
            left_s = ends - time.monotonic()
            if left_s <= 0:
                break
            watch.clear()
            one = server.platform.records.notebook(one.workspace, one.id)
            if not _reached(one, wanted, before):
                await watch.wait(left_s)
                one = server.platform.records.notebook(one.workspace, one.id)
    return json_reply(shown(server, call, one))


def _reached(one: Notebook, wanted: str, before: int) -> bool:
    if wanted == "changed":
        return one.version != before
    return one.state is State.RUNNING or one.state not in LIVE


async def _wished(server: Server, call: Call, step: Callable[[Notebook], wishes.Step]) -> Answer:
    """Take a step with the notebook that is meant, and show it."""
    one = resolve(server, call)
    return json_reply(shown(server, call, await wish(server, call, step, one.id)))


@routes(
    "DELETE",
    NOTEBOOK,
    rule=rule("delete", writes=True),
    about=Describe("Delete a notebook with its home", SHOWN, errors=(400, 404, 409), tag=TAG),
)
async def remove_notebook(server: Server, call: Call) -> Answer:
    """Stop it if it runs, and remove it with its home."""
    call.no_body()
    step = wishes.delete
    return await _wished(server, call, lambda it: step(server.platform, call.caller, it))


@routes(
    "POST",
    f"{NOTEBOOK}/start",
    rule=rule("start", writes=True),
    about=Describe("Start a notebook", SHOWN, errors=(400, 404, 409), tag=TAG),
)
async def begin_notebook(server: Server, call: Call) -> Answer:
    """Begin it again, under the lease that it had."""
    call.no_body()
    step = wishes.start
    return await _wished(server, call, lambda it: step(server.platform, call.caller, it))


@routes(
    "POST",
    f"{NOTEBOOK}/stop",
    rule=rule("stop", writes=True),
    about=Describe("Stop a notebook; its home stays", SHOWN, errors=(400, 404, 409), tag=TAG),
)
async def end_notebook(server: Server, call: Call) -> Answer:
    """End what runs of it."""
    call.no_body()
    step = wishes.stop
    return await _wished(server, call, lambda it: step(server.platform, call.caller, it))


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
async def change_notebook(server: Server, call: Call) -> Answer:
    """Change what is asked for."""
    changes = wishes.Changes(**wire.update(call.json()))
    step = wishes.update
    return await _wished(server, call, lambda it: step(server.platform, it, changes))


@routes(
    "POST",
    f"{NOTEBOOK}/renew",
    rule=rule("update", writes=True),
    about=Describe(
        "Renew a notebook, from now",
        SHOWN,
        body=own.RENEW.schema(),
        errors=(400, 404, 409),
        tag=TAG,
    ),
)
async def renew_notebook(server: Server, call: Call) -> Answer:
    """Count its lease and its idleness from now on, the same or others."""
    wanted = own.renewal(call.json() if call.body.strip() else {})

    def step(it: Notebook) -> wishes.Step:
        lease = replace(it.lease) if wanted.lease is None else wanted.lease
        idle = it.spec.idle if wanted.idle is None else wanted.idle
        return wishes.renew(server.platform, call.caller, it, lease, idle)

    return await _wished(server, call, step)


@routes(
    "POST",
    f"{NOTEBOOK}/hold",
    rule=rule("update", writes=True),
    about=Describe(
        "Keep a notebook up for a time, or until a process ends",
        SHOWN,
        body=own.HOLD.schema(),
        errors=(400, 404, 409),
        tag=TAG,
    ),
)
async def hold_notebook(server: Server, call: Call) -> Answer:
    """Nothing but the server's own limit ends it meanwhile."""
    seconds, pid, why = own.hold(call.json())

    def step(it: Notebook) -> wishes.Step:
        wanted = wishes.holding(server.now(), seconds, pid, why)
        return wishes.hold(server.platform, call.caller, it, wanted)

    return await _wished(server, call, step)


@routes(
    "DELETE",
    f"{NOTEBOOK}/hold",
    rule=rule("update", writes=True),
    about=Describe("Hold a notebook no longer", SHOWN, errors=(400, 404, 409), tag=TAG),
)
async def release_notebook(server: Server, call: Call) -> Answer:
    """Its lease and its idleness count again, from now."""
    call.no_body()
    step = wishes.hold
    return await _wished(server, call, lambda it: step(server.platform, call.caller, it, None))


@routes(
    "GET",
    f"{NOTEBOOK}/events",
    rule=rule("get"),
    about=Describe(
        "What happened to a notebook",
        {200: danlu_schemas.EVENTS},
        parameters=(
            Parameter("after", {"type": "integer", "minimum": 0}),
            Parameter("limit", {"type": "integer", "minimum": 1, "maximum": 1000}),
        ),
        tag=TAG,
    ),
)
async def notebook_events(server: Server, call: Call) -> Answer:
    """Its history, the earliest first."""
    call.only("after", "limit")
    one = resolve(server, call)
    query = EventQuery(
        after_sequence=call.number("after", 0, 0, 2**62), limit=call.number("limit", 1000, 1, 1000)
    )
    told = [danlu.event(event, call.language) for event in history(server, one, query)]
    return json_reply({"events": told})
