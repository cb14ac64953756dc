"""The few calls of Linux that Python has no function for."""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import stat
import struct
from contextlib import suppress
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38

_MNT_DETACH = 2
_MOUNT_SETATTR = 442
_AT_RECURSIVE = 0x8000
_OPENAT2 = 437
_OPEN_HOW = struct.Struct("=3Q")
"""struct open_how: flags, mode, resolve."""
_NO_LINKS = 0x02 | 0x04
"""RESOLVE_NO_MAGICLINKS and RESOLVE_NO_SYMLINKS."""
_WITHIN = 0x02 | 0x10
"""RESOLVE_NO_MAGICLINKS and RESOLVE_IN_ROOT."""
_READ_ONLY = struct.pack("=4Q", 1, 0, 0, 0)
"""struct mount_attr: MOUNT_ATTR_RDONLY is to be set."""
_PIVOT_ROOT = {"x86_64": 155, "ppc64le": 203, "s390x": 217}
"""The number of the system call; 41 on aarch64, riscv64 and loongarch64."""

NEW_MOUNTS = 0x00020000
NEW_USER = 0x10000000
NEW_PIDS = 0x20000000
MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_UNBINDABLE = 1 << 17
MS_SLAVE = 1 << 19

_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its own (prctl(2), subreaper)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Be killed when the parent ends, however that happens."""
    _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def outlive_parent() -> None:
    """Take `die_with_parent` back."""
    _prctl(_PR_SET_PDEATHSIG, 0)


def name_process(name: str) -> None:
    """The name that `ps` and `top` show, 15 bytes at most."""
    _prctl(_PR_SET_NAME, ctypes.c_char_p(name.encode()[:15]))


def sync_file_system(descriptor: int) -> None:
    """Put everything written to the file system of `descriptor` on disk (syncfs(2))."""
    if _libc.syncfs(descriptor) != 0:
        _fail("syncfs")


def gain_nothing() -> None:
    """Let no program that is executed from here on have more rights than this process
    (prctl(2), no_new_privs).
    """
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def hide_memory() -> None:
    """Let nobody look into this process who is not more than it, until it executes a program
    (PR_SET_DUMPABLE).
    """
    _prctl(_PR_SET_DUMPABLE, 0)


def set_namespace(descriptor: int, kind: int) -> None:
    """Enter the namespace of a descriptor (setns(2))."""
    if _libc.setns(descriptor, kind) != 0:
        _fail("setns")


def drop_capabilities(keep: frozenset[int]) -> None:
    """Give up every capability but these for what is executed from here on."""
    number = 0
    while True:
        held = _libc.prctl(_PR_CAPBSET_READ, ctypes.c_ulong(number), *[ctypes.c_ulong(0)] * 3)
        if held < 0:
            return
        if held and number not in keep:
            # Who may not give them up has none that an executed program would get.
            with suppress(PermissionError):
                _prctl(_PR_CAPBSET_DROP, number)
        number += 1


def unshare(flags: int) -> None:
    """Leave namespaces for new ones (unshare(2))."""
    if _libc.unshare(flags) != 0:
        _fail("unshare")


def mount(
    source: str | None, target: str, kind: str | None, flags: int, data: str | None = None
) -> None:
    """Put a file system, or a directory of one, at a place (mount(2))."""
    told = [None if one is None else os.fsencode(one) for one in (source, target, kind, data)]
    if _libc.mount(told[0], told[1], told[2], ctypes.c_ulong(flags), told[3]) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def make_read_only(target: str) -> None:
    """Let nothing be written through a mount and those on it (mount_setattr(2), Linux 5.12)."""
    call(_MOUNT_SETATTR, -100, os.fsencode(target), _AT_RECURSIVE, _READ_ONLY, len(_READ_ONLY))


def open_plain(path: str, at: int = -100) -> int:
    """A descriptor for what lies at a path, absolute or below the directory `at`, on the way to
    which there is no link (openat2(2), O_PATH). OSError (ELOOP) where there is one.
    """
    flags = os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW
    how = _OPEN_HOW.pack(flags, 0, _NO_LINKS)
    try:
        descriptor = call(_OPENAT2, at, os.fsencode(path), how, len(how))
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise OSError(error.errno, os.strerror(error.errno or 0), path) from error
        return open_step_by_step(path, at)
    if stat.S_ISLNK(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    return descriptor


def open_step_by_step(path: str, at: int = -100) -> int:
    """The same before Linux 5.6."""
    start = "/" if path.startswith("/") else "."
    at = os.open(start, os.O_PATH | os.O_CLOEXEC, dir_fd=None if at < 0 else at)
    for part in path.split("/"):
        if part:
            try:
                found = os.open(part, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=at)
            finally:
                os.close(at)
            at = found
            if stat.S_ISLNK(os.fstat(at).st_mode):
                os.close(at)
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    return at


def open_within(root: int, path: str, flags: int) -> int:
    """Open what lies at a path below the directory `root`, which links on the way take for theirs
    (openat2(2), Linux 5.6).
    """
    how = _OPEN_HOW.pack(flags | os.O_CLOEXEC, 0, _WITHIN)
    return call(_OPENAT2, root, os.fsencode(path), how, len(how))


def unmount(target: str) -> None:
    """Take a mount and all on it away, now or when the last one who uses it is gone."""
    if _libc.umount2(os.fsencode(target), _MNT_DETACH) != 0:
        _fail("umount2")


def pivot_root(new: str, old: str) -> None:
    """Change the root of this mount namespace (pivot_root(2))."""
    number = _PIVOT_ROOT.get(os.uname().machine, 41)
    call(number, os.fsencode(new), os.fsencode(old))


def call(number: int, *arguments: Any) -> int:
    """A system call by its number; OSError if it fails. Numbers must fit 32 bits."""
    result: int = _libc.syscall(number, *arguments)
    if result < 0:
        _fail("system call")
    return result


def _prctl(option: int, value: int | ctypes.c_char_p) -> None:
    argument = value if isinstance(value, ctypes.c_char_p) else ctypes.c_ulong(value)
    zero = ctypes.c_ulong(0)
    if _libc.prctl(option, argument, zero, zero, zero) != 0:
        _fail("prctl")


def _fail(call: str) -> None:
    number = ctypes.get_errno()
    raise OSError(number, f"{call}: {os.strerror(number)}")


def close_all_but(keep: set[int]) -> None:
    """Close every other descriptor: locks and pipes of the parent that a fork brought along."""
    low = 0
    for descriptor in sorted(keep):
        if low < descriptor:  # an empty range would close everything (Python 3.11)
            os.closerange(low, descriptor)
        low = descriptor + 1
    close_from(low)


def close_from(low: int) -> None:
    """Close every descriptor from `low` on."""
    highest = os.sysconf("SC_OPEN_MAX")
    os.closerange(low, highest if highest > 0 else 1 << 20)
