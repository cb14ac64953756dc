"""What a log becomes on its way to a pipe, a terminal, or a program."""

from __future__ import annotations

import contextlib
import json
import re
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from danlu.faces.cli.session import Session
from danlu.faces.cli.sinks import found_lines, sink_for
from danlu.faces.cli.terminal import Terminal
from tests.faces.cli.test_terminal import Stream

if TYPE_CHECKING:
    from danlu.faces.cli.sinks import Sink

PIECES = st.lists(
    st.one_of(
        st.binary(max_size=6),
        st.sampled_from(
            [b"\x1b[31m", b"\x1b[2J", b"\x1b]0;t\x07", "中文".encode(), b"\r50%", b"\n"]
        ),
    ),
    max_size=8,
)


def sent(
    pieces: list[bytes], *, tty: bool = False, as_json: bool = False, grep: str | None = None
) -> bytes:
    out = Stream(tty=tty)
    session = Session(Terminal(out, Stream(), environ={}), "en", data="", as_json=as_json)
    sink: Sink = (
        found_lines(session, "worker-0", 7, re.compile(grep.encode()))
        if grep
        else sink_for(session, "worker-0", 7)
    )
    for piece in pieces:
        sink.write(piece)
    sink.end()
    out.flush()
    return out.bytes.getvalue()


def skipped(lines: int | None = 3, *, tty: bool = False) -> bytes:
    """What becomes of a log with a gap in it."""
    out = Stream(tty=tty)
    sink = sink_for(Session(Terminal(out, Stream(), environ={}), "en", data=""), "worker-0", 0)
    sink.write(b"head\nunended")
    sink.skip(100, 88, lines)
    sink.write(b"tail\n")
    sink.end()
    out.flush()
    return out.bytes.getvalue()


def test_a_line_stands_in_place_of_what_was_dropped() -> None:
    head, unended, mark, tail, rest = skipped().split(b"\n")
    assert (head, unended, tail, rest) == (b"head", b"unended", b"tail", b"")
    assert b"88 bytes, 3 lines" in mark
    assert b"88 bytes were" in skipped(None)
    assert re.sub(rb"\x1b\[[0-9]*m", b"", skipped(tty=True)) == skipped()


def test_searched_lines_behind_a_gap_have_their_offsets() -> None:
    out = Stream()
    session = Session(Terminal(out, Stream(), environ={}), "en", data="", as_json=True)
    sink = found_lines(session, "worker-0", 0, re.compile(b"l"))
    sink.write(b"hello\nlast")
    sink.skip(1000, 990, None)
    sink.write(b"tail\n")
    sink.end()
    out.flush()
    found = [json.loads(line) for line in out.bytes.getvalue().splitlines()]
    assert [(one["offset"], one["text"]) for one in found] == [
        (0, "hello"),
        (6, "last"),
        (1000, "tail"),
    ]


@given(PIECES)
def test_a_pipe_gets_every_byte(pieces: list[bytes]) -> None:
    assert sent(pieces) == b"".join(pieces)


@given(PIECES)
def test_a_terminal_never_gets_what_could_move_it(pieces: list[bytes]) -> None:
    shown = sent(pieces, tty=True).decode()
    rest = re.sub(r"\x1b\[[0-9;:]*m", "", shown)
    assert all(c in "\t\r\n" or ord(c) >= 32 for c in rest)
    assert not re.search(r"[\x7f-\x9f]", rest)


@given(PIECES, st.integers(1, 5))
def test_a_terminal_shows_the_same_however_the_log_is_cut(pieces: list[bytes], step: int) -> None:
    whole = b"".join(pieces)
    cut = [whole[i : i + step] for i in range(0, len(whole), step)]
    assert sent(cut, tty=True) == sent([whole], tty=True)


def test_a_terminal_keeps_colours_progress_and_chinese() -> None:
    log = "\x1b[1;31mloss\x1b[0m\r 50%\r100%\n\t训练完成\n".encode()
    assert sent([log], tty=True) == log


def test_a_terminal_shows_controls_as_text() -> None:
    said = sent([b"\x1b[2J\x1b]0;evil\x07 \x08 \x9b1m\xff end"], tty=True).decode()
    assert said == "\\x1b[2J\\x1b]0;evil\\x07 \\x08 \ufffd1m\ufffd end\n"


@given(PIECES)
def test_objects_carry_offsets_that_join_and_whole_characters(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    lines = [json.loads(line) for line in sent(pieces, as_json=True).splitlines()]
    at = 7
    for line in lines:
        assert line["offset"] == at
        at = line["next"]
    assert at == 7 + len(whole)
    with contextlib.suppress(UnicodeDecodeError):  # replaced: only the offsets are exact
        assert "".join(line["text"] for line in lines) == whole.decode()


@given(PIECES)
def test_found_lines_are_those_of_grep(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    lines = whole.split(b"\n")
    if not lines[-1]:
        lines.pop()
    expected = [line for line in lines if b"5" in line]
    assert sent(pieces, grep="5") == b"".join(line + b"\n" for line in expected)


def test_found_lines_know_where_they_stand() -> None:
    said = sent([b"one\ntw", b"o\nthree"], as_json=True, grep="t").splitlines()
    assert [(json.loads(one)["offset"], json.loads(one)["text"]) for one in said] == [
        (11, "two"),
        (15, "three"),
    ]
