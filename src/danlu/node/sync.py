"""Outputs: found in the task's directories, stored during the run and at its end."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from danlu.model.errors import PlatformError
from danlu.model.job import Output
from danlu.model.manifest import File, Owner, hidden
from danlu.node.commit import Commit, Superseded
from danlu.node.fetch import digest
from danlu.node.parallel import each
from danlu.node.steady import Unsteady
from danlu.node.stored import State, Stored, state_of
from danlu.node.target import Target
from danlu.ports.crash import crash_point

PROBLEMS = (OSError, PlatformError, Unsteady, Superseded)
DEEPEST = 64


@dataclass(frozen=True, slots=True)
class Found:
    """A file of an output: its name below the output's directory, and its state."""

    name: str
    state: State


@dataclass(slots=True)
class Walk:
    """The files below a directory, and what was passed over: special files and links that lead
    out of it. `strict`: what cannot be read is an error (at the end, when all of it counts).
    """

    root: Path
    strict: bool = False
    skipped: int = 0
    example: str = ""

    def files(self) -> Iterator[Found]:
        """Every plain file; a link to one inside counts as a file of its own."""
        if self.root.is_symlink():
            self._skip(self.root.name)
        else:
            yield from self._below("", set(), DEEPEST)

    def _below(self, prefix: str, through: set[str], depth: int) -> Iterator[Found]:
        for entry in self._entries(self.root / prefix):
            name = f"{prefix}{entry.name}"
            if hidden(name):
                self._skip(name)
                continue
            with suppress(FileNotFoundError):
                if entry.is_symlink():
                    yield from self._link(name, through, depth)
                    continue
                found = entry.stat(follow_symlinks=False)
                if S_ISREG(found.st_mode):
                    yield Found(name, state_of(found))
                elif S_ISDIR(found.st_mode) and depth:
                    yield from self._below(f"{name}/", through, depth - 1)
                else:
                    self._skip(name)

    def _entries(self, directory: Path) -> list[os.DirEntry[str]]:
        try:
            if self.strict and not os.access(directory, os.R_OK | os.X_OK):
                directory.chmod(directory.stat().st_mode | 0o700)
            return sorted(os.scandir(directory), key=lambda entry: entry.name)
        except FileNotFoundError:
            return []
        except OSError:
            if self.strict:
                raise
            return []

    def _link(self, name: str, through: set[str], depth: int) -> Iterator[Found]:
        real = os.path.realpath(self.root / name)
        inside = real.startswith(f"{os.path.realpath(self.root)}/")
        try:
            found = os.stat(real)  # noqa: PTH116 -- a path as text
        except OSError:
            self._skip(name)
            return
        if inside and S_ISREG(found.st_mode):
            yield Found(name, state_of(found))
        elif inside and S_ISDIR(found.st_mode) and not through and depth:
            # One link deep and no deeper: links can be arranged so that following them never ends.
            yield from self._below(f"{name}/", {real}, depth - 1)
        else:
            self._skip(name)

    def _skip(self, name: str) -> None:
        self.skipped += 1
        self.example = self.example or name


@dataclass(frozen=True, slots=True)
class Summary:
    """What an output holds at the end, all of it stored; and what was passed over."""

    files: int
    size: int
    skipped: int
    example: str


class OutputSync:
    """Keeps one output stored. Looks are made by one thread at a time.

    During the run each file that is steady is stored under its own name, so that it is there for
    whoever looks. At the end what is left is staged, and delivered at once with a manifest.
    """

    def __init__(
        self,
        index: int,
        output: Output,
        root: Path,
        target: Target,
        stored: Stored,
        owner: Owner,
    ) -> None:
        self.output = output
        self.root = root
        self._index = index
        self._target = target
        self._stored = stored
        self._owner = owner
        self._before: dict[str, State] = {}

    def steady(self) -> list[Found]:
        """What is new or changed and was already so at the last look, oldest first: whoever
        writes a manifest last finds it stored last.
        """
        now = {found.name: found.state for found in Walk(self.root).files()}
        ready = [
            Found(name, state)
            for name, state in now.items()
            if self._before.get(name) == state and self._stored.state(self._index, name) != state
        ]
        self._before = now
        return sorted(ready, key=lambda found: (found.state[1], found.name))

    def store_steady(self, stopping: threading.Event) -> None:
        """Store what is steady. What fails now is tried again at the next look."""
        for found in self.steady():
            if stopping.is_set():
                return
            with suppress(*PROBLEMS):
                self._put(found.name, found.name, last=False)

    def store_all(self, exit_code: int) -> Summary:
        """Store everything that is not yet stored in its last state, check that all is there, and
        deliver it with a manifest. `exit_code` is the program's.

        Raises one of PROBLEMS. May be called again.
        """
        walk = Walk(self.root, strict=True)
        sizes: dict[str, int] = {}
        places: dict[str, str] = {}

        def unstored() -> Iterator[str]:
            for found in walk.files():
                sizes[found.name] = found.state[0]
                place = self._place(found.name, found.state)
                if place is None:
                    yield found.name
                else:
                    places[found.name] = place

        def stage(name: str) -> None:
            places[name] = self._owner.staged(os.fsencode(name))
            self._put(name, places[name], last=True)

        each(unstored(), stage)
        self._settle({place: sizes[name] for name, place in places.items()})
        files = [
            File(_text(name), size, self._digest(places[name], name))
            for name, size in sizes.items()
        ]
        staged = {name: place for name, place in places.items() if place != name}
        commit = Commit(self._target, self._owner, self._index, self.output.name)
        commit.run(files, staged, exit_code)
        self._settle(sizes)
        commit.finish()
        for name, place in staged.items():
            with suppress(OSError):
                state = state_of((self.root / name).stat())
                self._stored.note(self._index, name, state, self._stored.sha256(self._index, place))
        return Summary(len(files), sum(sizes.values()), walk.skipped, walk.example)

    def _place(self, name: str, state: State) -> str | None:
        """Under which name a file is stored in this state: its own, its staged one, or none."""
        for place in (name, self._owner.staged(os.fsencode(name))):
            if self._stored.state(self._index, place) == state:
                return place
        return None

    def _settle(self, sizes: Mapping[str, int]) -> None:
        """Have everything durable, and raise OSError for what is not there."""
        missing = self._target.settle(sizes)
        if missing:
            for name in missing:
                self._stored.forget(self._index, name)
            shown = ", ".join(missing[:3])
            raise OSError(0, f"{len(missing)} file(s) did not arrive, {shown} among them")

    def _digest(self, place: str, name: str) -> str:
        return self._stored.sha256(self._index, place) or digest(self.root / name)

    def _put(self, name: str, place: str, *, last: bool) -> None:
        crash_point("agent.before-upload")
        put = self._target.put(self.root / name, place, last=last)
        crash_point("agent.after-upload")
        self._stored.note(self._index, place, put.state, put.sha256)


def _text(name: str) -> str:
    """A name as text; odd bytes are written out, as in an object's key."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
