"""Help: packaged as click renders it, in both languages, with a text for every option."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from string import Formatter

import pytest

import danlu.faces.cli
from danlu.faces.cli.clicked import program
from danlu.faces.cli.main import main
from danlu.faces.cli.table import COMMANDS, COMMON, FAMILIES, GROUPS, STATES
from danlu.faces.cli.terminal import width
from danlu.faces.cli.texts import LANGUAGES, text
from danlu.faces.cli.texts.checks import CHECKS
from danlu.faces.cli.texts.messages import MESSAGES
from danlu.faces.cli.texts.options import OPTIONS
from danlu.model.attempt import State
from scripts.cli_help import rendered

HELP = Path(danlu.faces.cli.__file__).parent / "help"
TEXTS = {**{f"m:{k}": v for k, v in MESSAGES.items()}, **{f"o:{k}": v for k, v in OPTIONS.items()}}
TEXTS.update({f"c:{k}": v for k, v in CHECKS.items()})


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_packaged_help_is_what_click_renders(language: str) -> None:
    packaged = (HELP / f"{language}.txt").read_text("utf-8")
    assert packaged == rendered(language), "run: make cli-help"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_overview_has_one_sentence_a_command(language: str) -> None:
    """What follows the first paragraph of a command's help is for its own page."""
    listed = rendered(language).split("\n\n")[2:-2]
    for section in listed[:-1]:
        assert section.splitlines()[0].endswith((":", "：")), section


@pytest.mark.parametrize("argv", [[], ["--help"], ["-h"]])
@pytest.mark.parametrize(("locale", "language"), [("zh_CN.UTF-8", "zh"), ("C", "en")])
def test_help_is_shown_without_click(
    argv: list[str], locale: str, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.delenv("DANLU_LANG", raising=False)
    monkeypatch.setenv("LC_ALL", locale)
    assert main(argv) == 0
    assert out.buffer.getvalue() == (HELP / f"{language}.txt").read_bytes()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("row", COMMANDS, ids=lambda row: row.name)
def test_every_command_has_help_that_fits_eighty_columns(
    row: object, language: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name = getattr(row, "name", "")
    program(language).main(args=[*name.split(), "--help"], prog_name="danlu", standalone_mode=False)
    lines = capsys.readouterr().out.splitlines()
    assert all(width(line) <= 80 for line in lines)
    assert any("--data" in line for line in lines)


def test_every_command_and_option_has_a_text() -> None:
    needed = {row.name for row in COMMANDS} | set(FAMILIES) | {f".{one.key}" for one in COMMON}
    needed |= {
        f"{row.name}.{one.key}" if f"{row.name}.{one.key}" in OPTIONS else f".{one.key}"
        for row in COMMANDS
        for one in row.options
    }
    assert needed <= OPTIONS.keys()
    extra = {key for key in OPTIONS if "." in key and key not in needed}
    assert extra == {
        *(f"group.{one}" for one in GROUPS), "heading.usage",
        "heading.options", "heading.commands", "heading.common", ".help", ".version", "run.short",
        "image explain.short", "image freeze.short", "image lock.short", "notebook save.short",
        "obs ls.short", "obs cp.short", "obs sync.short",
    }  # fmt: skip


@pytest.mark.parametrize("key", sorted(TEXTS))
def test_every_text_stands_in_both_languages_with_the_same_values(key: str) -> None:
    english, chinese = TEXTS[key]
    assert bool(english) == bool(chinese)
    fields = [
        {name for _, name, _, _ in Formatter().parse(said) if name} for said in (english, chinese)
    ]
    # "usage" frames click's own English words in Chinese.
    assert fields[0] == fields[1]


def test_values_are_shown_harmless() -> None:
    said = text("script-missing", "en", script="a\x1b[2Jb\n" + "x" * 1000)
    assert said.isprintable()
    assert len(said) < 1200


def test_the_states_are_those_of_the_model() -> None:
    assert set(STATES) == set(State)


def test_a_mistake_says_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    for argv, words in (
        (["rnu"], "did you mean run?"),
        (["ps", "--stat", "x"], "--state"),
        (["show"], "JOB is missing"),
        (["ps", "-n", "many"], "whole number"),
        (["show", "a", "b"], "one argument too many"),
        (["completion", "tcsh"], "bash, zsh, fish"),
        (["ps", "--json=1"], "takes no value"),
        (["ps", "--name"], "needs a value"),
        (["--json"], "no command"),
        (["image"], "no command"),
        (["image", "explian"], "did you mean image explain"),
        (["imag"], "did you mean image"),
        (["image", "explain", "--channel", "conda"], "pypi, index"),
    ):
        assert main(["--lang", "en", *argv]) == 2
        said = capsys.readouterr()
        assert words in said.err
        assert said.out == ""
        assert main(["--lang=zh", *argv]) == 2
        assert not capsys.readouterr().err.isascii()
