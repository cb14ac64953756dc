"""The door's listener, on the event loop of the API's. Nothing of SSH is loaded before somebody
comes: who never uses it does not pay for it.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import socket
from typing import TYPE_CHECKING

from danlu.faces.http.server import Server
from danlu.flow import ssh
from danlu.flow.ssh import Route
from danlu.model.errors import Unavailable
from danlu.model.identity import User

if TYPE_CHECKING:
    from danlu.faces.ssh.door import Door


def installed() -> bool:
    """Whether what the door needs is there: the extra `notebook`."""
    return importlib.util.find_spec("asyncssh") is not None


class SshServer:
    """One server's. `opened` is the socket that it listens on."""

    def __init__(self, server: Server, opened: socket.socket) -> None:
        self._server = server
        self._opened = opened
        self._opening: asyncio.Task[Door] | None = None
        self.port = int(opened.getsockname()[1])
        opened.setblocking(False)

    def begin(self) -> None:
        """Take connections from now on."""
        asyncio.get_running_loop().add_reader(self._opened, self._somebody)
        self._server.ssh = self

    async def ended(self) -> None:
        """Let everybody out."""
        self._server.ssh = None
        self._server.on_keys = None
        if self._opening is None:
            asyncio.get_running_loop().remove_reader(self._opened)
            self._opened.close()
            return
        door = await self._opening
        await door.close()

    async def host_key(self) -> str:
        """The public half of the door's host key."""
        return (await self._door()).host_key

    def _somebody(self) -> None:
        """The first connection waits to be taken."""
        self._opening = self._start()

    def _start(self) -> asyncio.Task[Door]:
        if self._opening is None:
            loop = asyncio.get_running_loop()
            loop.remove_reader(self._opened)
            self._opening = loop.create_task(self._open())
        return self._opening

    async def _door(self) -> Door:
        return await asyncio.shield(self._start())

    async def _open(self) -> Door:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, importlib.import_module, "danlu.faces.ssh.door")
        from danlu.faces.ssh import host_key
        from danlu.faces.ssh.door import Door

        running = self._server.running
        try:
            key = host_key.kept(running.settings.data)
        except (OSError, ValueError) as problem:
            path = running.settings.data / host_key.FILE
            raise Unavailable("ssh-host-key", path=path, detail=problem) from problem
        platform = running.platform
        door = Door(platform.records, self._find, running.traffics, platform.clock.now, key)
        await door.open(self._opened)
        self._server.on_keys = door.look_again
        return door

    def _find(self, user: User, name: str) -> Route:
        return ssh.find(self._server.platform, self._server.board, user, name)
