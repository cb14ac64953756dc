"""The link that opens a notebook in a browser, once."""

from __future__ import annotations

from danlu.faces.http.call import Call
from danlu.faces.http.danlu_notebook import NOTEBOOK, TAG, resolve
from danlu.faces.http.notebook import rule
from danlu.faces.http.reply import Answer, json_reply
from danlu.faces.http.route import Describe, Routes
from danlu.faces.http.server import Server
from danlu.faces.lab.instance import Phase
from danlu.faces.lab.session import TICKET_S
from danlu.model.errors import Missing, Refused
from danlu.wire import danlu_schemas as schemas

OPENED = (Phase.STARTING, Phase.RUNNING)
"""Of one that starts the link shows how far it is, and then Lab."""

routes = Routes()


@routes(
    "POST",
    f"{NOTEBOOK}/open",
    rule=rule("get", writes=True),
    about=Describe(
        "A link that lets a browser in to a notebook: good once, and for a minute",
        {200: schemas.OPENED_NOTEBOOK},
        errors=(400, 404, 409),
        tag=TAG,
    ),
)
async def open_notebook(server: Server, call: Call) -> Answer:
    """A link for whoever asks; Refused for a notebook that rests."""
    call.no_body()
    known = resolve(server, call)
    one = server.labs.instances.find(known.workspace, known.id)
    if one is None:
        raise Missing("notebook-missing", notebook=known.id)
    if one.phase not in OPENED:
        name = known.spec.name
        raise Refused("lab-not-running", name=name, state=known.state, notebook=name)
    url = server.labs.url(call.caller.user, one, call.headers.single("host"))
    return json_reply({"url": url, "expires_s": int(TICKET_S)})
