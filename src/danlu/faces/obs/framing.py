"""`aws-chunked`: a body in pieces that say their length, signed or not, and a trailer. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

from danlu.faces.obs.admission import Payload
from danlu.model.errors import Invalid

LINE_BYTES = 1024
TRAILER_BYTES = 8192
TRAILER_SIGNATURE = "x-amz-trailer-signature"

_HEAD = re.compile(rb"([0-9a-fA-F]{1,10})(?:;chunk-signature=([0-9a-f]{64}))?", re.ASCII)


class Unframed:
    """The content of a framed body. `trailer` is filled when the content has ended."""

    def __init__(self, pieces: Iterator[bytes], payload: Payload) -> None:
        self._pieces = pieces
        self._payload = payload
        self._buffer = bytearray()
        self.trailer: dict[str, str] = {}

    def __iter__(self) -> Iterator[bytes]:
        """The content. A chunk that is not what was signed raises Denied before the end of it all:
        whoever stores the content must not keep it then.
        """
        while True:
            size, signature = self._head()
            digest = hashlib.sha256()
            for piece in self._take(size):
                digest.update(piece)
                yield piece
            if self._payload.signer is not None:
                self._payload.signer.check_chunk(digest.hexdigest(), signature)
            if not size:
                break
            if self._line() != b"":
                raise Invalid("obs-chunk", detail="a chunk is longer than it says")
        self._read_trailer()

    def _head(self) -> tuple[int, str]:
        match = _HEAD.fullmatch(self._line())
        if match is None:
            raise Invalid("obs-chunk", detail="a chunk does not begin with its length")
        signature = (match[2] or b"").decode()
        if self._payload.signer is not None and not signature:
            raise Invalid("obs-chunk", detail="a chunk has no signature")
        return int(match[1], 16), signature

    def _more(self) -> bool:
        piece = next(self._pieces, b"")
        self._buffer += piece
        return bool(piece)

    def _line(self) -> bytes:
        """What stands before the next line's end."""
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > LINE_BYTES:
                raise Invalid("obs-chunk", detail="the line before a chunk has no end")
            if not self._more():
                raise Invalid("obs-incomplete", detail="it ends inside of a chunk")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 2]
        return line

    def _take(self, size: int) -> Iterator[bytes]:
        while size:
            if not self._buffer and not self._more():
                raise Invalid("obs-incomplete", detail="it ends inside of a chunk")
            piece = bytes(self._buffer[:size])
            del self._buffer[: len(piece)]
            size -= len(piece)
            yield piece

    def _read_trailer(self) -> None:
        while len(self._buffer) <= TRAILER_BYTES and self._more():
            pass
        if len(self._buffer) > TRAILER_BYTES:
            raise Invalid("obs-chunk", detail="what follows the last chunk is too long")
        signed = b""
        for line in bytes(self._buffer).replace(b"\r\n", b"\n").split(b"\n"):
            if not line:
                continue
            name, colon, value = line.decode("latin-1").partition(":")
            name = name.strip().lower()
            if not colon or not name or name in self.trailer:
                raise Invalid("obs-chunk", detail="the trailer is not made of headers")
            self.trailer[name] = value.strip()
            if name != TRAILER_SIGNATURE:
                signed += f"{name}:{value.strip()}\n".encode("latin-1")
        signature = self.trailer.pop(TRAILER_SIGNATURE, "")
        if self._payload.trailer and self._payload.signer is not None:
            self._payload.signer.check_trailer(signed, signature)
        elif self.trailer and not self._payload.trailer:
            raise Invalid("obs-chunk", detail="a trailer was not announced")
