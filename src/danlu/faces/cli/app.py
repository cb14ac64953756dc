"""The commands as click sees them: for help, for mistakes, and for completion in shells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from danlu.faces.cli.grammar import FLAG, NUMBER, SWITCH, Argument, Command, Option
from danlu.faces.cli.table import COMMANDS, COMMON, FAMILIES, GROUPS
from danlu.faces.cli.terminal import width
from danlu.faces.cli.texts import fill
from danlu.faces.cli.texts.options import OPTIONS

if TYPE_CHECKING:
    _Kind = click.ParamType[int, Any]
else:  # older releases of click have no such brackets
    _Kind = click.ParamType

COLUMNS = 80
"""Help is laid out for this many columns everywhere, so that it can be packaged."""

Run = Callable[[Command, dict[str, Any], dict[str, Any]], int]
"""Runs a command with the common values and its own; gives the exit status."""


def said(key: str, language: str, /, **params: object) -> str:
    """A help text."""
    return fill(OPTIONS, key, language, params)


class Layout(click.HelpFormatter):
    """Click's help, measured in columns: a Chinese character takes two."""

    def write_heading(self, heading: str) -> None:
        """A heading with its own colon."""
        self.write(f"{' ' * self.current_indent}{heading}\n")

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Terms on the left, their texts on the right."""
        rows = list(rows)
        first = min(max(width(term) for term, _ in rows), col_max) + col_spacing
        for term, words in rows:
            lines = folded(words, self.width - first - self.current_indent)
            margin = " " * self.current_indent
            if width(term) <= first - col_spacing:
                self.write(f"{margin}{term}{' ' * (first - width(term))}{lines[0]}\n")
                lines = lines[1:]
            else:
                self.write(f"{margin}{term}\n")
            for line in lines:
                self.write(f"{margin}{' ' * first}{line}\n")

    def write_text(self, text: str) -> None:
        """Paragraphs."""
        margin = " " * self.current_indent
        paragraphs = [
            "\n".join(f"{margin}{line}" for line in folded(part, self.width - len(margin)))
            for part in text.split("\n\n")
        ]
        self.write("\n\n".join(paragraphs) + "\n")


def folded(text: str, columns: int) -> list[str]:
    """`text` in lines of at most `columns` columns. Chinese may break between any two characters,
    but no line begins with a closing mark.
    """
    lines: list[str] = []
    line = ""
    for word in _words(text):
        if line and width(line + word.rstrip()) > columns:
            lines.append(line.rstrip())
            line = ""
        line += word if line else word.lstrip()
    lines.append(line.rstrip())
    return lines


def _words(text: str) -> list[str]:
    """The pieces between which a line may end."""
    pieces: list[str] = []
    for c in text:
        after = pieces[-1][-1] if pieces else ""
        breaks = after == " " or (_wide(c) and c not in "，。；：、）”？！") or _wide(after)
        opened = after in "（“"
        if pieces and (not breaks or opened or c in "，。；：、）”？！ "):
            pieces[-1] += c
        else:
            pieces.append(c)
    return pieces


def _wide(c: str) -> bool:
    return bool(c) and not c.isascii() and width(c) == 2


class Number(_Kind):
    """A whole number within bounds."""

    name = "number"

    def __init__(self, bounds: tuple[int, int]) -> None:
        self.bounds = bounds

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number that `value` spells."""
        if isinstance(value, int):
            return value
        low, high = self.bounds
        text = str(value)
        plain = text.isascii() and text.isdigit() and len(text) < 16
        if not plain or not low <= int(text) <= high:
            self.fail(f"{low}\0{high}", param, ctx)
        return int(text)


class Read(click.Context):
    """A command line that is being read."""

    formatter_class = Layout


class UnknownCommand(click.UsageError):
    """There is no such command; `near` are those that may have been meant."""

    def __init__(self, command: str, ctx: click.Context) -> None:
        from difflib import get_close_matches

        super().__init__(command, ctx)
        self.command = command
        names = [row.name for row in COMMANDS]
        self.near = get_close_matches(command, [*names, *FAMILIES], cutoff=0.5)


