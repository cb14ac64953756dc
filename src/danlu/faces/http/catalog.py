"""ModelArts' calls on what a job may ask for: flavors and engines."""

from __future__ import annotations

from danlu.faces.http.call import Call
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.reply import Answer, json_reply
from danlu.faces.http.route import Describe, Parameter, Routes
from danlu.faces.http.server import Server
from danlu.wire import modelarts_catalog as wire

KINDS = {"type": "string", "enum": list(wire.FLAVOR_TYPES)}

routes = Routes()


@routes(
    "GET",
    "/v2/{project_id}/training-job-flavors",
    rule=Rule("modelarts:trainJobFlavor:list", Access.PROJECT),
    about=Describe(
        "List flavors",
        {200: wire.FLAVORS_SCHEMA},
        parameters=(Parameter("flavor_type", KINDS),),
        errors=(400,),
    ),
)
async def show_training_job_flavors(server: Server, call: Call) -> Answer:
    """Every flavor, or those of one type."""
    call.only("flavor_type")
    wanted = call.choice("flavor_type", "", *wire.FLAVOR_TYPES)
    return json_reply(wire.flavors(server.platform.catalog.flavors(), wanted))


@routes(
    "GET",
    "/v2/{project_id}/training-job-engines",
    rule=Rule("modelarts:trainJobEngine:list", Access.PROJECT),
    about=Describe("List engines", {200: wire.ENGINES_SCHEMA}, errors=(400,)),
)
async def show_training_job_engines(server: Server, call: Call) -> Answer:
    """The environments in which jobs can run."""
    call.only()
    workspace = call.caller.workspace.id
    found = await server.on_worker(server.platform.catalog.environments, workspace)
    return json_reply(
        wire.engines((item.id, item.python_version, item.torch_version) for item in found)
    )
