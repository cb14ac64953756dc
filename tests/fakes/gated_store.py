"""A folder store whose contents come and go only while a gate (a file) is open (is there)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from danlu.model.errors import Missing, Unavailable
from danlu.ports.objects import ObjectInfo
from danlu.stores.folder import FolderStore


class GatedStore(FolderStore):
    """`gate` is what has to be there; `broken`, while it is there, makes every put fail."""

    def __init__(self, root: str, gate: str, broken: str = "") -> None:
        super().__init__(root)
        self._gate = Path(gate)
        self._broken = Path(broken) if broken else None

    def local_file(self, bucket: str, key: str) -> str:
        raise Missing("no-such-object", bucket=bucket, key=key)

    def read(
        self, bucket: str, key: str, start: int = 0, length: int | None = None
    ) -> Iterator[bytes]:
        for chunk in super().read(bucket, key, start, length):
            # Small pieces, so that whoever reads looks up often.
            while not self._gate.exists():
                yield b""
                time.sleep(0.01)
            yield chunk

    def put(
        self,
        bucket: str,
        key: str,
        source: bytes | BinaryIO,
        *,
        metadata: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        if_absent: bool = False,
        if_etag: str | None = None,
    ) -> ObjectInfo:
        while not self._gate.exists():
            time.sleep(0.01)
        if self._broken is not None and self._broken.exists():
            raise Unavailable("store-failed", path=key, detail="broken by the test")
        return super().put(
            bucket,
            key,
            source,
            metadata=metadata,
            headers=headers,
            if_absent=if_absent,
            if_etag=if_etag,
        )
