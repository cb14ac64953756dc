"""Landlock: rules that a process puts on itself, and on all that it starts, for good.

What the kernel knows (its ABI) is asked first; what it does not know is not asked of it. Sources:
landlock(7), the kernel's Documentation/userspace-api/landlock.rst, linux/landlock.h.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from danlu.node import linux

_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
_VERSION = 1
_PATH_BENEATH = 1

_SCOPE_ABSTRACT_SOCKETS = 1
_SCOPE_SIGNALS = 2
SCOPES_SINCE = 6
"""The ABI from which on signals and abstract sockets can be kept inside."""


# What a rule may allow below a path. Plain numbers: there are many rules, and a task waits.
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = (1 << bit for bit in range(4))
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15

ALL = (1 << 16) - 1
LIST = READ_DIR
READ = READ_FILE | READ_DIR | EXECUTE
DEVICE = READ_FILE | WRITE_FILE | READ_DIR | TRUNCATE | IOCTL_DEV
WRITE = ALL & ~(MAKE_CHAR | MAKE_BLOCK)
PLAIN = 1 << 16
"""No right: the rule is for this path only as long as no link stands on the way to it."""
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_KNOWN_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""How many rights an ABI knows; all 16 from 5 on."""


class _RulesetAttr(ctypes.Structure):
    _fields_ = (
        ("handled_access_fs", ctypes.c_uint64),
        ("handled_access_net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


_RULE = struct.Struct("=Qi")
"""struct landlock_path_beneath_attr: the rights, and the descriptor they begin at."""


def abi() -> int:
    """The version of Landlock that the kernel has; 0 where it has none, or is told not to."""
    try:
        return linux.call(_CREATE_RULESET, None, 0, _VERSION)
    except OSError:
        return 0


def restrict(rules: Iterable[tuple[str, int]], version: int) -> None:
    """Allow this process the files that `rules` name, and no others; from ABI 6 on also no signal
    and no abstract socket to the outside. Paths that are not there are skipped.

    Needs no_new_privs. Raises OSError.
    """
    known = (1 << _KNOWN_RIGHTS.get(version, 16)) - 1
    scopes = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if version >= SCOPES_SINCE else 0
    attributes = _RulesetAttr(known, 0, scopes)
    size = ctypes.sizeof(attributes) if version >= SCOPES_SINCE else 8
    ruleset = linux.call(_CREATE_RULESET, ctypes.byref(attributes), size, 0)
    try:
        for path, rights in rules:
            _allow(ruleset, path, rights & known, plain=bool(rights & PLAIN))
        linux.call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int, *, plain: bool) -> None:
    try:
        descriptor = linux.open_plain(path) if plain else os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _OF_FILES
        linux.call(_ADD_RULE, ruleset, _PATH_BENEATH, _RULE.pack(rights, descriptor), 0)
    finally:
        os.close(descriptor)
