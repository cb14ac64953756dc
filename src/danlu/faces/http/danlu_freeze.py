"""Making an image of what was installed by hand in a job or a notebook, by Danlu's own calls and by
ModelArts'.
"""

from __future__ import annotations

from danlu.faces.http import danlu_notebook
from danlu.faces.http import notebook as modelarts
from danlu.faces.http.call import Call
from danlu.faces.http.danlu_job import JOB, resolve
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.notebook import found as notebook_found
from danlu.faces.http.reply import Answer, json_reply
from danlu.faces.http.route import Describe, Routes
from danlu.faces.http.server import Server
from danlu.flow import freeze
from danlu.model.errors import Missing, Refused
from danlu.model.event import JobEvent
from danlu.model.installed import Frozen
from danlu.model.job import JobView
from danlu.model.notebook import Notebook, State
from danlu.wire import danlu_freeze as wire
from danlu.wire import modelarts_image
from danlu.wire import modelarts_notebook as notebook_wire
from danlu.wire.danlu_freeze import Wanted
from danlu.wiring import images

routes = Routes()

RULE = Rule("modelarts:image:register", Access.PROJECT, writes=True)


def _about(what: str) -> Describe:
    return Describe(
        f"Make an image of what was installed by hand in a {what}",
        {200: wire.FROZEN},
        body=wire.FREEZE.schema(),
        errors=(400, 404, 409),
        tag="images",
    )


@routes("POST", f"{JOB}/freeze", rule=RULE, about=_about("job"))
async def freeze_job(server: Server, call: Call) -> Answer:
    """Its definition and lock, kept under a name; 409 names what cannot be pinned. What is no job
    here is looked for among the notebooks.
    """
    call.only()
    wanted = wire.wanted(call.json())
    workspace = call.caller.workspace.id
    try:
        view = server.view(workspace, resolve(server, call))
    except Missing as missing:
        try:
            one = danlu_notebook.named(server, call, call.params["job_id"])
        except Missing:
            raise missing from None
        made = await _saved(server, call, one, wanted)
    else:
        # It takes as long as its packages take to come.
        made = await server.on_uploader(_frozen, server, view, wanted)
    return json_reply(wire.frozen(made, call.language))


@routes("POST", f"{danlu_notebook.NOTEBOOK}/freeze", rule=RULE, about=_about("notebook"))
async def freeze_notebook(server: Server, call: Call) -> Answer:
    """The same of its latest start."""
    call.only()
    wanted = wire.wanted(call.json())
    made = await _saved(server, call, danlu_notebook.resolve(server, call), wanted)
    return json_reply(wire.frozen(made, call.language))


@routes(
    "POST",
    f"{modelarts.NOTEBOOK}/create-image",
    rule=RULE,
    about=Describe(
        "Save a running notebook as an image",
        {201: modelarts_image.IMAGE_SCHEMA},
        body=notebook_wire.CREATE_IMAGE.schema(),
        errors=(400, 404, 409),
        tag=modelarts.TAG,
    ),
)
async def create_image(server: Server, call: Call) -> Answer:
    """What was installed in it by hand, pinned and proved; answered when the image is there."""
    call.only()
    name, description, without = notebook_wire.create_image(call.json())
    one = notebook_found(server, call)
    if one.state is not State.RUNNING:
        raise Refused(
            "notebook-state", notebook=one.spec.name, state=str(one.state), verb="create-image"
        )
    wanted = Wanted(name, description, "worker-0", without)
    await _saved(server, call, one, wanted)
    workspace = call.caller.workspace.id
    made = await server.on_worker(images.by_word, server.settings, workspace, name)
    return json_reply(modelarts_image.image(made), 201)


async def _saved(server: Server, call: Call, one: Notebook, wanted: Wanted) -> Frozen:
    """Make an image of a notebook, which runs on meanwhile."""
    if one.id in server.saving:
        raise Refused("notebook-saving", notebook=one.spec.name)
    view = server.view(one.workspace, one.job_id)
    server.saving.add(one.id)
    try:
        made = await server.on_uploader(_frozen, server, view, wanted)
    finally:
        server.saving.discard(one.id)
    told = JobEvent(
        server.now(), "notebook-saved", {"user": call.caller.user.name, "image": made.name}
    )
    await modelarts.wish(server, call, lambda it: (it, (told,)), one.id)
    return made


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
