"""What lines of a log say about trying again. Pure.

A pattern is plain text that a line holds; `*` in it stands for any text. There are no regular
expressions: looking for one part after the other takes time in proportion to the line, whatever
the pattern and the line are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

MOST_RULES = 20
PATTERN_CHARS = 200
LINE_BYTES = 8 << 10
"""Of a longer line the rest is not looked at."""


class RuleAction(StrEnum):
    """What follows where a line matches."""

    NO_RETRY = "no-retry"
    AVOID_NODE = "avoid-node"


@dataclass(frozen=True, slots=True)
class LogRule:
    """If an attempt that failed has printed a line like `match`, `action` is taken."""

    match: str
    action: RuleAction


@dataclass(frozen=True, slots=True)
class Matched:
    """A rule and the line that it is about."""

    rule: LogRule
    line: str


class Finder:
    """Looks through a log, line by line, for the first line of each action."""

    def __init__(self, rules: Sequence[LogRule]) -> None:
        self._open = [(rule, parts(rule.match)) for rule in rules]
        self.found: list[Matched] = []

    @property
    def done(self) -> bool:
        """Whether nothing more can be found."""
        return not self._open

    def look(self, line: bytes) -> None:
        """Take notice of a line."""
        line = line[:LINE_BYTES]
        for rule, wanted in self._open:
            if holds(line, wanted):
                self.found.append(Matched(rule, line.decode("utf-8", "replace").strip()))
                self._open = [one for one in self._open if one[0].action is not rule.action]
                return


def parts(match: str) -> tuple[bytes, ...]:
    """The texts between the stars of a pattern."""
    return tuple(part.encode() for part in match.split("*") if part)


def holds(line: bytes, wanted: Iterable[bytes]) -> bool:
    """Whether a line holds the texts, one behind the other."""
    at = 0
    for part in wanted:
        at = line.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True
