"""Objects to files: whole or not at all, large ones in parts that survive a kill."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from danlu.faces.cli.failure import REFUSED, Failure
from danlu.faces.cli.http import Response
from danlu.faces.cli.obs.journal import Journal, taken
from danlu.faces.cli.obs.limiter import Limiter
from danlu.faces.cli.obs.moving import Tally
from danlu.faces.cli.obs.objects import Damaged, Objects, Refusal
from danlu.faces.cli.obs.parts import PARTS_AT_ONCE
from danlu.faces.cli.obs.tree import Item
from danlu.faces.cli.obs.upload import LARGE_AT_ONCE, PART_BYTES, buffer

MULTIPART_FROM = 2 * PART_BYTES
MODES = ("x-amz-meta-mode", "x-obs-meta-mode")


class Downloader:
    """Brings objects. Safe to use from several threads."""

    def __init__(
        self, objects: Objects, tally: Tally, limiter: Limiter, *, proved: bool = False
    ) -> None:
        self._objects = objects
        self._tally = tally
        self._limiter = limiter
        self._proved = proved
        self._large = threading.Semaphore(LARGE_AT_ONCE)
        self._made: set[str] = set()

    def get(self, bucket: str, key: str, item: Item, path: str) -> None:
        """Bring one object to `path`, as it was listed. The file is there as a whole, or as it was
        before.
        """
        directory, name = os.path.split(path)
        if directory not in self._made:
            os.makedirs(directory, exist_ok=True)
            self._made.add(directory)
        # The same name in every run, so that a later one finds what an earlier one has left.
        mark = hashlib.sha256(f"{bucket}\0{key}\0{name}".encode("utf-8", "surrogateescape"))
        part = os.path.join(directory, f".danlu-{mark.hexdigest()[:16]}.part")
        if item.size >= MULTIPART_FROM:
            with self._large:
                self._in_parts(bucket, key, item, part, path)
        else:
            self._at_once(bucket, key, item, part, path)
        self._tally.file(item.size)

    def _at_once(self, bucket: str, key: str, item: Item, part: str, path: str) -> None:
        found = taken(part, 0o666)
        if found is None:  # another run brings the same
            part = f"{part[: -len('.part')]}-{os.urandom(4).hex()}.part"
            found = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        descriptor = found
        try:
            os.ftruncate(descriptor, 0)
            sink = self._into(descriptor, 0, item.size, item.etag if _plain(item.etag) else "")
            headers = {"if-match": f'"{item.etag}"'} if item.etag else {}
            try:
                reply = self._objects.call("GET", bucket, key, headers=headers, sink=sink)
            except Refusal as refusal:
                raise _changed(refusal, key) from refusal
            _finish(descriptor, part, path, item, reply.headers)
        except BaseException:
            os.unlink(part)
            raise
        finally:
            os.close(descriptor)

    def _in_parts(self, bucket: str, key: str, item: Item, part: str, path: str) -> None:
        kept = Journal(f"{part}s")
        if not kept.ours:
            raise Failure(REFUSED, "obs-busy", path=path, place=f"obs://{bucket}/{key}")
        descriptor = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            state: list[str | int] = [item.etag, item.size, PART_BYTES, _boot()]
            said = kept.said if kept.said.get("state") == state else {}
            done = {number for number in said.get("done", ()) if isinstance(number, int)}
            if not done:
                os.ftruncate(descriptor, 0)
            os.ftruncate(descriptor, item.size)
            kept.note({"state": state, "done": sorted(done)})
            headers = self._ranges(bucket, key, item, descriptor, done, kept, state)
            if self._proved:
                _prove(descriptor, item)
            _finish(descriptor, part, path, item, headers)
            kept.done()
        except Damaged as error:
            os.unlink(part)
            kept.done()
            raise Failure(REFUSED, "obs-damaged", what=f"GET obs://{bucket}/{key}") from error
        finally:
            os.close(descriptor)
            kept.close()

    def _ranges(
        self,
        bucket: str,
        key: str,
        item: Item,
        descriptor: int,
        done: set[int],
        kept: Journal,
        state: list[str | int],
    ) -> dict[str, str]:
        """Bring the parts that are not there yet; the headers of one answer."""
        lock = threading.Lock()
        headers: dict[str, str] = {}

        def one(number: int) -> None:
            start = number * PART_BYTES
            length = min(PART_BYTES, item.size - start)
            asked = {"range": f"bytes={start}-{start + length - 1}", "if-match": f'"{item.etag}"'}
            sink = self._into(descriptor, start, length)
            reply = self._objects.call("GET", bucket, key, headers=asked, sink=sink)
            with lock:
                done.add(number)
                headers.update(reply.headers)
                kept.note({"state": state, "done": sorted(done)})

        count = -(-item.size // PART_BYTES)
        for number in done:
            self._tally.moved(min(PART_BYTES, item.size - number * PART_BYTES))
        left = [number for number in range(count) if number not in done]
        with ThreadPoolExecutor(PARTS_AT_ONCE, thread_name_prefix="part") as pool:
            running = [pool.submit(partial(one, number)) for number in left]
            try:
                for future in running:
                    future.result()
            except BaseException as error:
                pool.shutdown(wait=False, cancel_futures=True)
                if isinstance(error, Refusal):
                    raise _changed(error, key) from error
                raise
        if not left:  # all was there, but for its name
            headers = self._objects.call("HEAD", bucket, key).headers
        return headers

    def _into(
        self, descriptor: int, start: int, length: int, md5: str = ""
    ) -> Callable[[Response], None]:
        """What writes an answer to its place in a file. Damaged where it has another length, or
        another MD5 than the one that is known.
        """
        moved = 0

        def sink(response: Response) -> None:
            nonlocal moved
            self._tally.moved(-moved)
            moved, view = 0, buffer()
            digest = hashlib.md5(usedforsecurity=False)
            if response.status != 206 and (start or response.status != 200):
                raise Damaged
            while count := response.read_into(view):
                if moved + count > length:
                    raise Damaged
                self._limiter.take(count)
                if md5:
                    digest.update(view[:count])
                _write(descriptor, view[:count], start + moved)
                moved += count
                self._tally.moved(count)
            if moved != length or (md5 and digest.hexdigest() != md5):
                raise Damaged

        return sink


def _write(descriptor: int, data: memoryview, at: int) -> None:
    while data:
        count = os.pwrite(descriptor, data, at)
        data, at = data[count:], at + count


def _finish(descriptor: int, part: str, path: str, item: Item, headers: dict[str, str]) -> None:
    """Give a complete file its mode, its time and its name."""
    mode = next((headers[name] for name in MODES if name in headers), "")
    if mode.isdigit() and len(mode) <= 6 and int(mode, 8) & 0o111:
        os.fchmod(descriptor, os.fstat(descriptor).st_mode | 0o111)
    if item.modified > 0:
        os.utime(descriptor, (item.modified, item.modified))
    try:
        os.replace(part, path)
    except IsADirectoryError:
        raise Failure(REFUSED, "obs-directory", path=path) from None


def _changed(refusal: Refusal, key: str) -> Failure:
    return Failure(REFUSED, "obs-replaced", key=key) if refusal.status == 412 else refusal


def _plain(etag: str) -> bool:
    """Whether an ETag is the MD5 of the content: those of multipart uploads are not."""
    return len(etag) == 32 and not etag.strip("0123456789abcdef")


def _prove(descriptor: int, item: Item) -> None:
    """Damaged unless the file is what its ETag says, as far as that can be told."""
    from danlu.faces.cli.obs.compare import same_content

    if same_content(descriptor, item.size, item.etag) is False:
        raise Damaged


def _boot() -> str:
    """This boot of the machine: what was written before the last one may not be on disk."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
