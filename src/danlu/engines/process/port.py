"""A rendezvous port for a gang: free now, and likely to stay so until its first task binds it."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Callable

from danlu.model.errors import EngineError

FIRST = 20_000
COUNT = 10_000
"""Below the range from which the kernel takes ports for outgoing connections."""


def choose(seed: str, taken: Callable[[int], bool]) -> int:
    """A port that nobody listens on and that is not `taken` by a gang that has yet to bind it; the
    same seed tries the same ones first. EngineError where there is none.
    """
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:4], "big")
    for step in range(COUNT):
        port = FIRST + (start + step) % COUNT
        if _free(port) and not taken(port):
            return port
    raise EngineError("engine-failed", detail="no rendezvous port is free")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            # On every address, because that is how torch's rendezvous binds it.
            probe.bind(("", port))
        except OSError:
            return False
    return True
