"""Where a log ends, and its lines, without reading it twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from danlu.flow import lines
from danlu.flow.lines import Index, Page
from danlu.ports.engine import LogChunk


class Log:
    """A log that grows; counts what is read of it."""

    def __init__(self, data: bytes = b"", most: int = 1 << 20) -> None:
        self.data = data
        self.most = most
        self.read_bytes = 0

    def read(self, offset: int, limit: int) -> LogChunk:
        data = self.data[offset : offset + min(limit, self.most)]
        self.read_bytes += len(data)
        return LogChunk(offset, data, ended=False)


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


@given(LOGS, st.integers(1, 20), st.integers(1, 20), st.integers(1, 7))
def test_pages_are_the_lines_of_the_log(text: bytes, first: int, count: int, most: int) -> None:
    whole = text.split(b"\n")
    if not whole[-1]:
        whole.pop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", 8)
        index = Index(Log(text, most).read)
        assert index.total() == len(whole)
        assert index.page(first, count).lines == tuple(whole[first - 1 : first - 1 + count])
    index = Index(Log(text, most).read)
    assert index.page(first, count) == Page(first, tuple(whole[first - 1 : first - 1 + count]))


def test_pages_cross_blocks_and_long_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "BLOCK", 16)
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
    assert log.read_bytes < 6 * lines.BLOCK


def test_a_page_of_endless_lines_is_bounded() -> None:
    log = Log(b"x" * (20 << 20))
    page = Index(log.read).page(1, 5)
    assert sum(map(len, page.lines)) <= lines.MOST_BYTES + lines.BLOCK
