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
from danlu.flow.refs import ref as ref_of
from danlu.model.errors import Invalid, Missing, PlatformError, Refused, Unavailable
from danlu.model.identity import User
from danlu.model.job import Job, Kind
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
    """An instance as one user may reach it. `name` is its own at the door and means nothing else,
    `key` the id of its job, the same for every name that leads there. `keys` are the public keys
    that may come in, by fingerprint; `allowed` the networks from which, empty = any.
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
    """The running notebook or job that `user` calls `name`: by its name, its id, or the beginning
    of one; of a job with several tasks, `worker-1.NAME` means another one than the first. Missing
    where there is none of theirs, Refused for a job without SSH, Unavailable where it does not run
    at the moment.
    """
    engine = platform.engine
    if not isinstance(engine, Endpoints):
        raise Refused("ssh-engine")
    for notebook in platform.records.notebooks(user.workspace):
        if notebook.user != user.name or not _meant(name, notebook.spec.name, notebook.id):
            continue
        view = board.settled(notebook.job_id)
        if view is None:
            raise Unavailable("ssh-not-yet", name=name)
        keys = _keys(platform, user, notebook.spec.key_pairs)
        way = OfTask(engine, ref_of(view, "worker-0"))
        return Route(view.job.id, notebook.id, way, keys, notebook.spec.allowed_ips)
    return _of_job(platform, engine, board, user, name)


def _of_job(platform: Platform, engine: Endpoints, board: Board, user: User, name: str) -> Route:
    """The way to a task of the latest job that is meant."""
    task, dot, named = name.partition(".")
    if not dot:
        task, named = "worker-0", name
    meant = [
        entry.job
        for entry in board.entries()
        if entry.job.workspace == user.workspace
        and entry.job.user == user.name
        and entry.job.spec.kind is Kind.JOB
        and _meant(named, entry.job.spec.name, entry.job.id)
    ]
    if not meant:
        raise Missing("ssh-host-missing", name=name)
    job = max(meant, key=lambda one: (one.created_at, one.sequence))
    if not job.spec.ssh:
        raise Refused("ssh-not-wanted", name=named)
    view = board.settled(job.id)
    if view is None:
        raise Unavailable("ssh-not-yet", name=name)
    ref = ref_of(view, task)
    keys = _keys(platform, user, job.spec.key_pairs)
    return Route(job.id, host(job, ref.task), OfTask(engine, ref), keys)


def host(job: Job, task: int) -> str:
    """What a task of a job is called at the door."""
    return job.id if job.spec.node_count == 1 else f"worker-{task}.{job.id}"


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


def _keys(platform: Platform, user: User, only: tuple[str, ...]) -> Mapping[str, str]:
    """The public keys of a user's profile that may come in, by fingerprint."""
    return {
        one.fingerprint: one.public
        for one in platform.records.ssh_keys(user.id)
        if not only or one.name in only
    }


def check_keys(platform: Platform, user: User, names: Iterable[str], field: str) -> None:
    """Invalid for a name that no key of the user's has: nobody could come in by it."""
    wanted = tuple(names)
    if not wanted:
        return
    known = [one.name for one in platform.records.ssh_keys(user.id)]
    for name in wanted:
        if name not in known:
            have = ", ".join(known) or "-"
            raise Invalid("ssh-key-pair-missing", field=field, value=name, keys=have)
