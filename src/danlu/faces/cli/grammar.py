"""What a command, an option and an argument are: the words of `table.py`."""

from __future__ import annotations

TEXT, NUMBER, FLAG, SWITCH = "text", "number", "flag", "switch"
"""Kinds of options. A switch is on, off (its second flag) or not given."""


class Option:
    """One option. `flags` are its spellings; `off` those that switch it off."""

    __slots__ = ("bounds", "choices", "flags", "key", "kind", "many", "metavar", "off")

    def __init__(
        self,
        key: str,
        *flags: str,
        kind: str = TEXT,
        metavar: str = "",
        many: bool = False,
        choices: tuple[str, ...] = (),
        bounds: tuple[int, int] = (0, 2**53),
        off: tuple[str, ...] = (),
    ) -> None:
        self.key = key
        self.flags = flags
        self.kind = kind
        self.metavar = metavar
        self.many = many
        self.choices = choices
        self.bounds = bounds
        self.off = off

    @property
    def default(self) -> object:
        """The value of an option that is not given."""
        if self.many:
            return ()
        return False if self.kind == FLAG else None


class Argument:
    """A positional argument. `most` = how many are taken, None = all that follow."""

    __slots__ = ("choices", "completes", "key", "least", "metavar", "most")

    def __init__(
        self,
        key: str,
        metavar: str,
        *,
        least: int = 1,
        most: int | None = 1,
        completes: str = "",
        choices: tuple[str, ...] = (),
    ) -> None:
        self.key = key
        self.metavar = metavar
        self.least = least
        self.most = most
        self.completes = completes
        self.choices = choices


class Command:
    """One command. `handler` is imported when the command runs."""

    __slots__ = ("arguments", "group", "handler", "name", "options", "passes_on")

    def __init__(
        self,
        group: str,
        name: str,
        handler: str,
        options: tuple[Option, ...] = (),
        arguments: tuple[Argument, ...] = (),
        *,
        passes_on: bool = False,
    ) -> None:
        self.group = group
        self.name = name
        self.handler = handler
        self.options = options
        self.arguments = arguments
        self.passes_on = passes_on
        """Whether everything behind the first argument belongs to somebody else."""
