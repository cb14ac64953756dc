"""Streams, colours, widths and tables."""

from __future__ import annotations

import io
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from danlu.faces.cli import view
from danlu.faces.cli.failure import Failure
from danlu.faces.cli.language import flag_of, language_of
from danlu.faces.cli.session import data_directory, dump, utf8
from danlu.faces.cli.terminal import Terminal, cut, width


class Stream(io.TextIOWrapper):
    """A text stream that may pretend to be a terminal."""

    def __init__(self, *, tty: bool = False) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding="utf-8", errors="backslashreplace")
        self._tty = tty

    def isatty(self) -> bool:
        return self._tty

    def text(self) -> str:
        self.flush()
        return self.bytes.getvalue().decode()


@pytest.mark.parametrize(
    ("flag", "environ", "tty", "colored"),
    [
        (None, {}, True, True),
        (None, {}, False, False),
        (None, {"NO_COLOR": "1"}, True, False),
        (None, {"NO_COLOR": ""}, True, True),
        (None, {"FORCE_COLOR": "1"}, False, True),
        (None, {"FORCE_COLOR": "0"}, True, False),
        (None, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        (None, {"TERM": "dumb"}, True, False),
        (True, {"NO_COLOR": "1", "TERM": "dumb"}, False, True),
        (False, {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_when_there_are_colours(
    *, flag: bool | None, environ: dict[str, str], tty: bool, colored: bool
) -> None:
    terminal = Terminal(Stream(tty=tty), Stream(), color=flag, environ=environ)
    assert (terminal.paint("x", "red") != "x") is colored


def test_a_status_line_is_for_terminals_only() -> None:
    err = Stream()
    Terminal(Stream(), err, environ={}).status("waiting")
    assert err.text() == ""
    Terminal(Stream(), Stream(tty=True), environ={"TERM": "dumb"}).status("waiting")
    err = Stream(tty=True)
    terminal = Terminal(Stream(), err, environ={})
    terminal.status("waiting")
    terminal.say("done")
    assert err.text() == "\r\x1b[Kwaiting\r\x1b[Kdone\n"


def test_widths_of_what_people_write() -> None:
    assert width("train") == 5
    assert width("训练") == 4
    assert width("é") == 1
    assert width("ｆｕｌｌ") == 8
    assert cut("训练作业", 5) == "训练…"
    assert cut("训练作业", 8) == "训练作业"
    assert cut("abc", 0) == ""


@given(st.text(max_size=30), st.integers(0, 30))
def test_what_is_cut_fits(text: str, columns: int) -> None:
    assert width(cut(text, columns)) <= columns or width(text) <= columns


NAMES = st.text(st.sampled_from("ab训练中-"), min_size=1, max_size=8)


@given(st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=5))
def test_columns_line_up_whatever_the_script(rows: list[tuple[str, str, str]]) -> None:
    out = Stream()
    Terminal(out, Stream(), environ={}).table(("NAME", "状态", "WHY"), rows)
    lines = out.text().splitlines()
    starts = set()
    for line, row in zip(lines[1:], rows, strict=True):
        prefix = line[: len(line) - len(row[2])]
        assert line.endswith(row[2])
        starts.add(width(prefix))
    assert len(starts) == 1


def test_a_pipe_gets_whole_lines_and_a_terminal_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("danlu.faces.cli.terminal.terminal_width", lambda: 20)
    rows = [("x" * 15, "y" * 30)]
    piped, shown = Stream(), Stream(tty=True)
    Terminal(piped, Stream(), environ={}).table(("A", "B"), rows)
    Terminal(shown, Stream(), color=False, environ={}).table(("A", "B"), rows)
    assert "y" * 30 in piped.text()
    assert [width(line) for line in shown.text().splitlines()] == [18, 20]


def test_bytes_pass_unchanged_and_in_order() -> None:
    out = Stream()
    terminal = Terminal(out, Stream(), environ={})
    terminal.put("first")
    terminal.raw(b"\xff\x00\x1b[31m")
    terminal.put("last")
    out.flush()
    assert out.bytes.getvalue() == b"first\n\xff\x00\x1b[31mlast\n"


def test_json_is_one_line_that_a_terminal_may_see() -> None:
    assert dump({"名": "值"}) == '{"名": "值"}'
    assert dump({"a": "\x9b\x1b[2J\n"}).isascii()
    assert dump({"a": "\ud800"}) == '{"a": "\\ud800"}'


@pytest.mark.parametrize(
    ("environ", "language"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_TW"}, "zh"),
        ({"LC_ALL": "C", "DANLU_LANG": "zh"}, "zh"),
    ],
)
def test_the_language_follows_the_locale(environ: dict[str, str], language: str) -> None:
    assert language_of(None, environ) == language
    assert language_of("zh", environ) == "zh"


def test_the_language_of_a_line_that_cannot_be_read() -> None:
    assert flag_of(["ps", "--lang", "zh", "--nope"]) == "zh"
    assert flag_of(["--lang=en"]) == "en"
    assert flag_of(["run", "--", "x", "--lang", "zh"]) is None
    assert flag_of(["--lang"]) == ""


def test_where_the_data_lies() -> None:
    assert data_directory("/a/b", {"DANLU_DATA": "/c"}) == "/a/b"
    assert data_directory(None, {"DANLU_DATA": "/c", "XDG_DATA_HOME": "/d"}) == "/c"
    assert data_directory(None, {"XDG_DATA_HOME": "/d"}) == "/d/danlu"
    assert data_directory(None, {"XDG_DATA_HOME": "relative"}).endswith("/.local/share/danlu")


def test_a_word_that_is_no_text_is_refused() -> None:
    assert utf8("训练", "--name") == "训练"
    with pytest.raises(Failure, match="--name"):
        utf8("a\udcff", "--name")


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0.0s"), (9.94, "9.9s"), (10, "10s"), (59.9, "59s"), (60, "1m00s"), (3599, "59m59s"),
     (3600, "1h00m"), (86399, "23h59m"), (86400, "1d0h"), (-5, "0.0s"), (None, "-")],
)  # fmt: skip
def test_durations_for_people(count: float | None, shown: str) -> None:
    assert view.seconds(count) == shown


def test_sizes_for_people() -> None:
    sizes = (0, 1023, 1024, 1536, 1 << 20, 5 << 40, 1 << 55)
    assert [view.size(one) for one in sizes] == [
        "0 B", "1023 B", "1 KiB", "1.5 KiB", "1 MiB", "5 TiB", "32768 TiB",
    ]  # fmt: skip


def test_short_ids_stay_different() -> None:
    ids = ["aaaaaaaa-1", "aaaaaaaa-2", "bbbbbbbb-1"]
    assert view.short_ids(ids[1:]) == {"aaaaaaaa-2": "aaaaaaaa", "bbbbbbbb-1": "bbbbbbbb"}
    short = view.short_ids(ids)
    assert len(set(short.values())) == 3
    assert all(one.startswith(prefix) for one, prefix in short.items())
    assert all(a != b for a, b in itertools.combinations(short.values(), 2))
