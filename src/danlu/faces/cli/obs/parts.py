"""One large object in parts, which survive a kill: what the store already has of them is not moved
again, and what is of no use is removed from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from danlu.faces.cli.failure import FAULT, REFUSED, Failure
from danlu.faces.cli.http import Sized
from danlu.faces.cli.obs import journal, xml
from danlu.faces.cli.obs.journal import Journal
from danlu.faces.cli.obs.moving import Tally
from danlu.faces.cli.obs.objects import Objects, Refusal, Reply
from danlu.faces.cli.obs.place import Remote

MOST_PARTS = 9000
PARTS_AT_ONCE = 4


class Pieces(Protocol):
    """What becomes one object, stretch by stretch."""

    def headers(self) -> dict[str, str]:
        """What is said of the object beside its content."""

    def good(self, start: int, length: int, etag: str) -> bool:
        """Whether a part of an earlier run, of that length, is that stretch."""

    def send(self, parted: Parted, upload: str, number: int) -> str:
        """Have the store have a part; its digest."""

    def check(self) -> None:
        """Failure if the source is not as it was."""


class Parted:
    """One object of so many bytes, in parts of `part` or, where they would be too many, of more.
    `source` and `state` say of what: of another state, no part is of use any more.
    """

    def __init__(
        self,
        objects: Objects,
        tally: Tally,
        to: Remote,
        pieces: Pieces,
        source: str,
        state: list[int | str],
        size: int,
        part: int,
    ) -> None:
        self.objects = objects
        self.tally = tally
        self.to = to
        self._pieces = pieces
        self._source = source
        self._size = size
        self._part = max(part, -(-size // MOST_PARTS))
        self._count = -(-size // self._part)
        self._state = [*state, self._part]

    def run(self) -> None:
        """The object is there as a whole, or as it was before."""
        to = self.to
        kept = journal.of_upload(self.objects.url, to.bucket, to.key, self._source)
        try:
            if not kept.ours:
                raise Failure(REFUSED, "obs-busy", path=self._source, place=str(to))
            upload, done = self._begun(kept)
            if not upload:
                upload = self._begin(kept)
            digests = self._send(upload, done)
            self._pieces.check()
            self._complete(upload, digests)
            kept.done()
        finally:
            kept.close()

    def _begun(self, kept: Journal) -> tuple[str, dict[int, str]]:
        """The upload of an earlier run, and the digests of its parts; what is of no use is
        removed from the store.
        """
        upload = kept.said.get("upload")
        if kept.said.get("begun_at") and not upload:
            self._abort_unknown(float(kept.said["begun_at"]))
        if not isinstance(upload, str) or not upload:
            return "", {}
        if kept.said.get("state") != self._state:
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
            start, length = self.stretch(number)
            if size == length and self._pieces.good(start, length, etag):
                done[number] = etag
                self.tally.moved(length)
        return upload, done

    def _begin(self, kept: Journal) -> str:
        import time

        kept.note({"begun_at": time.time(), "state": self._state})
        headers = self._pieces.headers()
        reply = self.call("POST", [("uploads", "")], headers=headers)
        upload = xml.fields(xml.parse(reply.data)).get("UploadId", "")
        if not upload:
            raise Failure(FAULT, "obs-damaged", what=f"POST {self.to}?uploads")
        kept.note({"upload": upload, "state": self._state})
        return upload

    def _send(self, upload: str, done: dict[int, str]) -> list[str]:
        left = [number for number in range(1, self._count + 1) if number not in done]
        with ThreadPoolExecutor(PARTS_AT_ONCE, thread_name_prefix="part") as pool:
            running = {
                number: pool.submit(self._pieces.send, self, upload, number) for number in left
            }
            try:
                for number, future in running.items():
                    done[number] = future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [done[number] for number in range(1, self._count + 1)]

    def _complete(self, upload: str, digests: list[str]) -> None:
        parts = [
            f"<Part><PartNumber>{number}</PartNumber><ETag>&quot;{etag}&quot;</ETag></Part>"
            for number, etag in enumerate(digests, 1)
        ]
        body = xml.element("CompleteMultipartUpload", parts)
        wanted = _whole(digests)
        try:
            root = xml.parse(self.call("POST", [("uploadId", upload)], body=body).data)
        except Refusal as refusal:
            # It may have been carried out, and only the answer was lost.
            there = self.objects.head(self.to.bucket, self.to.key)
            if refusal.status == 404 and there is not None and there.etag.lower() == wanted != "":
                return
            raise
        if xml.tag(root) == "Error":
            said = xml.fields(root)
            raise Failure(
                FAULT, "obs-refused", what=f"POST {self.to}", detail=said.get("Code"), id="-"
            )
        etag = xml.fields(root).get("ETag", "").strip('"').lower()
        if wanted and "-" in etag and etag != wanted:
            raise Failure(FAULT, "obs-damaged", what=f"PUT {self.to} ({etag}, {wanted})")

    def stretch(self, number: int) -> tuple[int, int]:
        """Where a part begins, and how long it is."""
        start = (number - 1) * self._part
        return start, min(self._part, self._size - start)

    def _listed(self, upload: str) -> dict[int, tuple[int, str]]:
        """The parts that the store has: their sizes and digests."""
        found: dict[int, tuple[int, str]] = {}
        after = ""
        while True:
            query = [("uploadId", upload), ("max-parts", "1000")]
            if after:
                query.append(("part-number-marker", after))
            root = xml.parse(self.call("GET", query).data)
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
            self.call("DELETE", [("uploadId", upload)])
        except Refusal as refusal:
            if refusal.status != 404:
                raise

    def _abort_unknown(self, begun_at: float) -> None:
        """Remove uploads of this very key that were begun when a run of ours was killed that could
        not note down any more what the store called its own.
        """
        query = [("uploads", ""), ("prefix", self.to.key)]
        root = xml.parse(self.objects.call("GET", self.to.bucket, query=query).data)
        for one in (xml.fields(child) for child in root if xml.tag(child) == "Upload"):
            near = abs(xml.instant(one.get("Initiated", "")) - begun_at) < 60
            if one.get("Key") == self.to.key and near:
                self._abort(one.get("UploadId", ""))

    def call(
        self,
        method: str,
        query: list[tuple[str, str]],
        headers: dict[str, str] | None = None,
        body: bytes | Callable[[], bytes | Sized] = b"",
    ) -> Reply:
        """A request about the object that it becomes."""
        return self.objects.call(method, self.to.bucket, self.to.key, query, headers, body)


def _whole(digests: list[str]) -> str:
    """The ETag of the object that parts become; nothing where that does not follow from theirs."""
    try:
        joined = b"".join(bytes.fromhex(digest) for digest in digests)
    except ValueError:  # some stores have names of their own for parts that they copied
        return ""
    return f"{hashlib.md5(joined, usedforsecurity=False).hexdigest()}-{len(digests)}"
