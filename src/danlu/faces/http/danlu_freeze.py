"""Danlu's own call that makes an image of what was installed by hand in a job."""

from __future__ import annotations

from danlu.faces.http.call import Call
from danlu.faces.http.danlu_job import JOB, resolve
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.reply import Answer, json_reply
from danlu.faces.http.route import Describe, Routes
from danlu.faces.http.server import Server
from danlu.flow import freeze
from danlu.model.installed import Frozen
from danlu.model.job import JobView
from danlu.wire import danlu_freeze as wire
from danlu.wire.danlu_freeze import Wanted
from danlu.wiring import images

routes = Routes()


@routes(
    "POST",
    f"{JOB}/freeze",
    rule=Rule("modelarts:image:register", Access.PROJECT, writes=True),
    about=Describe(
        "Make an image of what was installed by hand in a job",
        {200: wire.FROZEN},
        body=wire.FREEZE.schema(),
        errors=(400, 404, 409),
        tag="images",
    ),
)
async def freeze_job(server: Server, call: Call) -> Answer:
    """Its definition and lock, kept under a name; 409 names what cannot be pinned."""
    call.only()
    wanted = wire.wanted(call.json())
    view = server.view(call.caller.workspace.id, resolve(server, call))
    # It takes as long as its packages take to come.
    found = await server.on_uploader(_frozen, server, view, wanted)
    return json_reply(wire.frozen(found, call.language))


def _frozen(server: Server, view: JobView, wanted: Wanted) -> Frozen:
    installed = freeze.installed(server.platform, view, wanted.task)
    return images.freeze(
        server.settings,
        view.job.workspace,
        installed,
        wanted.name,
        wanted.description,
        wanted.without,
    )
