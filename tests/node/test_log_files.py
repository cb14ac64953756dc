"""The log as files: head, tail and marks, whatever a crash leaves of them."""

from __future__ import annotations

import io
import os
import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from danlu.node import log_files
from danlu.node.log_files import (
    ENTRY,
    ORIGIN,
    LogFiles,
    LogStream,
    LogWriter,
    Stretch,
    entry,
    last_mark,
    stretches,
)
from danlu.ports.engine import LogChunk, Mark


def chunks(root: Path, limit: int = 1 << 20, since: int = 0) -> list[LogChunk]:
    """Everything that is kept, read as a follower does."""
    files, found = LogFiles(str(root)), []
    while (chunk := files.read(since, limit)).data:
        found.append(chunk)
        since = chunk.next
    assert chunk.ended
    return found


def size(root: Path) -> int:
    """What the log takes on disk, its marks included."""
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


def lines(count: int, start: int = 0) -> bytes:
    return b"".join(b"line %08d\n" % number for number in range(start, start + count))


def test_within_its_limit_a_log_is_one_file(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), 1 << 20)
    writer.write(lines(1000))
    assert (tmp_path / "log").read_bytes() == lines(1000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.index"]
    assert b"".join(chunk.data for chunk in chunks(tmp_path)) == lines(1000)


@pytest.mark.parametrize("piece", [1_000, 65_536, 300_000])
def test_beyond_its_limit_head_and_tail_are_kept_and_the_gap_is_told(
    tmp_path: Path, piece: int
) -> None:
    """(fault 45)"""
    limit, whole = 1 << 20, lines(400_000)
    writer = LogWriter(str(tmp_path), limit)
    largest = 0
    for at in range(0, len(whole), piece):
        assert writer.write(whole[at : at + piece]) == 0
        largest = max(largest, size(tmp_path))
    writer.sync()
    assert largest < 1.05 * limit
    assert size(tmp_path) > 0.9 * limit
    found = chunks(tmp_path)
    assert all(whole[chunk.offset : chunk.next] == chunk.data for chunk in found)
    assert found[-1].next == len(whole)
    (gap,) = [chunk for chunk in found if chunk.dropped]
    told = gap.dropped
    assert told is not None
    head = found[found.index(gap) - 1].next
    assert told.size == gap.offset - head
    assert told.lines == whole.count(b"\n", head, gap.offset)
    assert told.line_ends_before == whole.count(b"\n", 0, gap.offset)
    assert whole[head - 1 : head] == whole[gap.offset - 1 : gap.offset] == b"\n"


def test_who_comes_late_is_told_what_was_dropped_meanwhile(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), 1 << 20)
    writer.write(lines(70_000))
    place = chunks(tmp_path)[-1].next
    writer.write(lines(400_000, 70_000))
    chunk = LogFiles(str(tmp_path)).read(place, 100)
    assert chunk.dropped is not None
    assert (chunk.dropped.size, chunk.dropped.lines) == (chunk.offset - place, None)
    assert lines(470_000)[chunk.offset : chunk.next] == chunk.data


