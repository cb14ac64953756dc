"""Where a log ends, and its lines, without reading it twice; and what is found in it."""

from __future__ import annotations

import bisect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from danlu.flow import lines, search
from danlu.flow.lines import Index, Page, Place
from danlu.flow.search import Search
from danlu.ports.engine import Dropped, LogChunk, Mark


class Log:
    """A log that grows; counts what is read of it. Bytes `gap` of it were dropped."""

    def __init__(
        self, data: bytes = b"", most: int = 1 << 20, gap: tuple[int, int] = (0, 0)
    ) -> None:
        self.data = data
        self.most = most
        self.gap = gap
        self.read_bytes = 0

    def read(self, offset: int, limit: int) -> LogChunk:
        begin, end = self.gap
        start, dropped, stop = offset, None, len(self.data)
        if begin <= offset < end:
            count = self.data.count(b"\n", offset, end)
            start, dropped = end, Dropped(end - offset, count, self.data.count(b"\n", 0, end))
        elif offset < begin:
            stop = begin
        data = self.data[start : min(stop, start + min(limit, self.most))]
        self.read_bytes += len(data)
        if not data:
            return LogChunk(offset, b"", ended=False)
        return LogChunk(start, data, ended=False, dropped=dropped)


class Marked(Log):
    """One whose engine knows a mark every 100 bytes."""

    def known(self, line: int, offset: int) -> Mark:
        places = range(0, min(offset, len(self.data)) + 1, 100)
        at = bisect.bisect_left(places, line - 1, key=lambda at: self.data.count(b"\n", 0, at))
        place = places[at - 1] if at else 0
        return Mark(place, self.data.count(b"\n", 0, place))


@pytest.mark.parametrize("size", [0, 1, 2, 65_535, 65_536, 65_537, 200_000, 3_000_001])
def test_the_end_is_found_by_probing(size: int) -> None:
    log = Log(b"x" * size)
    assert Index(log.read).end() == size
    assert log.read_bytes <= 64


def test_the_end_moves_with_the_log() -> None:
    log = Log()
    index = Index(log.read)
    for growth in (0, 1, 10, 100_000, 0, 5_000_000):
        log.data += b"x" * growth
        assert index.end() == len(log.data)


LOGS = st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\xff"]), max_size=60).map(b"".join)
COUNTS = st.integers(1, 20)


def split(text: bytes) -> list[bytes]:
    whole = text.split(b"\n")
    return whole if whole[-1] else whole[:-1]


@given(LOGS, COUNTS, COUNTS, st.integers(1, 7), st.integers(0, 12))
def test_pages_are_the_lines_of_the_log(
    text: bytes, first: int, count: int, most: int, bite: int
) -> None:
    whole = split(text)
    wanted = tuple(whole[first - 1 : first - 1 + count])
    with pytest.MonkeyPatch.context() as patch:
        if bite:
            patch.setattr(lines, "BITE", bite)
            patch.setattr(lines, "OWN_EVERY", 2 * bite)
        index = Index(Log(text, most).read)
        for _ in range(2):
            assert index.total() == len(whole)
            page = index.page(first, count)
            assert page.lines == wanted
            if wanted:
                assert (page.first, page.last) == (first, first + len(wanted) - 1)
        for number in range(1, len(whole) + 1):
            place = index.find(number)
            assert text.count(b"\n", 0, place.offset) == place.lines == number - 1
            assert index.ends_before(place.offset) == number - 1


@given(st.integers(0, 400), st.integers(0, 60), st.integers(1, 30), st.integers(1, 90))
def test_pages_around_a_gap(head: int, dropped: int, count: int, bite: int) -> None:
    """Read forwards and backwards, every line that is kept comes once, in order."""
    text = b"".join(b"%d:%b\n" % (number, b"x" * (number % 7)) for number in range(1, 101))
    begin = text.rfind(b"\n", 0, head) + 1
    end = text.find(b"\n", min(len(text) - 2, begin + dropped)) + 1 if dropped else begin
    log = Log(text, gap=(begin, end))
    kept = (text[:begin] + text[end:]).splitlines()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BITE", bite)
        patch.setattr(lines, "OWN_EVERY", bite)
        index = Index(log.read)
        assert index.total() == 100
        forwards: list[bytes] = []
        at = 0
        while (page := index.page(at + 1, count)).lines:
            forwards += page.lines
            assert page.last > at
            at = page.last
        assert [line for line in forwards if not line.startswith(b"[danlu")] == kept
        assert len(forwards) - len(kept) == (end > begin)
        backwards: list[bytes] = []
        last = 100
        while last:
            there = index.kept(last)
            first = max(1, there - count + 1 + (there < last))
            page = index.page(first, min(count, last), last)
            backwards += reversed(page.lines)
            last = page.first - 1 if page.first <= last else there
        shown = [line for line in reversed(backwards) if not line.startswith(b"[danlu")]
        assert shown == kept


