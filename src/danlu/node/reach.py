"""Which files of the machine a task may use: the system's, its own, and nobody else's.

Allowed is what every program needs (the system's programs and libraries, settings, devices for
computing) and whatever else lies on the machine for everybody, such as data sets on a disk of their
own. Left out are the homes of other people, the keys and settings in one's own, the server's data
with the other tasks' directories, and the system's own secrets. What a task needs of these (its
Python, its inputs) is named one by one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from danlu.node.landlock import DEVICE, LIST, PLAIN, READ, WRITE

SECRETS = (
    "/boot", "/lost+found",
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers",
    "/etc/sudoers.d", "/etc/ssl/private", "/etc/krb5.keytab", "/etc/ppp", "/etc/wireguard",
    "/etc/NetworkManager/system-connections", "/etc/kubernetes", "/etc/rancher",
)  # fmt: skip
"""Where a system keeps its keys. Only root could read most of it, but servers run as root too."""

APART = ("/dev", "/proc", "/run", "/sys", "/tmp", "/var")  # noqa: S108 -- named, not made
"""Of these a task gets parts."""

PARTS_OF_VAR = ("cache", "lib/dcgm", "tmp")
PARTS_OF_RUN = (
    "NetworkManager/resolv.conf", "lock", "nvidia-fabricmanager", "nvidia-persistenced",
    "nvidia-topologyd", "resolvconf", "systemd/resolve", "udev",
)  # fmt: skip
"""How names are resolved and what the GPU's libraries talk to; not the sockets of Docker, D-Bus or
systemd."""

DEVICES = re.compile(
    r"null|zero|full|u?random|tty|ptmx|pts|mqueue"
    r"|nvidia.*|dri|kfd|infiniband|knem|xpmem|gdrdrv"
    r"|davinci.*|devmm_svm|hisi_hdc|accel.*|habanalabs.*|hl_.*"
)
"""Terminals, chance, and what computes; not disks, memory or input."""


@dataclass(frozen=True, slots=True)
class Reach:
    """`hidden` are directories out of reach, beside what of homes and system is; `readable`
    and `writable` are within it, also below hidden ones. `given` are writable too, but only as long
    as no link stands on the way to them. `private` = /tmp and /dev/shm are the task's own.
    `logins` = it is an instance with an sshd of its own, which needs rights that jobs do not.
    """

    hidden: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    private: bool = False
    given: tuple[str, ...] = ()
    logins: bool = False


def unwritable(path: str) -> str:
    """What of a path keeps this process from making files below it: itself, or the nearest that is
    there above it; empty where nothing does.
    """
    while not os.path.lexists(path) and path != "/":
        path = os.path.dirname(path)  # noqa: PTH120 -- as text
    able = os.path.isdir(path) and os.access(path, os.W_OK | os.X_OK)  # noqa: PTH112 -- as text
    return "" if able else path


def closed_to_all(path: str, servers: Sequence[str], *, but: str) -> str:
    """What `path` is, holds or lies in that no job may be given, named by whoever asks for it: the
    system's secrets, and what the server keeps at `servers`. Empty where it is none of that, or
    lies below `but`.

    An input lies in its task as it is, and what it holds cannot be taken out of it again.
    """
    return closed_place(os.path.realpath(path), servers, but=but)


def closed_place(real: str, servers: Sequence[str], *, but: str) -> str:
    """The same for a path without links."""
    if but and covers(os.path.realpath(but), (real,)):
        return ""
    for closed in (*SECRETS, *_host_keys(), *map(os.path.realpath, servers)):
        if covers(real.rstrip("/"), (closed,)) or covers(closed, (real,)):
            return closed
    return ""


def own_home() -> str:
    """The home of the server's user; empty where there is none of one's own."""
    with suppress(RuntimeError, OSError):
        home = str(Path.home().resolve())
        return "" if home == "/" else home
    return ""


def hidden_homes(own: str) -> tuple[str, ...]:
    """What of the machine's homes is out of reach: other people's, and in one's own all that has a
    dot before its name, which is where keys, passwords, settings and caches are.
    """
    found = ["/root"]
    with suppress(OSError), os.scandir("/home") as entries:
        found += [entry.path for entry in entries]
    if own:
        with suppress(OSError), os.scandir(own) as entries:
            found += [entry.path for entry in entries if entry.name.startswith(".")]
    return tuple(path for path in dict.fromkeys(found) if path != own)


def hidden_paths(more: Sequence[str], own: str) -> tuple[str, ...]:
    """Everything that is hidden on this machine, `more` included."""
    return (*more, *hidden_homes(own), *SECRETS, *_host_keys())


def _host_keys() -> Iterator[str]:
    with suppress(OSError), os.scandir("/etc/ssh") as entries:
        for entry in entries:
            if entry.name.startswith("ssh_host_") and entry.name.endswith("_key"):
                yield entry.path


def rules(reach: Reach) -> Iterator[tuple[str, int]]:
    """The rules that allow what is within reach."""
    own = own_home()
    # In a view of its own the system's secrets are not there, and a task waits for every rule.
    secrets = () if reach.private else (*SECRETS, *_host_keys())
    hidden = (*reach.hidden, *hidden_homes(own), *secrets)
    # A home is never open as a whole: what appears in it later may be a secret.
    for path in _open_below("/", (*hidden, *APART), own):
        yield path, READ
    if own.startswith(tuple(f"{place}/" for place in APART)):
        yield from ((path, READ) for path in _open_below(own, hidden, own))
    for path in ("/proc", "/sys", *_below("/var", PARTS_OF_VAR), *_below("/run", PARTS_OF_RUN)):
        yield path, READ
    yield "/dev", LIST
    yield from ((path, DEVICE) for path in _devices())
    shared = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue")  # noqa: S108 -- named, not made
    for place in shared:
        if reach.private or not covers(place, reach.hidden):
            yield place, WRITE
    if reach.private:
        # What is hidden is not even there, so its names cannot be seen either.
        yield "/", LIST
    for path in reach.readable:
        yield path, READ
    for path in reach.writable:
        yield path, WRITE
    for path in reach.given:
        yield path, WRITE | PLAIN


def _open_below(directory: str, hidden: Sequence[str], own: str) -> Iterator[str]:
    """What lies below a directory and is not hidden, as few paths as will do. Links are left out:
    rules are for what they lead to.
    """
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            path = entry.path
            if path in hidden or entry.is_symlink():
                continue
            if path == own or covers(path, hidden):
                yield from _open_below(path, hidden, own)
            else:
                yield path


def covers(directory: str, paths: Sequence[str]) -> bool:
    """Whether any of these is the directory or lies below it."""
    return any(path.startswith(f"{directory}/") or path == directory for path in paths)


def _below(directory: str, names: Sequence[str]) -> list[str]:
    return [f"{directory}/{name}" for name in names]


def _devices() -> Iterator[str]:
    with suppress(OSError), os.scandir("/dev") as entries:
        for entry in entries:
            if DEVICES.fullmatch(entry.name) and not entry.is_symlink():
                yield entry.path
