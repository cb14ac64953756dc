"""The tar format, as far as it carries plain files: headers to and from bytes. Pure.

Written here, and not taken from `tarfile`, because an archive comes from strangers: nothing is
read that the caller has not bounded, and nothing is understood that is not meant to be taken.
Formats: POSIX ustar and pax (IEEE 1003.1), and GNU's long names and binary numbers.
"""

from __future__ import annotations

from enum import Enum

BLOCK = 512
END = bytes(2 * BLOCK)
"""What an archive ends with."""
_MOST = 1 << 62


class Kind(Enum):
    """What a header announces."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    """A symbolic link; `Header.link` is relative to its own directory."""
    SAME = "hard link"
    """Another name of a file that came before; `Header.link` is that file's path."""
    PAX = "pax"
    PAX_GLOBAL = "pax-global"
    LONG_NAME = "long name"
    LONG_LINK = "long link"
    OTHER = "other"


_KINDS = {
    b"0": Kind.FILE,
    b"\0": Kind.FILE,
    b"7": Kind.FILE,
    b"1": Kind.SAME,
    b"2": Kind.LINK,
    b"5": Kind.DIRECTORY,
    b"x": Kind.PAX,
    b"X": Kind.PAX,
    b"g": Kind.PAX_GLOBAL,
    b"L": Kind.LONG_NAME,
    b"K": Kind.LONG_LINK,
}
OTHERS = {
    b"3": "a character device",
    b"4": "a block device",
    b"6": "a named pipe",
    b"S": "a sparse file",
}


class BadArchive(ValueError):
    """The archive breaks its format; the text says how, for a person."""


class Header:
    """One header block. `path` and `link` are bytes as they stand there; `other` says with
    Kind.OTHER what it is, in words.
    """

    # A plain class: the client's path imports this, and dataclasses brings inspect along.
    __slots__ = ("executable", "kind", "link", "other", "path", "size")

    def __init__(
        self,
        kind: Kind,
        path: bytes,
        *,
        size: int = 0,
        executable: bool = False,
        link: bytes = b"",
        other: str = "",
    ) -> None:
        self.kind = kind
        self.path = path
        self.size = size
        self.executable = executable
        self.link = link
        self.other = other


def decode(block: bytes) -> Header | None:
    """Read a header of 512 bytes; None for a block of zeros. Raises BadArchive."""
    if len(block) != BLOCK:
        raise BadArchive("it is cut off inside a header")
    if not any(block):
        return None
    _check_sum(block)
    kind = _KINDS.get(block[156:157], Kind.OTHER)
    path = _text(block[0:100])
    if block[257:263] == b"ustar\0" and (prefix := _text(block[345:500])):
        path = prefix + b"/" + path
    if kind is Kind.FILE and path.endswith(b"/") and block[156:157] == b"\0":
        kind = Kind.DIRECTORY  # as archives older than ustar write it
    return Header(
        kind=kind,
        path=path,
        size=_number(block[124:136]),
        executable=_number(block[100:108]) & 0o100 != 0,
        link=_text(block[157:257]),
        other=OTHERS.get(block[156:157], "of a kind that is not known"),
    )


def decode_pax(data: bytes) -> dict[bytes, bytes]:
    """Read the records of a pax header. Raises BadArchive."""
    found: dict[bytes, bytes] = {}
    at = 0
    while at < len(data):
        space = data.find(b" ", at, at + 12)
        digits = data[at:space] if space > at else b""
        end = at + int(digits) if digits.isdigit() else 0
        name, equals, value = data[space + 1 : end - 1].partition(b"=")
        if end > len(data) or end <= space or data[end - 1 : end] != b"\n" or not equals:
            raise BadArchive("a pax header is malformed")
        found[name] = value
        at = end
    return found


def encode(path: str, size: int, *, executable: bool) -> bytes:
    """The header of a plain file, preceded by a pax header where ustar cannot hold the path.

    Owner and time are left out, so that the same files give the same bytes.
    """
    name = path.encode()
    if len(name) <= 100 and name.isascii():
        return _block(name, size, b"0", executable=executable)
    record = _record(b"path", name)
    return (
        _block(b"pax", len(record), b"x", executable=False)
        + padded(record)
        + _block(name[:100], size, b"0", executable=executable)
    )


def padded(data: bytes) -> bytes:
    """`data`, filled up to whole blocks."""
    return data + bytes(padding(len(data)))


def padding(size: int) -> int:
    """How many bytes fill `size` up to whole blocks."""
    return -size % BLOCK


def _record(name: bytes, value: bytes) -> bytes:
    """A pax record: its own length in decimal, a space, name=value, a newline."""
    rest = len(name) + len(value) + 3
    size = rest + len(str(rest))
    size = rest + len(str(size))
    return b"%d %s=%s\n" % (size, name, value)


def _block(name: bytes, size: int, kind: bytes, *, executable: bool) -> bytes:
    mode = b"0000755\0" if executable else b"0000644\0"
    before = name.ljust(100, b"\0") + mode + b"0000000\0" * 2 + b"%011o\0" % size + b"%011o\0" % 0
    after = kind + bytes(100) + b"ustar\00000" + bytes(64) + b"0000000\0" * 2 + bytes(167)
    total = sum(before) + 8 * 32 + sum(after)
    return before + b"%06o\0 " % total + after


def _check_sum(block: bytes) -> None:
    """The sum of all bytes, its own field taken as spaces. Some programs added signed bytes."""
    said = _number(block[148:156])
    plain = sum(block) - sum(block[148:156]) + 8 * 32
    signed = plain - 256 * sum(byte > 127 for byte in block[:148] + block[156:])
    if said not in (plain, signed):
        raise BadArchive("a header's checksum is wrong")


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _number(field: bytes) -> int:
    """An octal number, or GNU's binary form for large ones."""
    if field[0] == 0x80:
        value = int.from_bytes(field[1:], "big")
    else:
        digits = field.strip(b" \0")
        if digits.strip(b"01234567"):
            raise BadArchive("a number in a header is malformed")
        value = int(digits or b"0", 8)
    if value > _MOST:
        raise BadArchive("a number in a header is too large")
    return value
