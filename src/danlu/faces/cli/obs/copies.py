"""Objects to objects, without their content coming by here: at once, or from where a store takes
no copy at once, in parts that survive a kill.
"""

from __future__ import annotations

import threading

from danlu.faces.cli.failure import FAULT, REFUSED, Failure
from danlu.faces.cli.obs import xml
from danlu.faces.cli.obs.moving import Tally
from danlu.faces.cli.obs.objects import Objects, Refusal, copied_from
from danlu.faces.cli.obs.parts import Parted
from danlu.faces.cli.obs.place import Remote
from danlu.faces.cli.obs.tree import Item

AT_ONCE_BYTES = 5 << 30
"""What S3 and OBS copy in one request at the most, object or part."""
PART_BYTES = 512 << 20
LARGE_AT_ONCE = 2
KEPT = (
    "content-type", "cache-control", "content-disposition", "content-encoding",
    "content-language", "expires",
)  # fmt: skip
"""Headers that stay with an object; a copy at once takes them along by itself."""
META = "x-amz-meta-"
NO_TAGS = frozenset({403, 404, 405, 501})
"""Said where an object has no tags, or a store none at all."""


class Copier:
    """Copies objects. Safe to use from several threads."""

    def __init__(self, objects: Objects, tally: Tally) -> None:
        self.objects = objects
        self.tally = tally
        self._large = threading.Semaphore(LARGE_AT_ONCE)

    def put(self, source: Remote, item: Item, to: Remote) -> None:
        """Copy one object. It is there as a whole, or as it was before."""
        if item.size > AT_ONCE_BYTES:
            with self._large:
                _ObjectPieces(self.objects, source, item).run(self.tally, to)
        else:
            self.objects.copy((source.bucket, source.key, item.etag), to.bucket, to.key)
            self.tally.moved(item.size)
        self.tally.file(item.size)


class _ObjectPieces:
    """One large object."""

    def __init__(self, objects: Objects, source: Remote, item: Item) -> None:
        self._objects = objects
        self._from = source
        self._item = item
        self._tags = b""

    def run(self, tally: Tally, to: Remote) -> None:
        """Copy it, and see what came of that."""
        item = self._item
        state: list[int | str] = [item.etag, item.size]
        parted = Parted(
            self._objects, tally, to, self, str(self._from), state, item.size, PART_BYTES
        )
        parted.run()
        if int(parted.call("HEAD", []).headers.get("content-length", "-1")) != item.size:
            raise Failure(FAULT, "obs-damaged", what=f"COPY {self._from}")
        if self._tags:
            parted.call("PUT", [("tagging", "")], body=self._tags)

    def headers(self) -> dict[str, str]:
        return {
            name: value
            for name, value in self._about().items()
            if name in KEPT or name.startswith(META)
        }

    def good(self, start: int, length: int, etag: str) -> bool:
        del start, length
        # The state has the source's etag, and each part was copied under the condition that it has.
        return bool(etag)

    def check(self) -> None:
        about = self._about()
        if self._item.etag and about.get("etag", "").strip('"') != self._item.etag:
            raise Failure(REFUSED, "obs-changed")
        self._tags = self._tagged()

    def send(self, parted: Parted, upload: str, number: int) -> str:
        start, length = parted.stretch(number)
        headers = {
            **copied_from(self._from.bucket, self._from.key, self._item.etag),
            "x-amz-copy-source-range": f"bytes={start}-{start + length - 1}",
        }
        query = [("partNumber", str(number)), ("uploadId", upload)]
        try:
            reply = parted.call("PUT", query, headers=headers)
        except Refusal as refusal:
            if refusal.status == 412:  # the source is another one now
                raise Failure(REFUSED, "obs-changed") from refusal
            raise
        root = xml.parse(reply.data)
        etag = xml.fields(root).get("ETag", "").strip('"').lower()
        if xml.tag(root) == "Error" or not etag:
            raise Failure(FAULT, "obs-damaged", what=f"COPY {self._from}")
        parted.tally.moved(length)
        return etag

    def _tagged(self) -> bytes:
        """The document of the source's tags, if it has any and the store knows what that is."""
        bucket, key = self._from.bucket, self._from.key
        try:
            data = self._objects.call("GET", bucket, key, [("tagging", "")]).data
        except Refusal as refusal:
            if refusal.status in NO_TAGS:
                return b""
            raise
        return data if any(xml.tag(one) == "Tag" for one in xml.parse(data).iter()) else b""

    def _about(self) -> dict[str, str]:
        return self._objects.call("HEAD", self._from.bucket, self._from.key).headers
