"""Lets click read a command line: it knows how to help, what is wrong, and how to complete."""

from __future__ import annotations

import sys
from typing import Any

import click

from danlu.faces.cli.app import Danlu, Run, UnknownCommand
from danlu.faces.cli.failure import USAGE
from danlu.faces.cli.grammar import FLAG, SWITCH
from danlu.faces.cli.table import COMMANDS, COMMON
from danlu.faces.cli.terminal import streams
from danlu.faces.cli.texts import text

VALUED = frozenset(
    flag
    for option in (*COMMON, *(one for row in COMMANDS for one in row.options))
    if option.kind not in (FLAG, SWITCH)
    for flag in option.flags
)


def program(language: str, run: Run | None = None) -> Danlu:
    """The program as click sees it."""
    return Danlu(language, run or (lambda _command, _common, _values: 0))


def click_main(words: list[str], run: Run, language: str) -> int:
    """Run `words` through click; mistakes are said in our words and end with 2."""
    streams()
    try:
        status: Any = program(language, run).main(
            args=words,
            prog_name="danlu",
            complete_var="_DANLU_COMPLETE",
            standalone_mode=False,
            windows_expand_args=False,
        )
    except click.UsageError as error:
        sys.stdout.flush()
        sys.stderr.write(f"danlu: {mistake(error, language)}\n")
        path = error.ctx.command_path if error.ctx is not None else "danlu"
        sys.stderr.write(f"{text('try-help', language, command=path)}\n")
        return USAGE
    except click.Abort:
        return 130
    return int(status or 0)


def mistake(error: click.UsageError, language: str) -> str:
    """What is wrong with a command line."""
    hint = ""
    if isinstance(error, click.NoSuchOption):
        if error.possibilities:
            hint = text("did-you-mean", language, words=", ".join(error.possibilities))
        return text("no-such-option", language, option=error.option_name) + hint
    if isinstance(error, click.BadOptionUsage):
        if error.option_name not in VALUED:
            return text("option-takes-none", language, option=error.option_name)
        return text("option-needs-value", language, option=error.option_name)
    if isinstance(error, click.MissingParameter):
        name = _name(error)
        return text("argument-missing", language, name=name)
    if isinstance(error, click.BadParameter):
        return _bad_value(error, language)
    if isinstance(error, UnknownCommand):
        near = error.near
        hint = text("did-you-mean", language, words=", ".join(near)) if near else ""
        return text("no-such-command", language, command=error.command) + hint
    if error.message.startswith("Missing command"):
        return text("command-missing", language)
    extra = error.message.partition("(")[2].rpartition(")")[0]
    if extra and "extra argument" in error.message:
        return text("argument-extra", language, word=extra)
    return text("usage", language, detail=error.format_message())


def _bad_value(error: click.BadParameter, language: str) -> str:
    name = _name(error)
    kind = error.param.type if error.param is not None else None
    if isinstance(kind, click.Choice):
        choices = ", ".join(str(one) for one in kind.choices)
        return text("bad-choice", language, name=name, choices=choices)
    low, _, high = error.message.partition("\0")
    if high:
        return text("bad-number", language, name=name, low=low, high=high)
    return text("usage", language, detail=error.format_message())


def _name(error: click.BadParameter) -> str:
    if error.param is None:
        return str(error.param_hint or "")
    return error.param.get_error_hint(error.ctx).strip("'")
