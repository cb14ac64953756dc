"""Uploads in parts to a directory: their parts lie below its root where no key leads, as files of
their own, until an upload is complete.

    .danlu-part-uploads/ID/upload    what it is for; `etag` once the object is about to be there
    .danlu-part-uploads/ID/00001-MD5 a part

complete: all parts into a draft beside the object -> its etag on record -> the draft under the
object's name -> the parts removed. Whoever was killed in between, or lost the answer, completes
again. The record stays for a while for that. Whatever changes an upload holds the lock on its
directory.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from danlu.model.errors import Invalid, Missing
from danlu.ports.objects import MAX_PARTS, ObjectInfo, Part, Parts, Upload
from danlu.ports.objects import Uploads as Page
from danlu.stores.folder import listing
from danlu.stores.folder.condition import Condition
from danlu.stores.folder.writing import LARGE_CHUNK, Writing
from danlu.stores.plain import beneath

UPLOAD_AGE_S = 7 * 24 * 3600.0
SWEEP_EVERY_S = 3600.0
ABOUT = "upload"
ABOUT_BYTES = 16 << 10
_ID = re.compile(r"[0-9a-f]{32}")
_PART = re.compile(r"([0-9]{5})-([0-9a-f]{32})")


class Place(Protocol):
    """What uploads need of their directory, whose methods say what these are."""

    name: str
    root: str

    def head(self, bucket: str, key: str) -> ObjectInfo: ...

    def told(self, key: str) -> AbstractContextManager[None]: ...

    def draft(self, at: int) -> tuple[str, int]: ...

    def publish(
        self, key: str, condition: Condition, fill: Callable[[int], None]
    ) -> ObjectInfo: ...


class Uploads:
    """The uploads to one directory."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._next_sweep = 0.0

    def create(self, key: str) -> Upload:
        """Begin an upload."""
        if time.monotonic() >= self._next_sweep:
            self.sweep()
        upload, at = secrets.token_hex(16), time.time_ns() // 1_000_000
        with (
            self._place.told(key),
            beneath.folder(self._place.root, [beneath.UPLOADS, upload], make=True) as folder,
        ):
            _write(folder, {"key": key, "created_at": at})
        return Upload(self._place.name, key, upload, at)

    def put(self, key: str, upload: str, number: int, source: bytes | BinaryIO) -> Part:
        """Store a part."""
        if not 1 <= number <= MAX_PARTS:
            raise Invalid("upload-part-number", number=number, limit=MAX_PARTS)
        with self._folder(key, upload) as folder:
            self._open(folder, key, upload)
            with self._place.told(key):
                draft, descriptor = self._place.draft(folder)
            try:
                size, md5, _ = Writing(descriptor, Path(self._place.root)).run(source)
                at = os.fstat(descriptor).st_mtime_ns // 1_000_000
                with self._place.told(key), _alone(folder):
                    self._open(folder, key, upload)
                    name = f"{number:05}-{md5.hex()}"
                    os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
                    _remove(folder, [one for one in _names(folder, number) if one != name])
                    os.fsync(folder)
            finally:
                os.close(descriptor)
                with suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=folder)
        return Part(number, size, md5.hex(), at)

    def parts(self, key: str, upload: str, after: int, limit: int) -> Parts:
        """One page of the parts of an upload."""
        with self._folder(key, upload) as folder:
            self._open(folder, key, upload)
            found = [part for part in _parts(folder) if part.number > after]
        page = found[:limit]
        return Parts(page, page[-1].number if page and len(found) > limit else None)

    def page(self, prefix: str, delimiter: str, after: tuple[str, str], limit: int) -> Page:
        """One page of the uploads that are open."""
        found = sorted(self._all(), key=lambda upload: (upload.key.encode(), upload.id))
        return listing.uploads(found, prefix.encode(), delimiter.encode(), after, limit)

    def complete(
        self, key: str, upload: str, wanted: Sequence[tuple[int, str]], condition: Condition
    ) -> ObjectInfo:
        """Make a file of parts."""
        with self._folder(key, upload) as folder, _alone(folder):
            about = self._known(folder, key, upload)
            there = {part.number: part for part in _parts(folder)}
            if "etag" in about:
                done = self._again(key, about["etag"])
                if done is not None:
                    _remove(folder, _names(folder))
                    return done
                if not there:
                    raise Missing("no-such-upload", bucket=self._place.name, key=key, id=upload)
            chosen = listing.chosen(wanted, there, lambda part: part.etag)

            def fill(descriptor: int) -> None:
                with self._place.told(key):
                    for part in chosen:
                        _append(folder, f"{part.number:05}-{part.etag}", descriptor, upload)
                    os.fsync(descriptor)
                    etag = beneath.etag_of(os.fstat(descriptor))
                    _write(folder, {**about, "etag": etag})

            info = self._place.publish(key, condition, fill)
            _remove(folder, _names(folder))
            return info

    def abort(self, key: str, upload: str) -> None:
        """Drop an upload."""
        with self._folder(key, upload) as folder, _alone(folder):
            self._open(folder, key, upload)
            self._drop(folder, upload)

    def sweep(self, age_s: float = UPLOAD_AGE_S) -> None:
        """Drop uploads in which nothing has happened for `age_s`."""
        self._next_sweep = time.monotonic() + SWEEP_EVERY_S
        before = time.time() - age_s
        for upload in self._ids():
            with (
                suppress(OSError),
                beneath.folder(self._place.root, [beneath.UPLOADS, upload]) as folder,
                _alone(folder, wait=False),
            ):
                if os.fstat(folder).st_mtime <= before:
                    self._drop(folder, upload)

    # ------------------------------------------------------------------ inside

    @contextmanager
    def _folder(self, key: str, upload: str) -> Iterator[int]:
        """The folder of an upload; Missing where there is none."""
        missing = Missing("no-such-upload", bucket=self._place.name, key=key, id=upload)
        if not _ID.fullmatch(upload):
            raise missing
        with ExitStack() as held:
            try:
                with self._place.told(key):
                    place = beneath.folder(self._place.root, [beneath.UPLOADS, upload])
                    folder = held.enter_context(place)
                yield folder
            except FileNotFoundError as problem:  # or aborted in between
                raise missing from problem

    def _known(self, folder: int, key: str, upload: str) -> dict[str, Any]:
        about = _read(folder)
        if about is None or about["key"] != key:
            raise Missing("no-such-upload", bucket=self._place.name, key=key, id=upload)
        return about

    def _open(self, folder: int, key: str, upload: str) -> None:
        """Raise Missing unless parts may be added."""
        about = self._known(folder, key, upload)
        if "etag" in about and self._again(key, about["etag"]) is not None:
            raise Missing("no-such-upload", bucket=self._place.name, key=key, id=upload)

    def _again(self, key: str, etag: str) -> ObjectInfo | None:
        """The file that an upload has become, if it is still there."""
        try:
            info = self._place.head(self._place.name, key)
        except Missing:
            return None
        return info if info.etag == etag else None

    def _drop(self, folder: int, upload: str) -> None:
        # What it is for goes first: without that nothing counts.
        with suppress(FileNotFoundError):
            os.unlink(ABOUT, dir_fd=folder)
        _remove(folder, os.listdir(folder))
        with suppress(OSError), beneath.folder(self._place.root, [beneath.UPLOADS]) as above:
            os.rmdir(upload, dir_fd=above)
        with suppress(OSError), beneath.folder(self._place.root, []) as root:
            os.rmdir(beneath.UPLOADS, dir_fd=root)

    def _ids(self) -> list[str]:
        try:
            with beneath.folder(self._place.root, [beneath.UPLOADS]) as above:
                names: list[str] = os.listdir(above)  # noqa: PTH208 -- of a descriptor
                return [name for name in names if _ID.fullmatch(name)]
        except OSError:
            return []

    def _all(self) -> Iterator[Upload]:
        """The open uploads, in any order."""
        for upload in self._ids():
            with (
                suppress(OSError),
                beneath.folder(self._place.root, [beneath.UPLOADS, upload]) as folder,
            ):
                about = _read(folder)
                if about is not None and "etag" not in about:
                    yield Upload(self._place.name, about["key"], upload, about["created_at"])