def test_a_reader_beside_a_writer_never_gets_a_wrong_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest stretch is removed between the look at the directory and the reading."""
    whole = lines(300_000)
    writer = LogWriter(str(tmp_path), 1 << 20)
    writer.write(whole[:2_000_000])
    more = [whole[at : at + 100_000] for at in range(2_000_000, len(whole), 100_000)]
    real = log_files.stretches

    def raced(directory: str) -> list[Stretch]:
        found = real(directory)
        if more:
            writer.write(more.pop(0))
        return found

    monkeypatch.setattr(log_files, "stretches", raced)
    since = 0
    while (chunk := LogFiles(str(tmp_path)).read(since, 50_000)).data:
        assert whole[chunk.offset : chunk.next] == chunk.data
        since = chunk.next
    assert since == len(whole)


def test_lines_longer_than_a_stretch(tmp_path: Path) -> None:
    whole = b"".join(bytes([97 + number % 26]) * 200_000 + b"\n" for number in range(40))
    writer = LogWriter(str(tmp_path), 1 << 20)
    for at in range(0, len(whole), 65_536):
        writer.write(whole[at : at + 65_536])
    assert size(tmp_path) < 1.1 * (1 << 20)
    found = chunks(tmp_path)
    assert all(whole[chunk.offset : chunk.next] == chunk.data for chunk in found)
    assert found[-1].next == len(whole)


STEPS = st.lists(
    st.one_of(
        st.integers(1, 40_000),
        st.sampled_from(["reopen", "torn mark", "no marks", "false mark", "stale mark"]),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(STEPS, st.integers(0, 1 << 30))
def test_whatever_is_left_by_a_crash_offsets_and_lines_are_true(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int | str], seed: int
) -> None:
    root = tmp_path_factory.mktemp("log")
    dice = random.Random(seed)
    writer, whole = LogWriter(str(root), 100_000), b""
    for step in steps:
        if isinstance(step, int):
            data = dice.choice((b"a\n", b"xyz", b"\n", b"long " * 30 + b"\n")) * (step // 50 + 1)
            writer.write(data)
            whole += data
            continue
        writer.close()
        if step == "no marks":
            (root / "log.index").unlink(missing_ok=True)
        else:
            torn = entry(5, 5)[: dice.randrange(1, ENTRY.size)]
            damage = {"torn mark": torn, "false mark": bytes(ENTRY.size)}
            with (root / "log.index").open("ab") as index:
                index.write(damage.get(step, entry(1 << 40, 7)))
        writer = LogWriter(str(root), 100_000)
    found = chunks(root, 7_000)
    for chunk in found:
        assert whole[chunk.offset : chunk.next] == chunk.data
        if chunk.dropped:
            assert chunk.dropped.line_ends_before == whole.count(b"\n", 0, chunk.offset)
    assert (found[-1].next if found else 0) == len(whole)
    total = whole.count(b"\n")
    for line in {1, 2, 3, total // 2 + 1, total, total + 1, total + 5}:
        mark = LogFiles(str(root)).mark(line)
        assert mark == ORIGIN or (
            mark.lines == whole.count(b"\n", 0, mark.offset) and mark.lines < line - 1
        )


def test_marks_are_close_to_every_line(tmp_path: Path) -> None:
    whole = lines(200_000)
    writer = LogWriter(str(tmp_path), 0)
    for at in range(0, len(whole), 10_000):
        writer.write(whole[at : at + 10_000])
    for line in range(1, 200_001, 1_234):
        mark = LogFiles(str(tmp_path)).mark(line)
        assert mark.lines == whole.count(b"\n", 0, mark.offset)
        assert whole.count(b"\n", mark.offset, mark.offset + 2 * log_files.MARK_EVERY) >= (
            line - 1 - mark.lines
        )


def test_a_log_that_lost_its_end_in_a_power_cut_has_no_marks_of_it(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), 0)
    for _ in range(20):
        writer.write(lines(5_000))
    writer.close()
    os.truncate(tmp_path / "log", 300_000)
    kept = (tmp_path / "log").read_bytes()
    mark = LogFiles(str(tmp_path)).mark(1 << 40)
    assert 0 < mark.offset <= 300_000
    assert mark.lines == kept.count(b"\n", 0, mark.offset)
    LogWriter(str(tmp_path), 0).write(b"x" * 1_000_000)
    assert LogFiles(str(tmp_path)).mark(1 << 40).lines == kept.count(b"\n")


def test_a_full_disk_costs_bytes_and_neither_offsets_nor_lines(tmp_path: Path) -> None:
    """(fault 20)"""
    writer = LogWriter(str(tmp_path), 0)
    writer.write(b"one\n")
    kept = os.dup(writer._descriptor)
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, writer._descriptor)
    assert writer.write(b"two\n") == 4
    os.dup2(kept, writer._descriptor)
    assert writer.write(b"three\n") == 0
    assert (tmp_path / "log").read_bytes() == b"one\nthree\n"
    assert writer._lines == 2
    for descriptor in (kept, full):
        os.close(descriptor)


def test_a_directory_that_is_gone_is_an_empty_log(tmp_path: Path) -> None:
    root = tmp_path / "task"
    root.mkdir()
    LogWriter(str(root), 100).write(lines(100))
    shutil.rmtree(root)
    assert LogFiles(str(root)).read(5, 10) == LogChunk(5, b"", ended=True)
    assert LogFiles(str(root)).mark(9) == ORIGIN
    assert stretches(str(root)) == []
    assert last_mark(str(root), 100) == Mark(0, 0)


def test_the_exported_log_has_one_line_for_what_was_dropped(tmp_path: Path) -> None:
    whole = lines(400_000)
    LogWriter(str(tmp_path), 1 << 20).write(whole)
    kept = LogFiles(str(tmp_path))
    exported = io.BufferedReader(LogStream(kept)).read()
    (head, gap) = chunks(tmp_path)[0].data, chunks(tmp_path)[1]
    assert gap.dropped is not None
    assert exported.startswith(head + gap.dropped.line())
    assert exported.endswith(lines(1, 399_999))
    assert len(exported) == len(head) + len(gap.dropped.line()) + kept.end() - gap.offset
    assert str(gap.dropped.size).encode() in gap.dropped.line()
