"""Reads a plain command line without click, whose import costs more than most commands.

It understands only what is certain (known options with good values, enough arguments) and gives
None for everything else: help, mistakes, completion, joined short options. Those are click's,
which says what is wrong. A property test holds the two equal wherever this one answers.
"""

from __future__ import annotations

from danlu.faces.cli.grammar import FLAG, NUMBER, SWITCH, Argument, Command, Option
from danlu.faces.cli.table import COMMON, begun

Values = dict[str, object]


class Parsed:
    """A command with the values of its own and of the common options."""

    __slots__ = ("command", "common", "values")

    def __init__(self, command: Command, common: Values, values: Values) -> None:
        self.command = command
        self.common = common
        self.values = values


class _Unsure(Exception):
    pass


def read(argv: list[str]) -> Parsed | None:
    """What `argv` (without the program's name) says, or None if click has to look at it."""
    try:
        common, rest = _options(argv, COMMON, alone=True)
        found, behind = begun(rest)
        if found is None:
            return None
        given, words = _options(
            behind, (*COMMON, *found.options), alone=found.passes_on, marked=found.passes_on
        )
        values = {**_defaults(found.options), **_arguments(found, words)}
    except _Unsure:
        return None
    shared = {option.key for option in COMMON}
    common.update((key, value) for key, value in given.items() if key in shared)
    values.update((key, value) for key, value in given.items() if key not in shared)
    return Parsed(found, {**_defaults(COMMON), **common}, values)


def _defaults(options: tuple[Option, ...]) -> Values:
    return {option.key: option.default for option in options}


def _options(
    argv: list[str], options: tuple[Option, ...], *, alone: bool, marked: bool = False
) -> tuple[Values, list[str]]:
    """Options given, and the other words. `alone`: the first other word ends the options.
    `marked`: a `--` that does so stays among the words.
    """
    by_flag = {flag: option for option in options for flag in (*option.flags, *option.off)}
    values: Values = {}
    words: list[str] = []
    at = 0
    while at < len(argv):
        word = argv[at]
        at += 1
        if word == "--":
            words += argv[at - marked :]
            break
        if word == "-" or not word.startswith("-"):
            words.append(word)
            if alone:
                words += argv[at:]
                break
            continue
        flag, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        option = by_flag.get(flag)
        if option is None:
            raise _Unsure
        if option.kind in (FLAG, SWITCH):
            if equals:
                raise _Unsure
            values[option.key] = flag not in option.off
            continue
        if not equals:
            if at == len(argv):
                raise _Unsure
            value = argv[at]
            at += 1
        _keep(values, option, value)
    return values, words


def _keep(values: Values, option: Option, value: str) -> None:
    checked = _checked(option, value)
    if option.many:
        earlier = values.get(option.key, ())
        values[option.key] = (*earlier, checked) if isinstance(earlier, tuple) else (checked,)
    else:
        values[option.key] = checked


def _checked(option: Option, value: str) -> str | int:
    if option.choices and value not in option.choices:
        raise _Unsure
    if option.kind != NUMBER:
        return value
    if not (value.isascii() and value.isdigit() and len(value) < 16):
        raise _Unsure
    low, high = option.bounds
    if not low <= int(value) <= high:
        raise _Unsure
    return int(value)


def _arguments(found: Command, words: list[str]) -> Values:
    if len(found.arguments) > 1:
        raise _Unsure
    argument: Argument | None = found.arguments[0] if found.arguments else None
    if argument is None:
        if words:
            raise _Unsure
        return {}
    if len(words) < argument.least or (argument.most is not None and len(words) > argument.most):
        raise _Unsure
    if argument.choices and any(word not in argument.choices for word in words):
        raise _Unsure
    return {argument.key: (words[0] if words else None) if argument.most == 1 else tuple(words)}