def merged(before: dict[str, Any] | None, given: dict[str, Any]) -> dict[str, Any]:
    """The common options: those behind a command win over those before it."""
    before = before or {}
    common = {
        one.key: given[one.key] if given[one.key] not in (None, False) else before.get(one.key)
        for one in COMMON
    }
    if given["color"] is not None:
        common["color"] = given["color"]
    return common


class Shown(click.Command):
    """A command whose help reads in the session's language."""

    context_class = Read

    def __init__(self, row: Command, language: str, run: Run) -> None:
        self.row = row
        self.language = language
        own = [_option(one, f"{row.name}.{one.key}", language) for one in row.options]
        common = [_option(one, f".{one.key}", language) for one in COMMON]
        super().__init__(
            row.name.rpartition(" ")[2],
            params=[
                *own,
                *common,
                _help_option(language),
                *(_argument(one) for one in row.arguments),
            ],
            add_help_option=False,
            help=said(row.name, language),
            short_help=said(
                f"{row.name}.short" if f"{row.name}.short" in OPTIONS else row.name, language
            ).partition("\n\n")[0],
            context_settings={
                "allow_interspersed_args": not row.passes_on,
                "terminal_width": COLUMNS,
            },
        )
        self._own, self._common, self._run = own, common, run

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the `--` of `danlu run -- …`, which says that a command follows, not a script."""
        if self.row.passes_on:
            args = doubled(args, (*self.row.options, *COMMON))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> int:
        """Run the command with the common options, wherever they stand."""
        common = merged(ctx.obj, ctx.params)
        values = {key: value for key, value in ctx.params.items() if key not in common}
        return self._run(self.row, common, values)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The usage line."""
        pieces = " ".join(self.collect_usage_pieces(ctx))
        prefix = said("heading.usage", self.language)
        formatter.write(f"{prefix}{ctx.command_path} {pieces}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's own options, then those of every command."""
        common = {one.key for one in COMMON} | {"help"}
        rows: dict[bool, list[tuple[str, str]]] = {False: [], True: []}
        for one in self.get_params(ctx):
            record = one.get_help_record(ctx) if isinstance(one, click.Option) else None
            if record is not None:
                rows[one.name in common].append(record)
        for shared, heading in ((False, "heading.options"), (True, "heading.common")):
            if rows[shared]:
                with formatter.section(said(heading, self.language)):
                    formatter.write_dl(rows[shared])


class Family(click.Group):
    """Commands that share their first word."""

    context_class = Read

    def __init__(self, name: str, language: str, shown: Sequence[Shown]) -> None:
        self.language = language
        super().__init__(
            name,
            params=[
                *(_option(one, f".{one.key}", language) for one in COMMON),
                _help_option(language),
            ],
            add_help_option=False,
            help=said(name, language),
            context_settings={"terminal_width": COLUMNS},
            no_args_is_help=False,
        )
        for one in shown:
            self.add_command(one)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the second word names."""
        if args and args[0] not in self.commands and not ctx.resilient_parsing:
            raise UnknownCommand(f"{self.name} {args[0]}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Hand the options between the two words on to the command."""
        ctx.obj = merged(ctx.obj, ctx.params)
        return super().invoke(ctx)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The usage line."""
        prefix = said("heading.usage", self.language)
        formatter.write(f"{prefix}{ctx.command_path} [OPTIONS] COMMAND [ARGS]...\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The family's commands."""
        rows = [
            (f"{self.name} {name}", one.get_short_help_str(200))
            for name, one in self.commands.items()
        ]
        with formatter.section(said("heading.commands", self.language)):
            formatter.write_dl(rows)
        records = [
            record
            for one in self.get_params(ctx)
            if (record := one.get_help_record(ctx)) is not None
        ]
        with formatter.section(said("heading.common", self.language)):
            formatter.write_dl(records)


class Danlu(click.Group):
    """The program: finds commands by the table, and lists them in groups."""

    context_class = Read

    def __init__(self, language: str, run: Run) -> None:
        self.language = language
        super().__init__(
            "danlu",
            params=[
                *(_option(one, f".{one.key}", language) for one in COMMON),
                _help_option(language),
            ],
            add_help_option=False,
            help=said("", language),
            epilog=said("epilog", language),
            context_settings={"terminal_width": COLUMNS},
            callback=None,
            no_args_is_help=True,
        )
        self.shown = {row.name: Shown(row, language, run) for row in COMMANDS}
        for name, one in self.shown.items():
            if " " not in name:
                self.add_command(one)
        for first in FAMILIES:
            members = [one for name, one in self.shown.items() if name.startswith(f"{first} ")]
            self.add_command(Family(first, language, members))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first word names."""
        if args and args[0] not in self.commands and not ctx.resilient_parsing:
            raise UnknownCommand(args[0], ctx)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, or the first words, in the table's order."""
        _ = ctx
        return list(dict.fromkeys(row.name.split()[0] for row in COMMANDS))

    def invoke(self, ctx: click.Context) -> Any:
        """Hand the options before the command on to it."""
        ctx.obj = dict(ctx.params)
        return super().invoke(ctx)

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The usage line."""
        prefix = said("heading.usage", self.language)
        formatter.write(f"{prefix}{ctx.command_path} [OPTIONS] COMMAND [ARGS]...\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Commands first: they are what a person looks for."""
        for group in GROUPS:
            rows = [
                (row.name, self.shown[row.name].get_short_help_str(200))
                for row in COMMANDS
                if row.group == group
            ]
            with formatter.section(said(f"group.{group}", self.language)):
                formatter.write_dl(rows)
        records = [
            record
            for one in self.get_params(ctx)
            if (record := one.get_help_record(ctx)) is not None
        ]
        records.append(("--version", said(".version", self.language)))
        with formatter.section(said("heading.common", self.language)):
            formatter.write_dl(records)


def doubled(args: list[str], options: Sequence[Option]) -> list[str]:
    """`args` with the `--` that ends their options written twice: click takes one away."""
    takes = {
        flag: one.kind not in (FLAG, SWITCH) for one in options for flag in (*one.flags, *one.off)
    }
    at = 0
    while at < len(args):
        word = args[at]
        if word == "--":
            return [*args[:at], "--", *args[at:]]
        if word == "-" or not word.startswith("-"):
            break
        if word.startswith("--"):
            at += 1 + ("=" not in word and takes.get(word, False))
            continue
        letters = [takes.get(f"-{letter}", False) for letter in word[1:]]
        at += 1 + (letters.index(True) == len(letters) - 1 if True in letters else 0)
    return args


def _option(one: Option, key: str, language: str) -> click.Option:
    key = key if key in OPTIONS else f".{one.key}"
    flags = list(one.flags)
    if one.off:
        flags[-1] += "/" + "/".join(one.off)
    kind: click.ParamType[Any, Any] | None = None
    if one.kind == NUMBER:
        kind = Number(one.bounds)
    elif one.choices:
        kind = click.Choice(one.choices)
    return click.Option(
        [one.key, *flags],
        help=said(key, language),
        metavar=one.metavar or None,
        type=kind,
        is_flag=one.kind in (FLAG, SWITCH),
        default=one.default if one.kind != SWITCH else None,
        multiple=one.many,
    )


def _help_option(language: str) -> click.Option:
    def show(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click's
        if wanted and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()

    return click.Option(
        ["help", "-h", "--help"],
        help=said(".help", language),
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
    )


def _argument(one: Argument) -> click.Argument:
    return click.Argument(
        [one.key],
        metavar=one.metavar,
        nargs=one.most if one.most is not None and one.most == max(one.least, 1) else -1,
        required=one.least > 0,
        type=click.Choice(one.choices) if one.choices else click.UNPROCESSED,
        shell_complete=_completer(one.completes),
    )


def _completer(
    what: str,
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]] | None:
    if not what:
        return None

    def complete(
        ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        complete_jobs = import_module("danlu.faces.cli.completion").job_ids
        values = {**(ctx.find_root().params or {}), **ctx.params}
        return [CompletionItem(word, help=note) for word, note in complete_jobs(values, incomplete)]

    return complete
