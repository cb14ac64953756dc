"""Outputs: found in the task's directories, stored during the run and at its end."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from danlu.model.errors import PlatformError
from danlu.model.job import Output
from danlu.node.parallel import each
from danlu.node.stored import State, Stored, state_of
from danlu.node.target import Target, Unsteady
from danlu.ports.crash import crash_point

PROBLEMS = (OSError, PlatformError, Unsteady)
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
    """Keeps one output stored. Looks are made by one thread at a time."""

    def __init__(
        self, index: int, output: Output, root: Path, target: Target, stored: Stored
    ) -> None:
        self.output = output
        self.root = root
        self._index = index
        self._target = target
        self._stored = stored
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
                self._put(found.name, last=False)

    def store_all(self) -> Summary:
        """Store everything that is not yet stored in its last state, and check that all is there.

        Raises one of PROBLEMS. May be called again.
        """
        walk = Walk(self.root, strict=True)
        sizes: dict[str, int] = {}

        def unstored() -> Iterator[str]:
            for found in walk.files():
                sizes[found.name] = found.state[0]
                if self._stored.state(self._index, found.name) != found.state:
                    yield found.name

        each(unstored(), lambda name: self._put(name, last=True))
        missing = self._target.settle(sizes)
        if missing:
            for name in missing:
                self._stored.forget(self._index, name)
            shown = ", ".join(missing[:3])
            raise OSError(0, f"{len(missing)} file(s) did not arrive, {shown} among them")
        return Summary(len(sizes), sum(sizes.values()), walk.skipped, walk.example)

    def _put(self, name: str, *, last: bool) -> None:
        crash_point("agent.before-upload")
        state = self._target.put(self.root / name, name, last=last)
        crash_point("agent.after-upload")
        self._stored.note(self._index, name, state)
