"""How an instance is reached over SSH: what a client needs to know beforehand."""

from __future__ import annotations

from urllib.parse import urlsplit

from danlu.faces.http.call import Call
from danlu.faces.http.gate import Access, Rule
from danlu.faces.http.reply import Answer, json_reply
from danlu.faces.http.route import Describe, Routes
from danlu.faces.http.server import Server
from danlu.flow import ssh
from danlu.model.errors import Refused
from danlu.wire import danlu_ssh as wire

SSH = "/danlu/v1/{project_id}/ssh/{name}"
TAG = "keys"

routes = Routes()


def address(server: Server, call: Call, name: str) -> str:
    """The URL by which ssh itself gets to an instance, for whoever calls; empty without a door."""
    if server.ssh is None:
        return ""
    host = urlsplit(f"//{call.headers.single('host')}").hostname or "localhost"
    return f"ssh://{name}@{f'[{host}]' if ':' in host else host}:{server.ssh.port}"


@routes(
    "GET",
    SSH,
    rule=Rule("danlu:ssh:get", Access.PROJECT),
    about=Describe(
        "Say how a notebook or a task of a job is reached over SSH",
        {200: wire.ACCESS_SCHEMA},
        errors=(400, 404, 409),
        tag=TAG,
    ),
)
async def ssh_access(server: Server, call: Call) -> Answer:
    """The door's port and host key, and the instance's own. `ready` = the instance answers."""
    call.only()
    if server.ssh is None:
        raise Refused("ssh-off")
    user = call.caller.user
    found = ssh.find(server.platform, server.board, user, call.params["name"])
    about = await server.on_worker(ssh.about, found)
    return json_reply(
        {
            "name": found.name,
            "port": server.ssh.port,
            "login": wire.LOGIN,
            "door_key": await server.ssh.host_key(),
            "user": about.user,
            "host_key": about.host_key,
            "home": about.home,
            "keys": len(found.keys),
            "ready": bool(about.host_key),
        }
    )
