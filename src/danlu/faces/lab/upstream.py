"""Connections to Lab, over the unix socket that it listens on."""

from __future__ import annotations

import asyncio
import socket

from danlu.faces.lab.instance import Connect
from danlu.model.errors import Missing, Unavailable

CONNECT_S = 5.0
FULL_S = 0.01
"""How long to wait before a queue of connections that is full is tried again."""
BUFFER = 256 << 10
"""How much of an answer is read ahead of a slow browser."""


class LabAway(Exception):
    """Lab does not answer: it is not there yet, or no longer."""


async def connected(connect: Connect) -> socket.socket:
    """A connection to Lab; LabAway where there is none."""
    ends = asyncio.get_running_loop().time() + CONNECT_S
    while True:
        try:
            return connect()
        except Unavailable as error:
            if asyncio.get_running_loop().time() > ends:
                raise LabAway("it takes no connections") from error
            await asyncio.sleep(FULL_S)
        except Missing as error:
            raise LabAway("nothing listens") from error


async def streams(connect: Connect) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The same as a reader and a writer."""
    made = await connected(connect)
    return await asyncio.open_unix_connection(sock=made, limit=BUFFER)
