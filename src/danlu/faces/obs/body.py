"""A body as a file for the thread that stores it: checked against all that its headers promise.

What is wrong with it is raised by `read`, at its end at the latest, so that a store which reads it
to the end never keeps anything else than what the client meant.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import io
from collections.abc import Iterator
from dataclasses import dataclass

from danlu.faces.obs import checksums
from danlu.faces.obs.admission import Payload
from danlu.faces.obs.framing import Unframed
from danlu.faces.obs.request import Request
from danlu.model.errors import Denied, Invalid, Refused

MOST_BYTES = 5 << 30
"""One put or part, as S3 and OBS limit it."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What a request says of its body. `length` None = it comes in chunks of unknown number."""

    length: int | None
    payload: Payload
    md5: bytes = b""
    checksums: tuple[tuple[str, bytes], ...] = ()
    trailing: str = ""
    """The algorithm whose checksum follows the body."""


def promise(request: Request, *, about_object: bool = False) -> Promise:
    """What the headers promise; Invalid where they cannot be meant. `about_object`: the checksums
    are not the body's.
    """
    payload = request.payload
    length = request.length
    if payload.framed:
        text = request.own("decoded-content-length")
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise Invalid("obs-length", http=411, header="x-amz-decoded-content-length")
        length = int(text)
    if length is not None and length > MOST_BYTES:
        raise Invalid("body-too-large", size=length, limit=MOST_BYTES)
    found = () if about_object else _checksums(request)
    return Promise(length, payload, _md5(request), found, _trailing(request))


def _md5(request: Request) -> bytes:
    text = request.headers.get("content-md5")
    if text is None:
        return b""
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        found = b""
    if len(found) != 16:
        raise Invalid("obs-digest", header="Content-MD5", value=text)
    return found


def _checksums(request: Request) -> tuple[tuple[str, bytes], ...]:
    found = []
    for algorithm in checksums.ALGORITHMS:
        text = request.own(f"checksum-{algorithm}")
        if text:
            digest = checksums.read(algorithm, text)
            if digest is None:
                raise Invalid("obs-digest", header=f"x-amz-checksum-{algorithm}", value=text)
            found.append((algorithm, digest))
    return tuple(found)


def _trailing(request: Request) -> str:
    names = request.own("trailer").lower().split(",")
    for name in (text.strip() for text in names if text.strip()):
        algorithm = name.removeprefix("x-amz-checksum-")
        if algorithm not in checksums.ALGORITHMS or not request.payload.trailer:
            raise Refused("obs-not-implemented", http=501, what=f"x-amz-trailer: {name}")
        return algorithm
    return ""


class Body(io.RawIOBase):
    """The content of a request, for one reader."""

    def __init__(self, pieces: Iterator[bytes], promised: Promise) -> None:
        self._promised = promised
        self._unframed = Unframed(pieces, promised.payload) if promised.payload.framed else None
        self._content = iter(self._unframed) if self._unframed else pieces
        self._buffer = bytearray()
        self._ended = False
        self._sha256 = hashlib.sha256() if promised.payload.digest else None
        self._md5 = hashlib.md5(usedforsecurity=False) if promised.md5 else None
        names = [name for name, _ in promised.checksums]
        if promised.trailing and promised.trailing not in names:
            names.append(promised.trailing)
        self._checksums = {name: checksums.ALGORITHMS[name]() for name in names}
        self.size = 0
        """Bytes of content so far."""

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1, /) -> bytes:
        """`size` bytes, fewer only at the end; Invalid or Denied where they are not as promised."""
        while not self._ended and (size < 0 or len(self._buffer) < size):
            piece = next(self._content, b"")
            if piece:
                self._note(piece)
                self._buffer += piece
            else:
                self._check()
                self._ended = True
        taken = bytes(self._buffer if size < 0 else self._buffer[:size])
        del self._buffer[: len(taken)]
        return taken

    def drain(self) -> None:
        """Read to the end: what is wrong with the body is raised even if nobody wants it."""
        while self.read(1 << 16):
            pass

    def found(self) -> dict[str, str]:
        """The checksums that were checked, as headers have them; to be called at the end."""
        return {name: checksums.shown(name, one.digest()) for name, one in self._checksums.items()}

    def _note(self, piece: bytes) -> None:
        self.size += len(piece)
        length = self._promised.length
        if self.size > (MOST_BYTES if length is None else length):
            raise Invalid("obs-incomplete", detail=f"it is longer than the {length} bytes promised")
        for digest in (self._sha256, self._md5, *self._checksums.values()):
            if digest is not None:
                digest.update(piece)

    def _check(self) -> None:
        promised = self._promised
        if promised.length is not None and self.size != promised.length:
            detail = f"{self.size} of {promised.length} bytes arrived"
            raise Invalid("obs-incomplete", detail=detail)
        if self._sha256 is not None and not hmac.compare_digest(
            self._sha256.hexdigest(), promised.payload.digest
        ):
            found = self._sha256.hexdigest()
            raise Denied("obs-payload", http=400, signed=promised.payload.digest, found=found)
        if self._md5 is not None and self._md5.digest() != promised.md5:
            self._refuse("Content-MD5", promised.md5, self._md5.digest())
        expected = dict(promised.checksums)
        if promised.trailing:
            expected[promised.trailing] = self._trailer(promised.trailing)
        for name, digest in expected.items():
            if self._checksums[name].digest() != digest:
                self._refuse(f"checksum-{name}", digest, self._checksums[name].digest())

    def _trailer(self, algorithm: str) -> bytes:
        text = (
            self._unframed.trailer.get(f"x-amz-checksum-{algorithm}", "") if self._unframed else ""
        )
        digest = checksums.read(algorithm, text)
        if digest is None:
            raise Invalid("obs-digest", header=f"x-amz-checksum-{algorithm}", value=text)
        return digest

    def _refuse(self, name: str, promised: bytes, found: bytes) -> None:
        shown = [base64.b64encode(digest).decode() for digest in (promised, found)]
        raise Invalid("obs-checksum", name=name, promised=shown[0], found=shown[1])
