"""What a program gives up before its first instruction, and all that it starts with it."""

from __future__ import annotations

import resource
from contextlib import suppress

from danlu.node import landlock, linux, reach
from danlu.node.reach import Reach

KEPT_CAPABILITIES = frozenset({0, 1, 3, 4, 5, 6, 7, 10, 13, 14, 23})
"""CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE, NET_RAW, IPC_LOCK
and SYS_NICE (capabilities(7)): what a training script of root's may rely on. The machine itself
(mounts, modules, devices, other processes, the clock) is not a task's."""

FOR_LOGINS = frozenset({18, 29})
"""SYS_CHROOT (sshd puts what speaks to strangers into an empty directory) and AUDIT_WRITE (it
records logins). What an instance sees as the root is a mount of its own: nothing lies above."""

OPEN_FILES = 65_536
"""A data loader with many workers holds thousands; the usual 1024 is too few for it."""


def confine(within: Reach | None, landlock_abi: int) -> None:
    """Give up everything but what a task needs. `within` = the files it keeps; None leaves all.

    Raises OSError where the kernel refuses what it has.
    """
    _limit(resource.RLIMIT_CORE, 0)
    _raise(resource.RLIMIT_NOFILE, OPEN_FILES)
    logins = within is not None and within.logins
    linux.drop_capabilities(KEPT_CAPABILITIES | FOR_LOGINS if logins else KEPT_CAPABILITIES)
    linux.gain_nothing()
    if within is not None and landlock_abi:
        landlock.restrict(reach.rules(within), landlock_abi)


def _limit(what: int, most: int) -> None:
    with suppress(OSError, ValueError):
        resource.setrlimit(what, (most, most))


def _raise(what: int, wanted: int) -> None:
    soft, hard = resource.getrlimit(what)
    highest = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < highest:
        with suppress(OSError, ValueError):
            resource.setrlimit(what, (highest, hard))
