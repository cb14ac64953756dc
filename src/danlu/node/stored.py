"""Which output files are safely stored, and in which state they were when they were read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from danlu.node.directory import TaskDirectory
from danlu.ports import task_directory as files

State = tuple[int, int, int, int]
"""Size, time of the last change to the content, and to the inode (ns), and inode number."""


def state_of(found: os.stat_result) -> State:
    """What changes when a file is written, replaced or renamed."""
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


class Stored:
    """The journal of stored files, kept in `stored.jsonl` so that another agent can go on."""

    def __init__(self, directory: TaskDirectory) -> None:
        self._directory = directory
        self._states: dict[tuple[int, str], State] = {}
        self._digests: dict[tuple[int, str], str] = {}
        for output, name, state, sha256 in _read(directory.file(files.STORED)):
            self._keep(output, name, state, sha256)

    def state(self, output: int, name: str) -> State | None:
        """The state in which a file of an output was stored, or None if it was not."""
        return self._states.get((output, name))

    def sha256(self, output: int, name: str) -> str:
        """The digest of a stored file, or nothing where it is not known."""
        return self._digests.get((output, name), "")

    def note(self, output: int, name: str, state: State, sha256: str = "") -> None:
        """A file is stored in this state."""
        self._keep(output, name, state, sha256)
        line = {"output": output, "name": name, "state": state, "sha256": sha256}
        self._directory.append(files.STORED, line)

    def _keep(self, output: int, name: str, state: State, sha256: str) -> None:
        self._states[output, name] = state
        self._digests[output, name] = sha256

    def everything(self, output: int, root: Path) -> None:
        """All that lies below `root` came from where it would be stored."""
        for path in sorted(root.rglob("*")):
            if path.is_file() and not path.is_symlink():
                self.note(output, str(path.relative_to(root)), state_of(path.stat()))

    def forget(self, output: int, name: str) -> None:
        """A file is not stored after all."""
        self._states.pop((output, name), None)


def _read(path: str) -> Iterator[tuple[int, str, State, str]]:
    try:
        stream = Path(path).open("rb")  # noqa: SIM115 -- closed below
    except OSError:
        return
    with stream:
        for line in stream:
            with suppress(ValueError, TypeError, KeyError):
                entry = json.loads(line)
                size, modified, changed, inode = entry["state"]
                state = (size, modified, changed, inode)
                sha256 = str(entry.get("sha256", ""))
                yield int(entry["output"]), str(entry["name"]), state, sha256
