"""Objects and local trees into a task's directories."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from danlu.model.errors import EngineError, Missing
from danlu.model.manifest import hidden
from danlu.node.datasets import Digest
from danlu.node.parallel import each
from danlu.ports.objects import Fetching, ObjectInfo, ObjectStore

Check = Callable[[], None]
"""Called often; raises when the task is to be stopped."""

MOST_LISTED = 1000
"""Objects that are remembered from the listing; longer listings are made twice."""
COPY_BYTES = 64 << 20


@dataclass(slots=True)
class Tally:
    """What was brought. Threads add to it."""

    files: int = 0
    size: int = 0
    skipped: list[str] = field(default_factory=list)
    skipped_count: int = 0
    damaged: list[str] = field(default_factory=list)
    """Names whose content is not what was stored; they were not brought."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, size: int) -> None:
        """One more file."""
        with self._lock:
            self.files += 1
            self.size += size

    def skip(self, name: str) -> None:
        """One that cannot be a file here; the first few are remembered by name."""
        with self._lock:
            self.skipped_count += 1
            if len(self.skipped) < 3:
                self.skipped.append(name)


@dataclass(frozen=True, slots=True)
class Source:
    """Objects below a prefix: their number and size, and a way to go through them. The digest tells
    whether others hold the same.
    """

    files: int
    size: int
    objects: Callable[[], Iterable[ObjectInfo]]
    digest: str = ""


def survey(store: ObjectStore, bucket: str, prefix: str, check: Check, since: int = 0) -> Source:
    """Count what lies below `prefix` and was written since an instant (UTC ms). Memory does not
    grow with it.
    """

    def fresh() -> Iterator[ObjectInfo]:
        return (
            info
            for info in store.walk(bucket, prefix)
            if info.modified_at >= since and not hidden(info.key[len(prefix) :])
        )

    kept: list[ObjectInfo] = []
    files = size = 0
    digest = Digest()
    for info in fresh():
        check()
        digest.add(info.key[len(prefix) :], info)
        files += not info.key.endswith("/")
        size += info.size
        if len(kept) <= MOST_LISTED:
            kept.append(info)
    if len(kept) <= MOST_LISTED:
        return Source(files, size, lambda: kept, digest.hex())
    return Source(files, size, fresh, digest.hex())


def relative(key: str) -> str | None:
    """The key, behind its prefix, as a path below a directory; None where it cannot be one."""
    parts = key.split("/")
    if any(part in ("", ".", "..") or len(part.encode()) > 255 for part in parts):
        return None
    return None if "\0" in key else key


