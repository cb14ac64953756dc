"""The quick reader and click say the same, wherever the quick one says anything."""

from __future__ import annotations

from typing import Any

import click
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from danlu.faces.cli import quick
from danlu.faces.cli.app import Danlu
from danlu.faces.cli.grammar import Command
from danlu.faces.cli.table import COMMANDS, COMMON

FLAGS = sorted(
    {flag for one in COMMON for flag in (*one.flags, *one.off)}
    | {flag for row in COMMANDS for one in row.options for flag in (*one.flags, *one.off)}
)
WORDS = st.one_of(
    st.sampled_from([word for row in COMMANDS for word in row.name.split()]),
    st.sampled_from(FLAGS),
    st.sampled_from(["--", "-", "zh", "en", "bash", "7", "0", "a", "", "-1", "-qd", "-n5"]),
    st.sampled_from(["--name=x", "--json=1", "--n=", "--tail=3", "-h", "--help", "info", "文"]),
    st.text(max_size=4),
)
Read = tuple[str, dict[str, Any], dict[str, Any]]


def by_click(argv: list[str]) -> Read | None:
    seen: list[Read] = []

    def run(row: Command, common: dict[str, Any], values: dict[str, Any]) -> int:
        seen.append((row.name, common, values))
        return 0

    try:
        Danlu("en", run).main(args=argv, prog_name="danlu", standalone_mode=False)
    except click.ClickException:
        return None
    return seen[0] if seen else None


@settings(max_examples=1500, deadline=None)
@given(st.lists(WORDS, max_size=8))
@example(["run", "--name", "--", "--", "a", "--", "b"])
@example(["run", "--", "python", "-m", "x", "--json"])
@example(["run", "-d", "train.py", "--", "--lr", "1"])
@example(["--json", "ps", "--color", "--no-color", "-n", "3", "-n", "4"])
@example(["--no-color", "ps"])
@example(["--data", "a", "ps", "--data", "b"])
@example(["run", "--param", "a=1", "--param", "b=2", "--param=c=3", "x.py"])
@example(["show", "--", "-x"])
@example(["show", "-"])
@example(["stop", "a", "--wait", "b"])
@example(["--", "ps"])
@example(["image", "explain", "--gpu", "V100", "--gpu=T4", "--json"])
@example(["--json", "image", "explain", "--lang", "zh"])
@example(["image", "--json", "explain"])
def test_both_read_alike(argv: list[str]) -> None:
    read = quick.read(argv)
    if read is None:
        return
    assert by_click(argv) == (read.command.name, read.common, read.values)


@pytest.mark.parametrize(
    "line",
    [
        "ps", "ps -a", "ps --json", "--json ps", "show 1a2b", "logs -f @last --tail 5", "why x",
        "run train.py", "run train.py --lr 0.1 -x", "run --name a --flavor b t.py", "status -q",
        "run -- python -m x", "run -d -f job.yaml", "stop a b --wait", "rm -y a", "up --port 0",
        "serve --data d --port 0 --ready-file r", "doctor --lang zh", "completion bash",
        "image explain", "image explain --torch 2.8.0 --gpu V100 --gpu T4 --json",
    ],
)  # fmt: skip
def test_usual_command_lines_need_no_click(line: str) -> None:
    argv = line.split()
    read = quick.read(argv)
    assert read is not None
    assert by_click(argv) == (read.command.name, read.common, read.values)


@pytest.mark.parametrize(
    "line",
    ["ps --help", "ps -h", "nope", "ps x", "show", "show a b", "ps -n x", "ps -n 0", "ps --nope",
     "ps -n", "ps --json=1", "ps --lang xx", "completion tcsh", "image", "image nope",
     "-qa", "ps -aq", ""],
)  # fmt: skip
def test_whatever_is_not_plain_is_left_to_click(line: str) -> None:
    assert quick.read(line.split()) is None


def test_the_words_behind_the_script_are_untouched() -> None:
    argv = ["run", "-d", "train.py", "--", "-d", "--json", "a b", "", "--x=1", "--"]
    read = quick.read(argv)
    assert read is not None
    assert read.values["words"] == ("train.py", "--", "-d", "--json", "a b", "", "--x=1", "--")
    assert read.common["json"] is False
