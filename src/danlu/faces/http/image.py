"""ModelArts' calls on images: list, show, register, delete."""

from __future__ import annotations

from danlu.faces.http.call import Call
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.reply import Answer, json_reply
from danlu.faces.http.route import Describe, Parameter, Routes
from danlu.faces.http.server import Server
from danlu.model.errors import Missing
from danlu.wire import modelarts_image as wire
from danlu.wiring import images

IMAGES = "/v1/{project_id}/images"
IMAGE = f"{IMAGES}/{{image_id}}"
TAG = "images"
ID_CHARS = 128

routes = Routes()


def _rule(verb: str, *, writes: bool = False) -> Rule:
    return Rule(f"modelarts:image:{verb}", Access.PROJECT, writes=writes)


@routes(
    "GET",
    IMAGES,
    rule=_rule("list"),
    about=Describe(
        "List images",
        {200: wire.IMAGES_SCHEMA},
        parameters=(
            Parameter("limit", {"type": "integer", "minimum": 1, "maximum": wire.MOST}),
            Parameter("offset", {"type": "integer", "minimum": 0}),
            Parameter("name", about="names that hold it"),
            Parameter("type", {"type": "string", "enum": list(wire.TYPES)}),
            Parameter("workspace_id"),
        ),
        errors=(400,),
        tag=TAG,
    ),
)
async def list_image(server: Server, call: Call) -> Answer:
    """The built-in images, and what was registered for everybody or by this project."""
    call.only("limit", "offset", "name", "type", "workspace_id")
    limit, offset = call.number("limit", 10, 1, wire.MOST), call.number("offset", 0, 0, 2**31)
    name, kind = call.text("name"), call.choice("type", "", *wire.TYPES)
    found = await server.on_worker(images.named, server.settings, call.caller.workspace.id)
    wanted = [
        one
        for one in found
        if name in one.name and kind in ("", wire.TYPES[0 if one.built_in else 1])
    ]
    return json_reply(wire.images(wanted, offset, limit))


@routes(
    "GET",
    IMAGE,
    rule=_rule("get"),
    about=Describe("Show an image", {200: wire.IMAGE_SCHEMA}, errors=(400, 404, 409), tag=TAG),
)
async def show_image(server: Server, call: Call) -> Answer:
    """One image, by its id, the beginning of one, or its name."""
    call.only()
    workspace = call.caller.workspace.id
    found = await server.on_worker(images.by_word, server.settings, workspace, _word(call))
    return json_reply(wire.image(found))


@routes(
    "POST",
    IMAGES,
    rule=_rule("register", writes=True),
    about=Describe(
        "Register an image by its lock",
        {200: wire.IMAGE_SCHEMA},
        body=wire.REGISTER.schema(),
        errors=(400, 409),
        tag=TAG,
    ),
)
async def register_image(server: Server, call: Call) -> Answer:
    """Keep a lock under a name; the same again changes nothing."""
    name, lock, description = wire.register(call.json())
    workspace = call.caller.workspace.id
    found = await server.on_worker(
        images.register, server.settings, workspace, name, lock, description
    )
    return json_reply(wire.image(found))


@routes(
    "DELETE",
    IMAGE,
    rule=_rule("delete", writes=True),
    about=Describe("Delete an image", {200: wire.IMAGE_SCHEMA}, errors=(400, 404, 409), tag=TAG),
)
async def delete_image(server: Server, call: Call) -> Answer:
    """Give up a registered image's name, and its environment; refused while a task uses it."""
    call.no_body()
    workspace = call.caller.workspace.id
    found = await server.on_worker(images.delete, server.settings, workspace, _word(call))
    return json_reply(wire.image(found))


def _word(call: Call) -> str:
    """The image that the path names; Missing at once for what no image can be called."""
    word = call.params["image_id"]
    if not 0 < len(word) <= ID_CHARS or not word.isascii() or not word.isprintable():
        raise Missing("image-missing", image=word)
    return word
