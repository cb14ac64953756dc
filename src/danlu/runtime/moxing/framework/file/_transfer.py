"""Copies: one file, or all that lies below a directory, between machine and storage.

A copy writes nothing but its target, and that whole or not at all: a local file appears by rename,
an object when it has arrived. Nothing is ever deleted.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor, wait
from typing import IO, NamedTuple

from moxing.framework.file import _objects
from moxing.framework.file._connection import CHUNK, Body, FileChanged
from moxing.framework.file._place import KEY_BYTES, Place, Where, is_below
from moxing.framework.file._progress import Progress
from moxing.framework.file._upload import LARGE, ignore, in_parts, send
from moxing.framework.file._words import say, tell

WAITING_PER_THREAD = 4
NAMES_TOLD = 5

Add = Callable[[int], None]


class Copy(NamedTuple):
    """One file on its way. A directory (`marker`) is made, it has no content."""

    source: Where
    target: Where
    size: int
    info: _objects.Info | None = None
    marker: bool = False


def copy_one(copy: Copy, executor: Executor | None = None, add: Add = ignore) -> None:
    """Copy one file, whichever way it goes. `add` is told of every piece that has arrived."""
    source, target = copy.source, copy.target
    if copy.marker:
        make_directory(target)
    elif isinstance(source, Place):
        info = copy.info or known(source)
        if isinstance(target, Place):
            _objects.copy(info, target)
            add(info.size)
        else:
            _download(info, target, executor, add)
    elif isinstance(target, Place):
        _upload(source, target, executor, add)
    else:
        _duplicate(source, target, add)


def known(place: Place) -> _objects.Info:
    """What is known of an object that has to be there."""
    found = _objects.head(place) if place.key else None
    if found is None:
        raise FileNotFoundError(say("missing", url=place))
    return found


def make_directory(target: Where) -> None:
    """Make a directory, and those above it, unless it is there."""
    if isinstance(target, str):
        os.makedirs(target, exist_ok=True)
    elif target.key and not _objects.is_directory(target):
        _objects.put(target.directory, Body())


# one file


@contextlib.contextmanager
def appearing(path: str) -> Iterator[IO[bytes]]:
    """A file to write, which takes the place of `path` at the end, if that comes. Until then it has
    no name where the file system allows that: a process that is killed leaves nothing.
    """
    path = os.path.realpath(path)
    directory, name = os.path.split(path)
    os.makedirs(directory, exist_ok=True)
    if os.path.isdir(path):
        raise IsADirectoryError(say("open-directory", url=path))
    short = name.encode("utf-8", "surrogateescape")[:200].decode("utf-8", "ignore")
    draft = os.path.join(directory, f".{short}.{secrets.token_hex(6)}.moxing")
    nameless = _nameless(directory)
    try:
        with open(draft, "xb") if nameless is None else open(nameless, "r+b") as file:
            yield file
            file.flush()
            if nameless is not None:
                _give_name(nameless, draft)
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise


def _nameless(directory: str) -> int | None:
    """A new file without a name; None where the system or the file system has none."""
    flag = getattr(os, "O_TMPFILE", 0)
    if flag:
        with contextlib.suppress(OSError):
            return os.open(directory, flag | os.O_RDWR | os.O_CLOEXEC, 0o666)
    return None


def _give_name(descriptor: int, name: str) -> None:
    with contextlib.suppress(OSError):
        # A directory's descriptor makes os.link follow the link that /proc has for the file.
        here = os.open("/proc/self/fd", os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.link(str(descriptor), name, src_dir_fd=here, follow_symlinks=True)
        finally:
            os.close(here)
        return
    with open(name, "xb") as file:
        at = 0
        while data := os.pread(descriptor, CHUNK, at):
            file.write(data)
            at += len(data)


def _download(info: _objects.Info, path: str, executor: Executor | None, add: Add) -> None:
    with appearing(path) as file:
        if info.size < LARGE:
            for data in _objects.checked(info, _objects.Reading(info).chunks()):
                file.write(data)
                add(len(data))
            return
        os.truncate(file.fileno(), info.size)

        def part(_: int, start: int, length: int) -> None:
            at = start
            for data in _objects.Reading(info, start, length).chunks():
                _write_all(file.fileno(), data, at)
                at += len(data)
                add(len(data))

        in_parts(info.size, executor, part)


def _write_all(fd: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, at)
        view, at = view[written:], at + written


def _upload(path: str, target: Place, executor: Executor | None, add: Add) -> None:
    with open(path, "rb") as file:
        before = os.fstat(file.fileno())
        try:
            send(target, file.fileno(), before.st_size, executor, add)
        except FileChanged:
            raise OSError(say("file-changed", url=path)) from None


def _duplicate(source: str, target: str, add: Add) -> None:
    with open(source, "rb") as read:
        if os.path.exists(target) and os.path.samefile(source, target):
            return
        with appearing(target) as file:
            while data := read.read(CHUNK):
                file.write(data)
                add(len(data))


# many files


def copies(
    source: Where, target: Where, names: Iterable[str] | None, left_out: list[str]
) -> Iterator[Copy]:
    """Every file and empty directory below `source`, or those that are named, with its place below
    `target`. What cannot be copied is named in `left_out`.
    """
    if names is not None:
        for name in names:
            yield _named(source, target, name)
        return
    if isinstance(source, Place):
        found = _of_objects(source, left_out)
    else:
        found = _of_files(source, left_out)
    for name, copy in found:
        try:
            placed = joined(target, name)
        except ValueError:
            left_out.append(repr(name))
        else:
            yield copy._replace(target=placed)


def tell_left_out(left_out: list[str], place: Where) -> None:
    """Name the first few."""
    if left_out:
        more = ", …" if len(left_out) > NAMES_TOLD else ""
        names = ", ".join(left_out[:NAMES_TOLD]) + more
        tell("left-out", count=len(left_out), place=place, names=names)


def joined(directory: Where, name: str) -> Where:
    """`name` below a directory. ValueError where no object can be called so."""
    if isinstance(directory, str):
        return os.path.join(directory, name)
    try:
        length = len(f"{directory.directory.key}{name}".encode())
    except UnicodeEncodeError:
        raise ValueError(say("no-key", path=repr(name))) from None
    if length > KEY_BYTES:
        raise ValueError(name)
    return directory.below(name)


def _named(source: Where, target: Where, name: str) -> Copy:
    name = os.fspath(name)
    if not is_below(name):
        raise ValueError(say("not-listed", name=name, url=source))
    if isinstance(source, Place):
        info = known(source.below(name))
        return Copy(info.place, joined(target, name), info.size, info)
    path = os.path.join(source, name)
    return Copy(path, joined(target, name), os.stat(path).st_size)


def _of_objects(source: Place, left_out: list[str]) -> Iterator[tuple[str, Copy]]:
    prefix = source.directory.key
    for info in _objects.below(source):
        name = info.place.key[len(prefix) :]
        if not name:
            continue
        marker = name.endswith("/")
        name = name[:-1] if marker else name
        if is_below(name):
            yield name, Copy(info.place, "", 0 if marker else info.size, info, marker)
        else:
            left_out.append(repr(info.place.key))


def _of_files(source: str, left_out: list[str]) -> Iterator[tuple[str, Copy]]:
    """Links are followed; a directory that was seen on the way down is not entered again."""
    pending: list[tuple[str, str, frozenset[tuple[int, int]]]] = [("", source, frozenset())]
    while pending:
        name, path, above = pending.pop()
        here = os.stat(path)
        identity = (here.st_dev, here.st_ino)
        if identity in above:
            left_out.append(name)
            continue
        with os.scandir(path) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
        if not listed and name:
            yield name, Copy(path, "", 0, marker=True)
        for entry in listed:
            below = f"{name}/{entry.name}" if name else entry.name
            try:
                kind = entry.stat()
            except OSError:
                left_out.append(below)
                continue
            if stat.S_ISDIR(kind.st_mode):
                pending.append((below, entry.path, above | {identity}))
            elif stat.S_ISREG(kind.st_mode):
                yield below, Copy(entry.path, "", kind.st_size)
            else:
                left_out.append(below)


def copy_all(found: Iterable[Copy], threads: int, progress: Progress) -> None:
    """Copy all of them, several at once. The first error ends it, and so does an interrupt: what is
    on its way is given up, what was copied by then stays.
    """
    room = threading.Semaphore(threads * WAITING_PER_THREAD)
    failed: list[BaseException] = []

    def add(count: int) -> None:
        if failed:
            raise _GivenUp
        progress.add(count)

    def work(copy: Copy) -> None:
        try:
            if not failed:
                copy_one(copy, parts, add)
                progress.file()
        except BaseException as error:
            failed.append(error)
        finally:
            room.release()

    with (
        ThreadPoolExecutor(threads, "moxing-part") as parts,
        ThreadPoolExecutor(threads, "moxing") as files,
    ):
        futures: set[Future[None]] = set()
        try:
            for copy in found:
                room.acquire()
                if failed:
                    break
                future = files.submit(work, copy)
                futures.add(future)
                future.add_done_callback(futures.discard)
            # Here, not at the end of the pools: an interrupt has to reach those who copy.
            wait(list(futures))
        except BaseException as error:
            failed.insert(0, error)
    if failed:
        raise failed[0]


class _GivenUp(Exception):
    """Another file could not be copied."""
