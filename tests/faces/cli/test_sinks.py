"""What a log becomes on its way to a pipe, a terminal, or a program."""

from __future__ import annotations

import contextlib
import json
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from danlu.faces.cli.session import Session
from danlu.faces.cli.sinks import Fold, Found, Gap, Lines, Numbered, sink_for
from danlu.faces.cli.terminal import Terminal
from tests.faces.cli.test_terminal import Stream

if TYPE_CHECKING:
    from collections.abc import Callable

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
        Found(Lines(session, "worker-0"), re.compile(grep.encode()), 7, raw=True)
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
    sink.skip(Gap(100, 88, lines, 9))
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
    sink = Found(Lines(session, "worker-0"), re.compile(b"l"), 0)
    sink.write(b"hello\nlast")
    sink.skip(Gap(1000, 990, None, None))
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


def through(make: Callable[[Sink], Sink], pieces: list[bytes]) -> bytes:
    """What a pipe gets of `pieces` through a sink in front of it."""
    out = Stream()
    sink = make(sink_for(Session(Terminal(out, Stream(), environ={}), "en", data=""), "w", 0))
    for piece in pieces:
        sink.write(piece)
    sink.end()
    out.flush()
    return out.bytes.getvalue()


def test_of_a_progress_bar_the_final_state_is_shown() -> None:
    """(case 15)"""
    bar = [b"epoch 1\r", b"  0%|   |\r 50%|#  |", b"\r100%|###|", b"\n", b"done\r\nlast\r"]
    assert through(Fold, bar) == b"100%|###|\ndone\nlast"
    endless = [b"%d%%\r" % (number % 100) for number in range(500_000)]
    assert through(Fold, [*endless, b"end\n"]).endswith(b"end\n")


@given(PIECES)
def test_folding_changes_no_line_without_a_carriage_return(pieces: list[bytes]) -> None:
    whole = b"".join(pieces).replace(b"\r", b"")
    assert through(Fold, [piece.replace(b"\r", b"") for piece in pieces]) == whole


@given(PIECES)
def test_lines_are_numbered_wherever_they_are_cut(pieces: list[bytes]) -> None:
    whole = b"".join(pieces)
    lines = whole.split(b"\n")
    numbered = [b"%6d  %b" % (n, line) for n, line in enumerate(lines, 7)]
    if not lines[-1]:
        numbered[-1] = b""
    assert through(lambda sink: Numbered(sink, 7), pieces) == b"\n".join(numbered)


HOSTILE = [
    b"\x1b]52;c;cm0gLXJmIH4=\x07", b"\x1b]8;;http://evil\x1b\\text\x1b]8;;\x1b\\",
    b"\x1b[2J\x1b[H", b"\x1b[6n", b"\x1b[?1049h", b"\x1b[8mhidden\x1b[?25l", b"\x1bP$q\x1b\\",
    b"\x1b_apc\x1b\\", b"\x1b^pm\x1b\\", b"\x1bc", b"\x1b(0", b"\x9b2J", "\u009b2J".encode(),
    "\u009d52;c;eA==\u009c".encode(), b"\x08\x08\x08rm", b"\x0e\x0f", b"\x00", b"\x7f", b"\x05",
    "\u202egnp.exe".encode(), "\u2066a\u2069".encode(), "\u200f\u061c".encode(),
    "\U000e0041".encode(), "\u2028\u2029".encode(), b"\x1b[" + b"1;" * 200 + b"m", b"\x1b[31",
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(HOSTILE)))
@pytest.mark.parametrize("cut", [1, 2, 3, 1000])
def test_nothing_hostile_reaches_a_terminal(number: int, cut: int) -> None:
    """Clipboard writes, links, screens, queries, and text that runs the other way."""
    data = b"before " + HOSTILE[number] + b" after\n"
    pieces = [data[at : at + cut] for at in range(0, len(data), cut)]
    shown = sent(pieces, tty=True).decode()
    plain = re.sub(r"\x1b\[[0-9;:]*m", "", shown).replace("\n", "")
    assert plain.isprintable(), ascii(plain)
    assert plain.startswith("before ")
    assert plain.endswith(" after")


def test_colours_pass_and_do_not_outlive_the_log() -> None:
    shown = sent([b"\x1b[1;31mred\x1b[0m \x1b[38;5;200mpink"], tty=True)
    assert shown == b"\x1b[1;31mred\x1b[0m \x1b[38;5;200mpink\x1b[0m\n"
