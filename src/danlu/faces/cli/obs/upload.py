"""Files to objects: small ones in one request, large ones in parts that survive a kill."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from danlu.faces.cli.failure import FAULT, REFUSED, Failure
from danlu.faces.cli.http import Send, Sized
from danlu.faces.cli.obs import journal, xml
from danlu.faces.cli.obs.journal import Journal
from danlu.faces.cli.obs.limiter import Limiter
from danlu.faces.cli.obs.moving import Tally
from danlu.faces.cli.obs.objects import Objects, Refusal, Reply
from danlu.faces.cli.obs.place import Remote

WHOLE_BYTES = 1 << 20
"""Up to here a file is read into memory."""
PART_BYTES = 32 << 20
MULTIPART_FROM = 2 * PART_BYTES
MOST_PARTS = 9000
PARTS_AT_ONCE = 4
LARGE_AT_ONCE = 2
CHUNK = 512 << 10
TRIES = 3
"""So often a stretch is sent that arrives as something else."""
MODE = "x-amz-meta-mode"

_buffers = threading.local()


def buffer() -> memoryview:
    """This thread's own, used again and again: fresh memory costs more than copying."""
    found: memoryview | None = getattr(_buffers, "view", None)
    if found is None:
        found = _buffers.view = memoryview(bytearray(CHUNK))
    return found


class Uploader:
    """Stores files under keys. Safe to use from several threads."""

    def __init__(self, objects: Objects, tally: Tally, limiter: Limiter) -> None:
        self.objects = objects
        self.tally = tally
        self._limiter = limiter
        self._large = threading.Semaphore(LARGE_AT_ONCE)

    def put(self, path: str, to: Remote) -> None:
        """Store one file. It is there as a whole, or as it was before."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = os.fstat(descriptor)
            if found.st_size >= MULTIPART_FROM:
                with self._large:
                    _Parts(self, descriptor, found, path, to).run()
            else:
                self._whole(descriptor, found, to)
        finally:
            os.close(descriptor)
        self.tally.file(found.st_size)

    def headers(self, found: os.stat_result) -> dict[str, str]:
        """What is said of a file beside its content."""
        return {MODE: "755"} if found.st_mode & 0o111 else {}

    def send(
        self,
        descriptor: int,
        start: int,
        length: int,
        request: Callable[[Callable[[], bytes | Sized]], Reply],
    ) -> str:
        """Send a stretch of a file, and compare the answer's ETag with its MD5: that one."""
        sent = hashlib.md5(usedforsecurity=False)
        moved = 0

        def body() -> Sized:
            nonlocal sent, moved
            self.tally.moved(-moved)
            sent, moved = hashlib.md5(usedforsecurity=False), 0
            return Sized(length, write)

        def write(send: Send) -> None:
            nonlocal moved
            view, at, end = buffer(), start, start + length
            while at < end:
                count = os.preadv(descriptor, [view[: min(CHUNK, end - at)]], at)
                if not count:
                    raise Failure(REFUSED, "obs-changed")
                self._limiter.take(count)
                sent.update(view[:count])
                send(view[:count])
                at += count
                moved += count
                self.tally.moved(count)

        for left in reversed(range(TRIES)):
            reply = request(body)
            try:
                _compare(reply, sent.hexdigest())
                break
            except Failure:
                if not left:
                    raise
        return sent.hexdigest()

    def _whole(self, descriptor: int, found: os.stat_result, to: Remote) -> None:
        headers = self.headers(found)

        def request(body: bytes | Callable[[], bytes | Sized]) -> Reply:
            return self.objects.call("PUT", to.bucket, to.key, headers=headers, body=body)

        if found.st_size > WHOLE_BYTES:
            self.send(descriptor, 0, found.st_size, request)
        else:
            data = os.pread(descriptor, found.st_size + 1, 0)
            if len(data) != found.st_size:
                raise Failure(REFUSED, "obs-changed")
            self._limiter.take(len(data))
            _compare(request(data), hashlib.md5(data, usedforsecurity=False).hexdigest())
            self.tally.moved(len(data))
        unchanged(descriptor, found)


