"""The tar format: what we write others read, what others write we read."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from danlu.model import tar
from danlu.model.tar import BLOCK, BadArchive, Kind

paths = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1
).filter(lambda path: path.strip("/"))


@given(path=paths, size=st.integers(0, 8**11 - 1), executable=st.booleans())
def test_tarfile_reads_what_we_write(path: str, size: int, *, executable: bool) -> None:
    header = tar.encode(path, size, executable=executable)
    info = tarfile.TarInfo.fromtarfile(_opened(header))
    assert info.name == path.rstrip("/")
    assert info.size == size
    assert info.isreg()
    assert info.mode == (0o755 if executable else 0o644)
    assert (info.mtime, info.uid, info.gid, info.uname, info.gname) == (0, 0, 0, "", "")


def _opened(header: bytes) -> tarfile.TarFile:
    opened = tarfile.TarFile(fileobj=io.BytesIO(tar.END), mode="r", encoding="utf-8")
    opened.fileobj = io.BytesIO(header + tar.END)
    opened.offset = 0
    return opened


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (tarfile.REGTYPE, Kind.FILE),
        (tarfile.AREGTYPE, Kind.FILE),
        (tarfile.CONTTYPE, Kind.FILE),
        (tarfile.DIRTYPE, Kind.DIRECTORY),
        (tarfile.SYMTYPE, Kind.LINK),
        (tarfile.LNKTYPE, Kind.SAME),
        (tarfile.FIFOTYPE, Kind.OTHER),
        (tarfile.CHRTYPE, Kind.OTHER),
        (tarfile.BLKTYPE, Kind.OTHER),
        (b"S", Kind.OTHER),
        (b"Z", Kind.OTHER),
    ],
)
def test_kinds(kind: bytes, expected: Kind) -> None:
    info = tarfile.TarInfo("a/b")
    info.type = kind
    info.linkname = "other"
    info.mode = 0o100
    decoded = tar.decode(info.tobuf(tarfile.USTAR_FORMAT)[:BLOCK])
    assert decoded is not None
    assert decoded.kind is expected
    assert (decoded.link, decoded.executable) == (b"other", True)
    assert decoded.path.rstrip(b"/") == b"a/b"


def test_a_long_ustar_path_is_split_by_a_prefix() -> None:
    info = tarfile.TarInfo("d" * 120 + "/" + "f" * 90)
    decoded = tar.decode(info.tobuf(tarfile.USTAR_FORMAT))
    assert decoded is not None
    assert decoded.path == b"d" * 120 + b"/" + b"f" * 90


def test_gnu_uses_the_prefix_for_something_else() -> None:
    info = tarfile.TarInfo("a")
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    block[345:350] = b"times"
    _fix_sum(block)
    decoded = tar.decode(bytes(block))
    assert decoded is not None
    assert decoded.path == b"a"


def test_a_large_size_in_gnu_binary_form() -> None:
    info = tarfile.TarInfo("a")
    info.size = 1 << 40
    decoded = tar.decode(info.tobuf(tarfile.GNU_FORMAT))
    assert decoded is not None
    assert decoded.size == 1 << 40


def _fix_sum(block: bytearray) -> None:
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)


@pytest.mark.parametrize(
    ("at", "with_"),
    [
        (0, b"B"),  # the checksum no longer fits
        (124, b"9"),  # not octal
        (124, b"-0000000001"),
        (124, b"\x80\x7f" + b"\xff" * 10),  # beyond 62 bits
        (124, b"\xff" * 12),  # negative
        (148, b"zzzzzz"),
    ],
)
def test_a_malformed_header_is_refused(at: int, with_: bytes) -> None:
    block = bytearray(tarfile.TarInfo("a").tobuf())
    block[at : at + len(with_)] = with_
    if at == 124:
        _fix_sum(block)
    with pytest.raises(BadArchive):
        tar.decode(bytes(block))


@given(block=st.binary(min_size=BLOCK, max_size=BLOCK))
def test_any_block_is_read_or_refused(block: bytes) -> None:
    fixed = bytearray(block)
    _fix_sum(fixed)
    for data in (block, bytes(fixed)):
        try:
            decoded = tar.decode(data)
        except BadArchive:
            continue
        assert decoded is None or decoded.size >= 0


def test_a_cut_header_is_refused() -> None:
    with pytest.raises(BadArchive):
        tar.decode(tarfile.TarInfo("a").tobuf()[:-1])


records = st.dictionaries(
    st.binary(min_size=1, max_size=20).filter(lambda name: b"=" not in name),
    st.binary(max_size=200),
    max_size=5,
)


@given(said=records)
def test_pax_records_round_trip(said: dict[bytes, bytes]) -> None:
    data = b"".join(tar._record(name, value) for name, value in said.items())
    assert tar.decode_pax(data) == said


@pytest.mark.parametrize(
    "data",
    [
        b"x",
        b"10 path=a",
        b"12 path=ab\n",
        b"9 path=ab\n",
        b"99999999999999999999 a=b\n",
        b"-8 a=b\n",
        b"6 ab\n\n",
        b" 6 a=b\n",
        b"0 a=b\n",
        b"\xb2 a=b\n",
    ],
)
def test_malformed_pax_is_refused(data: bytes) -> None:
    with pytest.raises(BadArchive):
        tar.decode_pax(data)


@given(data=st.binary(max_size=60))
def test_any_pax_is_read_or_refused(data: bytes) -> None:
    try:
        tar.decode_pax(data)
    except BadArchive:
        return
