"""Danlu's own calls on the server: health, status, flavors, and the API's description."""

from __future__ import annotations

import os
from typing import Any

from fastapi import FastAPI

import danlu
from danlu.faces.http.call import Call
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.reply import Answer, Reply, encode, json_reply
from danlu.faces.http.route import Describe, Routes
from danlu.faces.http.server import Server
from danlu.model import queue
from danlu.model.attempt import FINAL, LIVE
from danlu.model.errors import PlatformError
from danlu.model.flavor import Flavor, default_of
from danlu.ports.records import Filter, JobQuery
from danlu.wire import danlu as wire
from danlu.wire import danlu_schemas as schemas

TAG = "server"

routes = Routes()


@routes(
    "GET",
    "/openapi.json",
    rule=Rule("danlu:server:describe", Access.PUBLIC),
    about=Describe("This description", {200: schemas.EMPTY}, errors=(), tag=TAG),
)
async def openapi(server: Server, call: Call) -> Answer:
    """The description of every route."""
    del server
    app: FastAPI = call.scope["app"]
    return Reply(encode(app.openapi()))


@routes(
    "GET",
    "/danlu/v1/health",
    rule=Rule("danlu:server:health", Access.PUBLIC),
    about=Describe("Whether the server answers", {200: schemas.HEALTH}, errors=(), tag=TAG),
)
async def health(server: Server, call: Call) -> Answer:
    """Alive, and whether new work is taken; anybody may ask, so only the error's key is told."""
    del call
    trouble = server.platform.records.trouble()
    return json_reply(
        {
            "status": "ok" if trouble is None else "degraded",
            "problem": "" if trouble is None else trouble.key,
            "version": danlu.__version__,
            "server_id": server.server_id,
        }
    )


@routes(
    "GET",
    "/danlu/v1/{project_id}/status",
    rule=Rule("danlu:server:get", Access.PROJECT),
    about=Describe(
        "The server, its jobs and its machine", {200: schemas.STATUS}, errors=(400,), tag=TAG
    ),
)
async def status(server: Server, call: Call) -> Answer:
    """Everything about the server at a glance."""
    call.only()
    platform = server.platform
    totals = platform.engine.capacity()
    held = [place for places in server.board.held().values() for place in places]
    environments = await server.on_worker(platform.catalog.environments, call.caller.workspace.id)
    now = server.now()
    trouble = platform.records.trouble()
    return json_reply(
        {
            "problem": "" if trouble is None else trouble.message(call.language),
            "version": danlu.__version__,
            "started_at": server.running.started_at,
            "uptime_s": max(0, now - server.running.started_at) / 1000,
            "pid": os.getpid(),
            "data": str(server.settings.data),
            "engine": server.settings.engine,
            "environment": environments[0].directory if environments else "",
            "jobs": _counts(server, call.caller.workspace.id),
            "capacity": wire.capacity(totals, queue.free(totals, held)),
            "default_flavor": default_flavor(server),
            "local_paths": platform.limits.local_paths and platform.engine.powers.local_paths,
            "bucket": platform.limits.bucket,
            "obs": platform.obs,
        }
    )


def default_flavor(server: Server) -> str:
    """The flavor of a job that names none; empty while no node is up."""
    try:
        return server.platform.catalog.flavor("", 1, "flavor").id
    except PlatformError:
        return server.platform.catalog.default


def _counts(server: Server, workspace: str) -> dict[str, int]:
    records = server.platform.records
    counts: dict[str, int] = {}
    for state in sorted(LIVE | FINAL):
        filters = [Filter("state", "in", [state.value])]
        total = records.jobs(workspace, JobQuery(filters=filters, limit=1)).total
        if total:
            counts[state.value] = total
    return counts


@routes(
    "GET",
    "/danlu/v1/{project_id}/flavors",
    rule=Rule("danlu:flavor:list", Access.PROJECT),
    about=Describe("Flavors, and whether they fit", {200: schemas.FLAVORS}, errors=(400,), tag=TAG),
)
async def flavors(server: Server, call: Call) -> Answer:
    """Every flavor with its price, and whether this machine could hold it."""
    call.only()
    known = server.platform.catalog.flavors()
    return json_reply(described(server, known))


def described(server: Server, known: tuple[Flavor, ...]) -> dict[str, Any]:
    """Flavors in our words."""
    offers = server.platform.engine.capacity()
    default = server.platform.catalog.default or (default_of(known).id if known else "")
    return wire.flavors(
        known, default, lambda flavor: any(offer.holds(flavor.shape) for offer in offers)
    )