def unchanged(descriptor: int, found: os.stat_result) -> None:
    """Failure if a file is not as it was: half of each version would be stored."""
    now = os.fstat(descriptor)
    if (now.st_size, now.st_mtime_ns) != (found.st_size, found.st_mtime_ns):
        raise Failure(REFUSED, "obs-changed")


def _compare(reply: Reply, md5: str) -> None:
    """Failure if the store has something else than was sent. Only a plain ETag tells."""
    etag = reply.etag.lower()
    plain = len(etag) == 32 and not etag.strip("0123456789abcdef")
    if plain and etag != md5 and "x-amz-server-side-encryption" not in reply.headers:
        raise Failure(FAULT, "obs-damaged", what=f"PUT ({etag}, {md5})")


class _Parts:
    """One large file. What the store already has of it from a run that was killed is not sent
    again.
    """

    def __init__(
        self, uploader: Uploader, descriptor: int, found: os.stat_result, path: str, to: Remote
    ) -> None:
        self._uploader = uploader
        self._objects = uploader.objects
        self._tally = uploader.tally
        self._descriptor = descriptor
        self._found = found
        self._path = path
        self._to = to
        self._part = max(PART_BYTES, -(-found.st_size // MOST_PARTS))
        self._count = -(-found.st_size // self._part)

    def run(self) -> None:
        kept = journal.of_upload(self._objects.url, self._to.bucket, self._to.key, self._path)
        try:
            if not kept.ours:
                raise Failure(REFUSED, "obs-busy", path=self._path, place=str(self._to))
            upload, done = self._begun(kept)
            if not upload:
                upload = self._begin(kept)
            digests = self._send(upload, done)
            unchanged(self._descriptor, self._found)
            self._complete(upload, digests)
            kept.done()
        finally:
            kept.close()

    def _state(self) -> list[int]:
        found = self._found
        return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, self._part]

    def _begun(self, kept: Journal) -> tuple[str, dict[int, str]]:
        """The upload of an earlier run, and the digests of its parts; what is of no use is
        removed from the store.
        """
        upload = kept.said.get("upload")
        if kept.said.get("begun_at") and not upload:
            self._abort_unknown(float(kept.said["begun_at"]))
        if not isinstance(upload, str) or not upload:
            return "", {}
        if kept.said.get("state") != self._state():
            self._abort(upload)
            return "", {}
        try:
            there = self._listed(upload)
        except Refusal as refusal:
            if refusal.status != 404:
                raise
            return "", {}
        done = {}
        for number, (size, etag) in there.items():
            start, length = self._stretch(number)
            if size == length and self._digest(start, length) == etag:
                done[number] = etag
                self._tally.moved(length)
        return upload, done

    def _begin(self, kept: Journal) -> str:
        import time

        kept.note({"begun_at": time.time(), "state": self._state()})
        headers = self._uploader.headers(self._found)
        reply = self._call("POST", [("uploads", "")], headers=headers)
        upload = xml.fields(xml.parse(reply.data)).get("UploadId", "")
        if not upload:
            raise Failure(FAULT, "obs-damaged", what=f"POST {self._to}?uploads")
        kept.note({"upload": upload, "state": self._state()})
        return upload

    def _send(self, upload: str, done: dict[int, str]) -> list[str]:
        left = [number for number in range(1, self._count + 1) if number not in done]
        with ThreadPoolExecutor(PARTS_AT_ONCE, thread_name_prefix="part") as pool:
            running = {number: pool.submit(self._send_one, upload, number) for number in left}
            try:
                for number, future in running.items():
                    done[number] = future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [done[number] for number in range(1, self._count + 1)]

    def _send_one(self, upload: str, number: int) -> str:
        query = [("partNumber", str(number)), ("uploadId", upload)]
        start, length = self._stretch(number)
        return self._uploader.send(
            self._descriptor, start, length, lambda body: self._call("PUT", query, body=body)
        )

    def _complete(self, upload: str, digests: list[str]) -> None:
        parts = [
            f"<Part><PartNumber>{number}</PartNumber><ETag>&quot;{etag}&quot;</ETag></Part>"
            for number, etag in enumerate(digests, 1)
        ]
        body = xml.element("CompleteMultipartUpload", parts)
        whole = hashlib.md5(bytes.fromhex("".join(digests)), usedforsecurity=False).hexdigest()
        wanted = f"{whole}-{len(digests)}"
        try:
            root = xml.parse(self._call("POST", [("uploadId", upload)], body=body).data)
        except Refusal as refusal:
            # It may have been carried out, and only the answer was lost.
            there = self._objects.head(self._to.bucket, self._to.key)
            if refusal.status == 404 and there is not None and there.etag.lower() == wanted:
                return
            raise
        if xml.tag(root) == "Error":
            said = xml.fields(root)
            raise Failure(
                FAULT, "obs-refused", what=f"POST {self._to}", detail=said.get("Code"), id="-"
            )
        etag = xml.fields(root).get("ETag", "").strip('"').lower()
        if "-" in etag and etag != wanted:
            raise Failure(FAULT, "obs-damaged", what=f"PUT {self._to} ({etag}, {wanted})")

    def _stretch(self, number: int) -> tuple[int, int]:
        start = (number - 1) * self._part
        return start, min(self._part, self._found.st_size - start)

    def _digest(self, start: int, length: int) -> str:
        digest, view, at = hashlib.md5(usedforsecurity=False), buffer(), start
        while at < start + length:
            count = os.preadv(self._descriptor, [view[: min(CHUNK, start + length - at)]], at)
            if not count:
                return ""
            digest.update(view[:count])
            at += count
        return digest.hexdigest()

    def _listed(self, upload: str) -> dict[int, tuple[int, str]]:
        """The parts that the store has: their sizes and digests."""
        found: dict[int, tuple[int, str]] = {}
        after = ""
        while True:
            query = [("uploadId", upload), ("max-parts", "1000")]
            if after:
                query.append(("part-number-marker", after))
            root = xml.parse(self._call("GET", query).data)
            for one in (xml.fields(child) for child in root if xml.tag(child) == "Part"):
                etag = one.get("ETag", "").strip('"').lower()
                found[int(one.get("PartNumber") or 0)] = (int(one.get("Size") or 0), etag)
            said = xml.fields(root)
            if said.get("IsTruncated") != "true" or said.get("NextPartNumberMarker", "") == after:
                return {
                    number: part for number, part in found.items() if 1 <= number <= self._count
                }
            after = said.get("NextPartNumberMarker", "")

    def _abort(self, upload: str) -> None:
        try:
            self._call("DELETE", [("uploadId", upload)])
        except Refusal as refusal:
            if refusal.status != 404:
                raise

    def _abort_unknown(self, begun_at: float) -> None:
        """Remove uploads of this very key that were begun when a run of ours was killed that could
        not note down any more what the store called its own.
        """
        query = [("uploads", ""), ("prefix", self._to.key)]
        root = xml.parse(self._objects.call("GET", self._to.bucket, query=query).data)
        for one in (xml.fields(child) for child in root if xml.tag(child) == "Upload"):
            near = abs(xml.instant(one.get("Initiated", "")) - begun_at) < 60
            if one.get("Key") == self._to.key and near:
                self._abort(one.get("UploadId", ""))

    def _call(
        self,
        method: str,
        query: list[tuple[str, str]],
        headers: dict[str, str] | None = None,
        body: bytes | Callable[[], bytes | Sized] = b"",
    ) -> Reply:
        return self._objects.call(method, self._to.bucket, self._to.key, query, headers, body)