def test_pages_cross_bites_and_long_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BITE", 16)
    text = b"".join(b"%d:%b\n" % (n, b"x" * (n % 40)) for n in range(200))
    whole = text.splitlines()
    index = Index(Log(text, 5).read)
    for first in range(1, 201, 7):
        assert index.page(first, 13).lines == tuple(whole[first - 1 : first + 12])


def test_what_was_counted_is_not_read_again() -> None:
    log = Log(b"line\n" * (1 << 20))
    index = Index(log.read)
    total = index.total()
    assert total == 1 << 20
    log.read_bytes = 0
    log.data += b"more\n" * 3
    assert index.total() == total + 3
    assert index.page(total + 1, 10).lines == (b"more",) * 3
    assert log.read_bytes < 6 * lines.OWN_EVERY


def test_what_the_engine_knows_is_not_counted() -> None:
    log = Marked(b"".join(b"line %07d\n" % number for number in range(100_000)))
    index = Index(log.read, log.known)
    for line in (1, 7, 50_000, 99_999, 100_000):
        log.read_bytes = 0
        assert index.page(line, 1) == Page(line, line, (b"line %07d" % (line - 1),))
        assert log.read_bytes <= 3 * lines.BITE
    assert index.find(100_002) == Place(len(log.data), 100_000)


def test_a_page_of_endless_lines_is_bounded() -> None:
    log = Log(b"x" * (20 << 20))
    page = Index(log.read).page(1, 5)
    assert sum(map(len, page.lines)) <= lines.MOST_BYTES + lines.BITE


def test_a_progress_bar_is_shown_as_it_ended() -> None:
    """(case 15)"""
    text = b"begin\r\n\r 0%\r50%\r100%\nend\rover\r\r\nplain\n10%\r20%"
    page = Index(Log(text).read).page(1, 9)
    assert page.lines == (b"begin", b"100%", b"over", b"plain", b"20%")


# ---------------------------------------------------------------- search


def found(log: Log, needle: bytes, *, numbered: bool = True) -> bytes:
    counted = Index(log.read).ends_before if numbered else None
    return b"".join(Search(log.read, needle, 0, len(log.data), counted).blocks())


TEXTS = st.lists(
    st.sampled_from([b"ab", b"a", b"b", b"\n", b"abc\n", b"\xff\n", b"\n\n"]), max_size=50
).map(b"".join)


@given(TEXTS, st.sampled_from([b"a", b"ab", b"bc", b"zz", b"\xff"]), st.integers(1, 30))
def test_a_search_finds_what_grep_finds(text: bytes, needle: bytes, block: int) -> None:
    offset, wanted, plain = 0, b"", b""
    for number, line in enumerate(split(text), 1):
        if needle in line:
            wanted += b"%d:%d:%b\n" % (number, offset, line)
            plain += line + b"\n"
        offset += len(line) + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "BLOCK", block)
        assert found(Log(text), needle) == wanted
        assert found(Log(text), needle, numbered=False) == plain


def test_a_search_goes_over_a_gap() -> None:
    text = b"".join(b"line %d\n" % number for number in range(1, 1001))
    begin, end = text.index(b"line 300\n"), text.index(b"line 701\n")
    said = found(Log(text, most=64, gap=(begin, end)), b"9").splitlines()
    numbers = [n for n in (*range(1, 300), *range(701, 1001)) if "9" in str(n)]
    assert [int(line.split(b":")[0]) for line in said] == numbers
    assert all(text[int(line.split(b":")[1]) :].startswith(line.split(b":", 2)[2]) for line in said)


def test_a_line_without_an_end_is_searched_in_bounded_memory() -> None:
    log = Log(b"x" * (5 << 20) + b"needle")
    pieces = found(log, b"needle", numbered=False)
    assert pieces.endswith(b"needle\n")
    assert len(pieces) <= search.LINE_BYTES + search.BLOCK
