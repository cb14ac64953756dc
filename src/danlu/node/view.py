"""The files that a task sees: the machine's, with ModelArts' places in them and without what is
hidden. Built in a mount namespace of the task's own; it is gone with the task's last process.

The root is a small file system in memory on which everything else is mounted: the system's
directories as they are, the task's home at /home/ma-user, its scratch space at /cache, a /tmp and
a /dev/shm of its own. Nothing is made on the machine's own root, so root can leave no traces there
and other users need no right to write there.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from danlu.model.script import LITERAL_CACHE, LITERAL_HOME
from danlu.node import linux
from danlu.node.reach import PARTS_OF_RUN, Reach, covers, hidden_paths, own_home

BIND = linux.MS_BIND | linux.MS_REC
CLOSED = linux.MS_NOSUID | linux.MS_NODEV
READ_ONLY = linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | CLOSED
NOTHING = "/run/hidden"
OURS = ("cache", "dev", "home", "proc", "root", "run", "sys", "tmp")
"""Names of the root that the view gives in a way of its own."""


@dataclass(frozen=True, slots=True)
class View:
    """`root` is an empty directory to build on; `home`, `cache` and `temp` are what the task finds
    at its places, and so are the pairs of `places`, what and where; no link may stand on the way to
    what these show. `kept` are trees that several tasks see: which one, where, and the directory
    for this task's changes; `environment` is another such tree, which stays where it is (which one,
    and the directory for changes; empty = none). `shm_bytes` is the most that its /dev/shm holds
    (0 = half of the memory).
    """

    root: str
    home: str
    cache: str
    temp: str
    places: tuple[tuple[str, str], ...] = ()
    shm_bytes: int = 0
    kept: tuple[tuple[str, str, str], ...] = ()
    environment: tuple[str, str] | tuple[()] = ()


def possible(needed: Iterable[str]) -> bool:
    """Whether nothing that a task needs lies where the view puts its own."""
    return not any(covers(place, (path,)) for path in needed for place in (LITERAL_HOME, "/cache"))


def enter(view: View, reach: Reach) -> None:
    """See nothing but the view from now on. OSError where it cannot be built."""
    linux.unshare(linux.NEW_MOUNTS)
    # What is mounted on the machine later is seen here too, but not the other way round.
    linux.mount(None, "/", None, linux.MS_REC | linux.MS_SLAVE)
    linux.mount("danlu", view.root, "tmpfs", CLOSED, "mode=755,size=16m")
    linux.mount(None, view.root, None, linux.MS_UNBINDABLE)
    builder = _Builder(view, reach)
    builder.build()
    os.chdir(view.root)
    linux.pivot_root(".", ".")
    linux.unmount(".")
    os.chdir("/")
    linux.mount(None, "/", None, READ_ONLY)


class _Builder:
    def __init__(self, view: View, reach: Reach) -> None:
        self._view = view
        self._reach = reach
        self._root = view.root
        self._needed = (*reach.readable, *reach.writable, *reach.given)
        self._own = own_home()
        self._masked: list[str] = ["/home", "/root", "/run", "/tmp", "/var/tmp"]  # noqa: S108 -- only named
        """Where the view shows something else than the machine has."""

        self._blanks: list[str] = []
        """Where something hidden was: empty, but for ways to what is needed."""

    def build(self) -> None:
        with os.scandir("/") as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name not in OURS:
                    self._same(entry.path)
        self._devices()
        self._same("/sys")
        Path(f"{self._root}/proc").mkdir()
        flags = CLOSED | linux.MS_NOEXEC
        linux.mount("proc", f"{self._root}/proc", "proc", flags)
        Path(f"{self._root}/run").mkdir()
        for name in PARTS_OF_RUN:
            if kind := _mode(f"/run/{name}"):
                self._put(f"/run/{name}", f"/run/{name}", kind)
        # sshd of root's wants an empty directory of its own.
        Path(f"{self._root}/run/sshd").mkdir(mode=0o755)
        self._put_nothing()
        self._homes()
        for source, place in (
            (self._view.home, LITERAL_HOME),
            (self._view.cache, LITERAL_CACHE),
            (self._view.temp, "/tmp"),  # noqa: S108 -- the task's own
            (self._view.temp, "/var/tmp"),  # noqa: S108 -- the same
        ):
            self._put(source, place, _mode(source))
        for source, place in self._view.places:
            self._put_plain(source, place)
        for tree, place, changes in self._view.kept:
            self._lay_over(tree, place, changes)
        if self._own and covers_any(self._masked, self._own):
            self._needed_at(self._own, writable=False)
        hidden = hidden_paths(self._reach.hidden, self._own)
        # The machine may have a directory of that name, too: here it is the task's own.
        for path in outermost(path for path in hidden if not covers(LITERAL_HOME, (path,))):
            self._hide(path)
        self._ways()
        if self._view.environment:
            self._environment(*self._view.environment)
        for place in self._blanks:
            linux.mount(None, place, None, READ_ONLY)

    def _ways(self) -> None:
        """Show what the task needs where it lies, as far as something else covers it."""
        for writable, paths in ((False, self._reach.readable), (True, self._reach.writable)):
            for path in paths:
                if path != LITERAL_HOME and covers_any(self._masked, path):
                    self._needed_at(path, writable=writable)
        for path in self._reach.given:
            if covers_any(self._masked, path):
                self._put_plain(path, path)

    def _environment(self, tree: str, changes: str) -> None:
        """Lay what the task changes of its environment over it, under every name that it has."""
        real = os.path.realpath(tree)
        self._lay_over(real, real, changes)
        if tree != real and _mode(self._root + tree, follow=False) == stat.S_IFDIR:
            linux.mount(self._root + real, self._root + tree, None, BIND)

    def _devices(self) -> None:
        self._same("/dev")
        shared = f"{self._root}/dev/shm"  # noqa: S108 -- the task's own
        if _mode(shared, follow=False) == stat.S_IFDIR:
            size = f",size={self._view.shm_bytes}" if self._view.shm_bytes else ""
            linux.mount("shm", shared, "tmpfs", CLOSED, f"mode=1777{size}")

    def _put_nothing(self) -> None:
        """An empty directory that can be shown in many places: a mount of each would cost more."""
        Path(self._root + NOTHING).mkdir()
        flags = CLOSED | linux.MS_RDONLY
        linux.mount("hidden", self._root + NOTHING, "tmpfs", flags, "mode=755,size=4k")

    def _homes(self) -> None:
        for name in ("home", "root", "tmp", "cache"):
            Path(f"{self._root}/{name}").mkdir()

    def _same(self, path: str) -> None:
        """Show something of the machine at its own place; a link as a link."""
        kind = _mode(path, follow=False)
        if kind == stat.S_IFLNK:
            Path(self._root + path).symlink_to(Path(path).readlink())
        elif kind:
            self._put(path, path, kind)

    def _needed_at(self, path: str, *, writable: bool) -> None:
        """Show what a link leads to under the link's own name: the rest of the way is hidden."""
        if kind := _mode(path):
            self._put(path, path, kind)
            if not writable:
                with suppress(OSError):  # Landlock, or else the owner's rights, are left
                    linux.make_read_only(self._root + path)

    def _put(self, source: str, place: str, kind: int = stat.S_IFDIR) -> None:
        target = self._root + place
        if _mode(target) != kind:
            if kind == stat.S_IFDIR:
                Path(target).mkdir(parents=True, exist_ok=True)
            else:
                Path(target).parent.mkdir(parents=True, exist_ok=True)
                Path(target).touch()
        linux.mount(source, target, None, BIND)

    def _put_plain(self, source: str, place: str) -> None:
        """Show what somebody asked for who might have put a link in its stead since."""
        descriptor = linux.open_plain(source)
        try:
            kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
            self._put(f"/proc/self/fd/{descriptor}", place, kind)
        finally:
            os.close(descriptor)

    def _lay_over(self, tree: str, place: str, changes: str) -> None:
        """Show a tree that several tasks see, with what this one changes laid over it. Where that
        cannot be, nothing can be changed.
        """
        target = self._root + place
        Path(target).mkdir(parents=True, exist_ok=True)
        told = f"lowerdir={tree},upperdir={changes}/upper,workdir={changes}/work"
        if not any(odd in f"{tree}{changes}" for odd in ":,\\"):
            # In a user namespace the usual marks cannot be set: without others nothing of a
            # directory that was there could be removed.
            usual, others = "", ",userxattr"
            for more in (usual, others) if _may_mark(f"{changes}/work") else (others, usual):
                with suppress(OSError):
                    linux.mount("dataset", target, "overlay", CLOSED, told + more)
                    return
        linux.mount(tree, target, None, BIND)
        linux.make_read_only(target)

    def _hide(self, path: str) -> None:
        target = self._root + path
        kind = _mode(target, follow=False)
        if kind == stat.S_IFDIR and covers(path, self._needed):
            # Ways to what the task needs are made in it, and then it is closed.
            linux.mount("hidden", target, "tmpfs", CLOSED, "mode=755,size=1m")
            self._blanks.append(target)
        elif kind == stat.S_IFDIR:
            linux.mount(self._root + NOTHING, target, None, linux.MS_BIND)
        elif kind not in (0, stat.S_IFLNK):
            linux.mount("/dev/null", target, None, BIND)
        if kind:
            self._masked.append(path)


def _may_mark(path: str) -> bool:
    """Whether this process may set the attributes by which overlayfs marks what was removed."""
    with suppress(OSError):
        os.setxattr(path, "trusted.danlu", b"")
        return True
    return False


def _mode(path: str, *, follow: bool = True) -> int:
    """What kind of file is there; 0 = none."""
    try:
        return stat.S_IFMT(os.stat(path, follow_symlinks=follow).st_mode)  # noqa: PTH116 -- as text: a task waits
    except OSError:
        return 0


def outermost(paths: Iterable[str]) -> list[str]:
    """Those that lie below none of the others: what is below something hidden is not there to be
    hidden. (A server's usual data directory lies in a home's hidden `.local`.)
    """
    found: list[str] = []
    for path in sorted(set(paths), key=len):
        if not covers_any(found, path):
            found.append(path)
    return found


def covers_any(directories: Iterable[str], path: str) -> bool:
    """Whether `path` is one of these directories or lies below one."""
    return any(covers(directory, (path,)) for directory in directories)