class Fetcher:
    """Brings objects of one store. `link`: a file of this machine gets a second name where that can
    be; whoever uses it must not be able to write to it.
    """

    def __init__(self, store: ObjectStore, check: Check, *, link: bool = False) -> None:
        self._store = store
        self._check = check
        self._link = link
        local: Callable[[str, str], str] | None = getattr(store, "local_file", None)
        self._local = local
        self._remote = store if isinstance(store, Fetching) else None

    def directory(
        self,
        source: Source,
        prefix: str,
        place: Path,
        after: Callable[[int], None],
        *,
        proved: bool = False,
    ) -> Tally:
        """Bring everything below `prefix` into `place`; `after` hears each file's size. `proved`:
        each file is compared with its digest, and what is damaged is left out and told of.
        """
        tally = Tally()
        made: set[str] = set()

        def one(info: ObjectInfo) -> None:
            self._check()
            name = info.key[len(prefix) :]
            if name.endswith("/") or not name:
                if name and relative(name.rstrip("/")) is not None:
                    (place / name).mkdir(parents=True, exist_ok=True)
                return
            if relative(name) is None:
                tally.skip(info.key)
                return
            path = place / name
            if name.rpartition("/")[0] not in made:
                path.parent.mkdir(parents=True, exist_ok=True)
                made.add(name.rpartition("/")[0])
            if not proved:
                self.file(info, path)
            elif not self._proved(info, path):
                tally.damaged.append(name)
                return
            tally.add(info.size)
            after(info.size)

        each(source.objects(), one)
        return tally

    def file(self, info: ObjectInfo, path: Path) -> ObjectInfo:
        """Bring one object to `path`, which must not be there yet; what is known of it."""
        if self._link and self._linked(info, path):
            return info
        with path.open("x+b", buffering=0) as target:
            if self._copy_local(info, target.fileno()):
                pass
            elif self._remote is not None:
                # A listing does not tell all that is kept with an object.
                info = self._remote.fetch(info, target.fileno(), self._check)
            else:
                for chunk in self._store.read(info.bucket, info.key):
                    self._check()
                    target.write(chunk)
            found = os.fstat(target.fileno()).st_size
        if found != info.size:
            raise EngineError(
                "object-damaged",
                bucket=info.bucket,
                key=info.key,
                detail=f"{found} bytes came and {info.size} were expected",
            )
        if executable(info.metadata.get("mode", "")):
            path.chmod(0o755)
        return info

    def _proved(self, info: ObjectInfo, path: Path) -> bool:
        """Bring one object; False, and nothing is left, where it is not what was stored."""
        try:
            info = self.file(info, path)
            good = not info.sha256 or digest(path) == info.sha256
        except EngineError as error:
            if error.key != "object-damaged":
                raise
            good = False
        if not good:
            path.unlink()
        return good

    def _linked(self, info: ObjectInfo, path: Path) -> bool:
        """Give an object's file a second name; an executable one has rights of its own."""
        if self._local is None or executable(info.metadata.get("mode", "")):
            return False
        with suppress(OSError, Missing):
            os.link(self._local(info.bucket, info.key), path, follow_symlinks=False)
            return True
        return False

    def _copy_local(self, info: ObjectInfo, target: int) -> bool:
        """Let the kernel copy, where the object is a file of this machine."""
        if self._local is None:
            return False
        with suppress(FileNotFoundError, Missing):
            descriptor = os.open(self._local(info.bucket, info.key), os.O_RDONLY | os.O_CLOEXEC)
            try:
                copy_file(descriptor, target, self._check)
            finally:
                os.close(descriptor)
            return True
        return False


def digest(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def executable(mode: str) -> bool:
    """Whether the metadata `mode` (octal, as `755` or `100755`) has an execute bit."""
    with suppress(ValueError):
        return len(mode) <= 12 and mode.isalnum() and int(mode, 8) & 0o111 != 0
    return False


def copy_file(source: int, target: int, check: Check) -> None:
    """Copy everything between two descriptors inside the kernel, sharing blocks where it can."""
    use_range = True
    while True:
        check()
        if use_range:
            try:
                moved = os.copy_file_range(source, target, COPY_BYTES)
            except OSError:
                use_range = False
                continue
        else:
            moved = os.sendfile(target, source, None, COPY_BYTES)
        if not moved:
            return


def copy_tree(source: Path, place: Path, check: Check, since: int = 0) -> Tally:
    """Copy a local directory's plain files into `place`, those that came there since an instant
    (UTC ms).
    """
    tally = Tally()

    def one(name: str) -> None:
        check()
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with (source / name).open("rb", buffering=0) as opened:
            with path.open("xb", buffering=0) as target:
                copy_file(opened.fileno(), target.fileno(), check)
            tally.add(os.fstat(opened.fileno()).st_size)
        path.chmod(0o755 if os.access(source / name, os.X_OK) else 0o644)

    each((name for name in _plain_files(source) if _came_at(source / name) >= since), one)
    return tally


def _came_at(path: Path) -> float:
    """When a file came to its place: its content may be older, if it was put there by a link."""
    found = path.stat(follow_symlinks=False)
    return max(found.st_mtime, found.st_ctime) * 1000


def _plain_files(root: Path) -> Iterator[str]:
    waiting = [""]
    while waiting:
        below = waiting.pop()
        with os.scandir(root / below) as entries:
            for entry in entries:
                name = f"{below}{entry.name}"
                if hidden(name):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{name}/")
                elif entry.is_file(follow_symlinks=False):
                    yield name