@contextmanager
def _alone(folder: int, *, wait: bool = True) -> Iterator[None]:
    """Alone among those who change an upload. BlockingIOError if somebody does and none waits."""
    # A descriptor of its own: locks are the descriptor's, and threads must not share one.
    own = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        fcntl.flock(own, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(own)


def _read(folder: int) -> dict[str, Any] | None:
    """What an upload is for; None where that is not, or no longer, on record."""
    try:
        descriptor = os.open(
            ABOUT, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder
        )
    except OSError:
        return None
    try:
        about = json.loads(os.read(descriptor, ABOUT_BYTES))
    except ValueError:
        return None
    finally:
        os.close(descriptor)
    good = isinstance(about, dict) and isinstance(about.get("key"), str)
    return about if good and isinstance(about.get("created_at"), int) else None


def _write(folder: int, about: dict[str, Any]) -> None:
    draft = f"{beneath.TEMPORARY}{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(draft, flags, 0o666, dir_fd=folder)
    try:
        os.write(descriptor, json.dumps(about).encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.rename(draft, ABOUT, src_dir_fd=folder, dst_dir_fd=folder)
    os.fsync(folder)


def _names(folder: int, number: int | None = None) -> list[str]:
    """The files of parts, of all or of one number."""
    found = [name for name in os.listdir(folder) if _PART.fullmatch(name)]
    return [name for name in found if number is None or int(name[:5]) == number]


def _remove(folder: int, names: Sequence[str]) -> None:
    for name in names:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)


def _parts(folder: int) -> list[Part]:
    """The parts that are there, by number."""
    found = []
    for name in sorted(_names(folder)):
        with suppress(FileNotFoundError):
            state = os.stat(name, dir_fd=folder, follow_symlinks=False)
            at = state.st_mtime_ns // 1_000_000
            found.append(Part(int(name[:5]), state.st_size, name[6:], at))
    return found


def _append(folder: int, name: str, target: int, upload: str) -> None:
    """The content of a part behind what is there: the digest that it came with is its name."""
    source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    digest = hashlib.md5(usedforsecurity=False)
    try:
        while chunk := os.read(source, LARGE_CHUNK):
            digest.update(chunk)
            left = memoryview(chunk)
            while left:
                left = left[os.write(target, left) :]
    finally:
        os.close(source)
    if digest.hexdigest() != name[6:]:
        raise Invalid("upload-changed", upload=upload)
