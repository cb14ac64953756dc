"""Data sets that stay on this machine for the next job, each once, under what it consists of.

```
<root>/<digest>/tree/        the files, which nobody ever writes to
<root>/<digest>/about.json   sizes and where they came from; there once the tree is complete
<root>/<digest>/users/<id>   a link to the directory of each task that uses it
<root>/<digest>.lock         held by whoever makes or removes it
<root>/lock                  held by whoever counts what there is
```

A task uses a data set as long as its directory is there and is not done: no process has to live
for that, so whoever is killed leaves nothing behind that would not be seen for what it is.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from danlu.node import linux
from danlu.node.directory import publish_json, read_json
from danlu.node.places import remove_tree
from danlu.ports import task_directory as files
from danlu.ports.crash import crash_point
from danlu.ports.objects import ObjectInfo

ABOUT = "about.json"
COMING = "coming.json"
TREE = "tree"
USERS = "users"
LOCK = "lock"
TRASH = ".trash-"
LOOK_AGAIN_S = 0.05

LEAST_BYTES = 16 << 20
LEAST_FILES = 64
"""What is smaller is copied to each task: that takes no time to speak of."""


@dataclass(frozen=True, slots=True)
class DataSet:
    """One that is kept. `used_at` is UTC milliseconds; `users` are directories of tasks."""

    digest: str
    files: int
    size: int
    url: str
    used_at: int
    users: tuple[str, ...]
    complete: bool = True


class Digest:
    """What a data set consists of, object by object in the order of their names."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, name: str, info: ObjectInfo) -> None:
        """One more object, under its name below the place that was named."""
        what = info.sha256 or info.etag
        line = [name, info.size, what, info.metadata.get("mode", "")]
        self._hash.update(json.dumps(line).encode("utf-8", "surrogatepass") + b"\n")

    def hex(self) -> str:
        """The digest."""
        return self._hash.hexdigest()


class DataSets:
    """The data sets below a directory, at most `limit_bytes` of them. Any number of processes may
    use one directory at once.
    """

    def __init__(self, root: Path, limit_bytes: int) -> None:
        self._root = root
        self._limit = limit_bytes

    def use(
        self,
        digest: str,
        task: str,
        about: dict[str, str | int],
        fill: Callable[[Path], None],
        check: Callable[[], None],
    ) -> tuple[Path, bool] | None:
        """The tree of a data set for the task in the directory `task`, and whether it was there
        already; None where there is no room for it. `fill` makes it; `about` holds its `size`.

        Raises what `check` and `fill` raise.
        """
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._alone(f"{digest}.{LOCK}", check):
            entry = self._root / digest
            kept = (entry / ABOUT).exists()
            if not kept:
                remove_tree(entry)
                if not self._reserve(entry, int(about["size"]), check):
                    return None
            self._pin(entry, task)
            if not kept:
                try:
                    (entry / TREE).mkdir()
                    crash_point("dataset.reserved")
                    fill(entry / TREE)
                    _sync(entry)
                    crash_point("dataset.filled")
                    publish_json(entry, ABOUT, about)
                except BaseException:
                    remove_tree(entry)
                    raise
            os.utime(entry / ABOUT)
            return entry / TREE, kept

    def about(self, digest: str) -> dict[str, object]:
        """What was said of a data set when it was made."""
        return read_json(self._root / digest / ABOUT) or {}

    def all(self) -> list[DataSet]:
        """Every data set, the one that was used last first."""
        found = [self._look(entry) for entry in self._entries()]
        return sorted(filter(None, found), key=lambda one: -one.used_at)

    def remove(self, digest: str) -> bool:
        """Remove a data set that nobody uses; False where somebody does, or it is not there."""
        with ExitStack() as held:
            if not self._try(f"{digest}.{LOCK}", held):
                return False
            return self._discard(self._root / digest)

    def shrink(self, limit_bytes: int) -> list[DataSet]:
        """Remove what was used longest ago until no more than that is left; what was removed."""
        for leftover in self._root.glob(f"{TRASH}*"):
            remove_tree(leftover)
        removed = []
        left = sum(one.size for one in self.all())
        for one in reversed(self.all()):
            if left <= limit_bytes:
                break
            if self.remove(one.digest):
                removed.append(one)
                left -= one.size
        return removed

    def _reserve(self, entry: Path, size: int, check: Callable[[], None]) -> bool:
        """Make room for a data set and say that it is coming."""
        if size > self._limit:
            return False
        with self._alone(LOCK, check):
            self.shrink(self._limit - size)
            if sum(one.size for one in self.all()) + size > self._limit:
                return False
            (entry / USERS).mkdir(mode=0o700, parents=True)
            publish_json(entry, COMING, {"size": size})
        return True

    def _pin(self, entry: Path, task: str) -> None:
        name = hashlib.sha256(task.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        with suppress(FileExistsError):
            (entry / USERS / name).symlink_to(task)

    def _discard(self, entry: Path) -> bool:
        """Remove an entry whose lock is held."""
        if not entry.is_dir() or any(_users(entry)):
            return False
        trash = self._root / f"{TRASH}{secrets.token_hex(8)}"
        entry.rename(trash)
        remove_tree(trash)
        return True

    def _entries(self) -> Iterator[Path]:
        with suppress(FileNotFoundError), os.scandir(self._root) as entries:
            for entry in entries:
                if len(entry.name) == 64 and entry.is_dir(follow_symlinks=False):
                    yield Path(entry.path)

    def _look(self, entry: Path) -> DataSet | None:
        about = read_json(entry / ABOUT)
        said = about or read_json(entry / COMING)
        if said is None:
            return None
        try:
            used_at = (entry / (ABOUT if about else COMING)).stat().st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return None
        return DataSet(
            entry.name,
            _number(said.get("files")),
            _number(said.get("size")),
            str(said.get("url", "")),
            used_at,
            tuple(_users(entry)),
            about is not None,
        )

    @contextmanager
    def _alone(self, name: str, check: Callable[[], None]) -> Iterator[None]:
        """Wait for a lock, and ask meanwhile whether that is still wanted."""
        with ExitStack() as held:
            while not self._try(name, held):
                check()
                time.sleep(LOOK_AGAIN_S)
            yield

    def _try(self, name: str, held: ExitStack) -> bool:
        with suppress(FileNotFoundError):
            descriptor = os.open(self._root / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(descriptor)
                return False
            held.callback(os.close, descriptor)
            return True
        return False


def _users(entry: Path) -> Iterable[str]:
    """The tasks that use a data set. Those that are over are forgotten."""
    with suppress(FileNotFoundError), os.scandir(entry / USERS) as links:
        for link in links:
            task = os.readlink(link.path)  # noqa: PTH115 -- as text
            over = any(os.path.lexists(f"{task}/{name}") for name in (files.DONE, files.FENCED))
            if over or not os.path.isdir(task):  # noqa: PTH112 -- as text
                Path(link.path).unlink(missing_ok=True)
            else:
                yield task


def _sync(entry: Path) -> None:
    descriptor = os.open(entry, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        linux.sync_file_system(descriptor)
    finally:
        os.close(descriptor)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
