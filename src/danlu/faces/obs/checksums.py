"""The checksums that clients send beside a body: S3's five, and OBS' CRC-64.

CRC-32 is zlib's, SHA-1 and SHA-256 are hashlib's. CRC-32C and CRC-64/NVME are awscrt's where that
is installed (`danlu[checksums]`). What is left is by table, two bytes a step: some 10 MB/s, in the
thread that stores the body.
"""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import sys
import zlib
from array import array
from collections.abc import Callable, Iterable
from typing import Protocol

CRC32 = 0xEDB88320
CRC32C = 0x82F63B78
CRC64_NVME = 0x9A6C9329AC4BC9B5
CRC64_ECMA = 0xC96C5795D7870F42


class Checksum(Protocol):
    """Takes bytes, gives a digest."""

    def update(self, data: bytes, /) -> None:
        """Take more bytes."""

    def digest(self) -> bytes:
        """The digest of all bytes so far, the most significant byte first."""


class _Compiled:
    """A CRC by a function of compiled code, which takes bytes and the CRC of what was before."""

    def __init__(self, function: Callable[[bytes, int], int], size: int) -> None:
        self._function = function
        self._size = size
        self._crc = 0

    def update(self, data: bytes, /) -> None:
        self._crc = self._function(data, self._crc)

    def digest(self) -> bytes:
        return self._crc.to_bytes(self._size, "big")


class Crc:
    """A reflected CRC that begins with ones and is inverted at its end."""

    def __init__(self, polynomial: int, size: int) -> None:
        self._table = _table(polynomial)
        self._size = size
        self._ones = (1 << (8 * size)) - 1
        self._crc = self._ones
        self._odd = b""

    def update(self, data: bytes, /) -> None:
        """Take more bytes; an odd one at the end waits for its neighbour."""
        data = self._odd + data
        even = len(data) & ~1
        self._odd = data[even:]
        words = array("H", data[:even])
        if sys.byteorder == "big":
            words.byteswap()
        crc, table = self._crc, self._table
        for word in words:
            crc = table[(crc ^ word) & 0xFFFF] ^ (crc >> 16)
        self._crc = crc

    def digest(self) -> bytes:
        """The digest of all bytes so far."""
        crc = self._crc
        for byte in self._odd:
            # One byte is a step of the same table: a word whose other half is cancelled out.
            crc = _step(self._table, crc, byte)
        return (crc ^ self._ones).to_bytes(self._size, "big")


def _step(table: array[int], crc: int, byte: int) -> int:
    """One byte. `table[x << 8]` is that of the byte `x` alone."""
    return table[((crc ^ byte) & 0xFF) << 8] ^ (crc >> 8)


@functools.cache
def _table(polynomial: int) -> array[int]:
    """What 16 steps do to each word."""
    table = array("Q", bytes(8 << 16))
    for word in range(1 << 16):
        crc = word
        for _ in range(16):
            crc = (crc >> 1) ^ (polynomial if crc & 1 else 0)
        table[word] = crc
    return table


def _fast(name: str, polynomial: int, size: int) -> Checksum:
    try:
        from awscrt import checksums as compiled
    except ImportError:
        return Crc(polynomial, size)
    return _Compiled(getattr(compiled, name), size)


ALGORITHMS: dict[str, Callable[[], Checksum]] = {
    "crc32": lambda: _Compiled(zlib.crc32, 4),
    "crc32c": lambda: _fast("crc32c", CRC32C, 4),
    "crc64nvme": lambda: _fast("crc64nvme", CRC64_NVME, 8),
    "sha1": lambda: hashlib.sha1(usedforsecurity=False),
    "sha256": hashlib.sha256,
    "crc64ecma": lambda: Crc(CRC64_ECMA, 8),
}
"""By the end of the header's name: `x-amz-checksum-crc32`."""
SIZES = {"crc32": 4, "crc32c": 4, "crc64nvme": 8, "sha1": 20, "sha256": 32, "crc64ecma": 8}


POLYNOMIALS = {"crc32": CRC32, "crc32c": CRC32C, "crc64nvme": CRC64_NVME}
"""Of those whose value for a whole follows from those of its parts."""


def joined(algorithm: str, parts: Iterable[tuple[bytes, int]]) -> bytes:
    """The CRC of a whole, from the CRC and the length of each of its parts in turn."""
    polynomial, size = POLYNOMIALS[algorithm], SIZES[algorithm]
    whole = 0
    for digest, length in parts:
        behind = _times(polynomial, size, _power(polynomial, size, 8 * length), whole)
        whole = behind ^ int.from_bytes(digest, "big")
    return whole.to_bytes(size, "big")


def _times(polynomial: int, size: int, a: int, b: int) -> int:
    """The product of two polynomials whose highest bit is that of x^0, modulo a third one."""
    top, product = 1 << (8 * size - 1), 0
    while a:
        if a & top:
            product ^= b
        a = (a << 1) & (2 * top - 1)
        b = (b >> 1) ^ (polynomial if b & 1 else 0)
    return product


def _power(polynomial: int, size: int, exponent: int) -> int:
    """The indeterminate to some power, modulo the polynomial."""
    found, square = 1 << (8 * size - 1), 1 << (8 * size - 2)
    while exponent:
        if exponent & 1:
            found = _times(polynomial, size, square, found)
        square = _times(polynomial, size, square, square)
        exponent >>= 1
    return found


def read(algorithm: str, text: str) -> bytes | None:
    """A digest as it stands in a header; None where it cannot be one."""
    if algorithm == "crc64ecma" and text.isascii() and text.isdigit() and len(text) <= 20:
        number = int(text)  # OBS writes it as a number
        return number.to_bytes(8, "big") if number < 1 << 64 else None
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return found if len(found) == SIZES[algorithm] else None


def shown(algorithm: str, digest: bytes) -> str:
    """A digest as it stands in a header."""
    if algorithm == "crc64ecma":
        return str(int.from_bytes(digest, "big"))
    return base64.b64encode(digest).decode()
