"""ssh: where a name leads, for one user: the notebook or job that is meant, and who may come in."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from socket import socket
from typing import Protocol

from danlu.flow.board import Board
from danlu.flow.platform import Platform
from danlu.model.errors import Missing, PlatformError, Refused, Unavailable
from danlu.model.identity import User
from danlu.model.job import JobView
from danlu.ports.engine import SSH, Endpoints, Ref

ABOUT = "ssh.json"
"""What an instance says of the SSH in it, beside its endpoint."""

PREFIX_CHARS = 8
PROBLEMS = ("ssh-broken", "ssh-not-installed", "ssh-no-user")
"""Why an instance says that there is none; keys of texts."""


class Way(Protocol):
    """The way to one instance's sshd. Both may wait."""

    def connect(self) -> socket:
        """A connection to it, not blocking. PlatformError where there is none."""

    def said(self) -> Mapping[str, object] | None:
        """What the instance says of itself; None where it says nothing."""


@dataclass(frozen=True, slots=True)
class Route:
    """An instance as one user may reach it. `key` is the id of its job, the same for every name
    that leads there. `keys` are the public keys that may come in, by fingerprint; `allowed` the
    networks from which, empty = any.
    """

    key: str
    name: str
    way: Way
    keys: Mapping[str, str]
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class About:
    """What an instance says of itself: who one is there, the public half of its host key, where a
    session begins, and why there is no SSH (the key of a text; empty where there is).
    """

    user: str = ""
    host_key: str = ""
    home: str = ""
    problem: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class OfTask:
    """The way to a task of the engine's."""

    engine: Endpoints
    ref: Ref

    def connect(self) -> socket:
        """A connection to its `ssh.sock`."""
        return self.engine.endpoint(self.ref, SSH)

    def said(self) -> Mapping[str, object] | None:
        """Its `ssh.json`."""
        return self.engine.said(self.ref, ABOUT)


def find(platform: Platform, board: Board, user: User, name: str) -> Route:
    """The running notebook that `user` calls `name`: by its name, its id, or the beginning of one.
    Missing where there is none of theirs, Unavailable where it does not run at the moment.
    """
    engine = platform.engine
    if not isinstance(engine, Endpoints):
        raise Refused("ssh-engine")
    for notebook in platform.records.notebooks(user.workspace):
        if notebook.user != user.name or not _meant(name, notebook.spec.name, notebook.id):
            continue
        view = _running(board, notebook.job_id)
        if view is None:
            raise Unavailable("ssh-not-yet", name=name)
        return _route(platform, engine, user, notebook.id, view, notebook.spec.key_pairs)
    raise Missing("ssh-host-missing", name=name)


def about(route: Route) -> About:
    """What the instance says of itself; empty where it says nothing yet, Unavailable where it says
    that it has no SSH. It is not to be trusted with more than its own user may do.
    """
    said = route.way.said() or {}
    known = {
        name: value
        for name in About.__dataclass_fields__
        if isinstance(value := said.get(name), str) and value.isprintable()
    }
    found = About(**known)
    if found.problem:
        key = found.problem if found.problem in PROBLEMS else PROBLEMS[0]
        raise Unavailable(key, name=route.name, detail=found.detail)
    return found


def connect(route: Route) -> socket:
    """A connection to the instance's sshd, before whose first byte stands who may come in now.
    Unavailable where nobody answers.
    """
    keys = "".join(f"{one}\n" for one in route.keys.values()).encode()
    made: socket | None = None
    try:
        made = route.way.connect()
        made.sendall(b"%08x%s" % (len(keys), keys))
    except (PlatformError, OSError) as problem:
        if made is not None:
            made.close()
        raise Unavailable("ssh-not-yet", name=route.name) from problem
    return made


def from_within(address: str, networks: Iterable[str]) -> bool:
    """Whether `address` lies in one of `networks`; in any where there are none."""
    wanted = tuple(networks)
    if not wanted:
        return True
    with suppress(ValueError):
        found = ipaddress.ip_address(address.partition("%")[0])
        if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped:
            found = found.ipv4_mapped
        return any(found in ipaddress.ip_network(one, strict=False) for one in wanted)
    return False


def _meant(word: str, name: str, known_id: str) -> bool:
    return word in (name, known_id) or (len(word) >= PREFIX_CHARS and known_id.startswith(word))


def _running(board: Board, job_id: str) -> JobView | None:
    return board.settled(job_id)


def _route(
    platform: Platform,
    engine: Endpoints,
    user: User,
    name: str,
    view: JobView,
    only: tuple[str, ...],
) -> Route:
    attempt = view.attempt.key
    ref = Ref(attempt.job_id, attempt.number, 0, attempt.token)
    keys = {
        one.fingerprint: one.public
        for one in platform.records.ssh_keys(user.id)
        if not only or one.name in only
    }
    return Route(view.job.id, name, OfTask(engine, ref), keys)
