"""A user's public keys: who may come in over SSH."""

from __future__ import annotations

from danlu.faces.http.call import Call
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.reply import Answer, json_reply
from danlu.faces.http.route import BodyLimits, Describe, Routes
from danlu.faces.http.server import Server
from danlu.flow import ssh_key
from danlu.model.errors import Refused
from danlu.wire import danlu_ssh_key as wire

KEYS = "/danlu/v1/{project_id}/keys"
TAG = "keys"
BODY_BYTES = 64 << 10

routes = Routes()


@routes(
    "GET",
    KEYS,
    rule=Rule("danlu:key:list", Access.PROJECT),
    about=Describe("List one's public keys", {200: wire.KEYS_SCHEMA}, errors=(400,), tag=TAG),
)
async def list_keys(server: Server, call: Call) -> Answer:
    """The caller's public keys."""
    call.only()
    return json_reply(wire.keys(server.platform.records.ssh_keys(call.caller.user.id)))


@routes(
    "POST",
    KEYS,
    rule=Rule("danlu:key:add", Access.PROJECT, writes=True),
    body=BodyLimits(BODY_BYTES),
    about=Describe(
        "Add a public key",
        {201: wire.KEY_SCHEMA},
        body=wire.ADD.schema(),
        errors=(400, 409),
        tag=TAG,
    ),
)
async def add_key(server: Server, call: Call) -> Answer:
    """Put a public key into the caller's profile."""
    body = wire.ADD.read(call.json())
    user = call.caller.user
    made = ssh_key.new(server.platform, user, body["public_key"], body.get("name", ""))
    if not await server.durable(ssh_key.add(server.platform, made)):
        raise Refused("ssh-key-taken", fingerprint=made.fingerprint)
    server.keys_changed()
    return json_reply(wire.key(made), 201)


@routes(
    "DELETE",
    f"{KEYS}/{{key_name}}",
    rule=Rule("danlu:key:remove", Access.PROJECT, writes=True),
    about=Describe("Remove a public key", {200: wire.KEY_SCHEMA}, errors=(400, 404), tag=TAG),
)
async def remove_key(server: Server, call: Call) -> Answer:
    """Take a public key out of the caller's profile: whoever came in with it is cut off."""
    call.no_body()
    user = call.caller.user
    found = ssh_key.find(server.platform, user, call.params["key_name"])
    await server.durable(server.platform.records.remove_ssh_key(user.id, found.name))
    server.keys_changed()
    return json_reply(wire.key(found))
