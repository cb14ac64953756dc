"""Doors in a container's own network to what the server listens on at this machine's loopback: its
storage and its API, at the very addresses that they have here, and to nothing else of the machine.

Sockets belong to the network in which they are made. A process of ours goes into the container's,
listens there, and hands the sockets out; another one, which never left, takes what comes in by them
to the server. Neither is in reach of the container.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from danlu.node import linux
from danlu.node.container.metadata import enter

PIECE = 256 << 10
MOST = 512
"""Connections at one time; more wait to be taken."""
BACKLOG = 128
CONNECT_S = 10.0
LINGER_S = 10.0
"""So long the doors of an agent that was killed may stay."""
PAUSE_S = 0.05
PORTS = {"http": 80, "https": 443}

Address = tuple[str, int]


def behind(urls: Iterable[str]) -> list[Address]:
    """Those of some addresses that are this machine's own loopback, and so need a door."""
    found: dict[Address, None] = {}
    for url in urls:
        parts = urlsplit(url)
        host = parts.hostname or ""
        if host in {"localhost", "::1"} or host.startswith("127."):
            found[host, parts.port or PORTS.get(parts.scheme, 80)] = None
    return list(found)


@dataclass(slots=True)
class Doors:
    """Doors that are open, until `close` or the end of this process."""

    pid: int = 0
    problem: str = ""
    """Why they are not."""

    def close(self) -> None:
        """Close them."""
        pid, self.pid = self.pid, 0
        if pid:
            with suppress(ProcessLookupError, ChildProcessError):
                # A child that was not waited for: its pid is its own.
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def open_doors(container: int, addresses: Iterable[Address], *, rootless: bool = False) -> Doors:
    """Open doors in the network of a container's first process. For a process without threads."""
    wanted = list(addresses)
    if not wanted:
        return Doors()
    try:
        listening = _listen(container, wanted, rootless=rootless)
    except OSError as error:
        return Doors(problem=error.strerror or str(error))
    pid = os.fork()
    if pid == 0:
        try:
            _serve(listening)
        finally:
            os._exit(1)
    for one, _ in listening:
        one.close()
    return Doors(pid)


def _listen(
    container: int, wanted: list[Address], *, rootless: bool
) -> list[tuple[socket.socket, Address]]:
    """Sockets that listen in the container's network, with where they lead. OSError."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            enter(container, rootless=rootless)
            made = [(_bound(address), index) for index, address in enumerate(wanted)]
            told = bytes(index for _, index in made)
            socket.send_fds(theirs, [b"+" + told], [one.fileno() for one, _ in made])
        except OSError as error:
            theirs.send(b"-" + (error.strerror or str(error)).encode()[:500])
        finally:
            os._exit(0)
    theirs.close()
    with ours:
        said, descriptors, _, _ = socket.recv_fds(ours, 512, len(wanted))
    os.waitpid(pid, 0)
    if not said.startswith(b"+"):
        raise OSError(said[1:].decode("utf-8", "replace") or "the network could not be entered")
    listening = [socket.socket(fileno=one) for one in descriptors]
    return [(one, wanted[index]) for one, index in zip(listening, said[1:], strict=True)]


def _bound(address: Address) -> socket.socket:
    host, port = address
    host = "127.0.0.1" if host == "localhost" else host
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    until = time.monotonic() + LINGER_S
    while True:
        try:
            made.bind((host, port))
            made.listen(BACKLOG)
        except OSError as error:
            # An agent that was killed takes its doors with it, but not in the same instant.
            if error.errno != errno.EADDRINUSE or time.monotonic() > until:
                raise
            time.sleep(PAUSE_S)
        else:
            return made


def _serve(listening: list[tuple[socket.socket, Address]]) -> None:
    """Take connections for as long as the agent lives; does not return."""
    linux.die_with_parent()
    linux.name_process("danlu-doors")
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    linux.close_all_but({0, 1, 2, *(one.fileno() for one, _ in listening)})
    room = threading.BoundedSemaphore(MOST)
    threads = [
        threading.Thread(target=_take, args=(one, address, room), daemon=True)
        for one, address in listening
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _take(door: socket.socket, address: Address, room: threading.BoundedSemaphore) -> None:
    while True:
        room.acquire()
        try:
            inside, _ = door.accept()
        except OSError:
            room.release()
            continue
        threading.Thread(target=_lead, args=(inside, address, room), daemon=True).start()


def _lead(inside: socket.socket, address: Address, room: threading.BoundedSemaphore) -> None:
    """One connection, to its end."""
    try:
        with inside, socket.create_connection(address, CONNECT_S) as outside:
            outside.settimeout(None)
            for one in (inside, outside):
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            up = threading.Thread(target=_carry, args=(inside, outside), daemon=True)
            up.start()
            _carry(outside, inside)
            up.join()
    except OSError:
        return  # the server does not listen at the moment: who is inside sees a closed connection
    finally:
        room.release()


def _carry(source: socket.socket, target: socket.socket) -> None:
    block = memoryview(bytearray(PIECE))
    try:
        while count := source.recv_into(block):
            target.sendall(block[:count])
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # One side has broken off: the other one is not to wait for it.
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
