"""`.danluignore`: which files of a code directory stay at home. The syntax is gitignore's."""

from __future__ import annotations

import re
from collections.abc import Iterable

FILE = ".danluignore"

BUILT_IN = (
    ".git",
    "__pycache__",
    "*.pyc",
    ".venv",
    "venv",
    "node_modules",
    ".danlu",
    ".ipynb_checkpoints",
)
"""Left out of every code directory; a line such as `!venv` takes one in again."""

_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_NEVER = re.compile(r"(?!)")


class _Rule:
    """`again`: it takes in again what an earlier one left out. `directories`: for those alone."""

    __slots__ = ("again", "directories", "pattern")

    def __init__(self, pattern: re.Pattern[str], *, again: bool, directories: bool) -> None:
        self.pattern = pattern
        self.again = again
        self.directories = directories


class Ignore:
    """The rules of one code directory, the last one that fits decides."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._rules = [rule for line in lines if (rule := _rule(line))]

    def leaves_out(self, path: str, *, directory: bool) -> bool:
        """Whether `path` stays at home. Whoever leaves out a directory does not look inside."""
        for rule in reversed(self._rules):
            if (directory or not rule.directories) and rule.pattern.fullmatch(path):
                return not rule.again
        return False


def parse(text: str) -> Ignore:
    """The built-in rules and then those of an ignore file."""
    return Ignore([*BUILT_IN, *text.split("\n")])


def _rule(line: str) -> _Rule | None:
    line = _without_trailing_spaces(line.removesuffix("\r"))
    if not line or line.startswith("#"):
        return None
    again = line.startswith("!")
    line = line[1:] if again else line
    directories = line.endswith("/")
    line = line[:-1] if directories else line
    if not line:
        return None
    return _Rule(_pattern(line), again=again, directories=directories)


def _without_trailing_spaces(line: str) -> str:
    """Spaces at the end do not count, unless a backslash stands before them."""
    bare = line.rstrip(" ")
    slashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if bare != line and slashes % 2 else bare


def _pattern(glob: str) -> re.Pattern[str]:
    """A pattern with a slash counts from the code directory, one without fits at any depth."""
    anywhere = "/" not in glob
    translated = _translated(glob.removeprefix("/"))
    if translated is None:
        return _NEVER
    return re.compile(f"(?:.*/)?{translated}" if anywhere else translated, re.DOTALL)


def _translated(glob: str) -> str | None:
    """A regular expression for `glob`, or None where it is malformed and fits nothing."""
    out: list[str] = []
    at = 0
    while at < len(glob):
        char = glob[at]
        starts = at == 0 or glob[at - 1] == "/"
        if starts and glob.startswith("**/", at):
            out.append("(?:.*/)?")
            at += 3
        elif starts and glob[at:] == "**":
            out.append(".+")
            at += 2
        elif char == "*":
            out.append("[^/]*")
            while at < len(glob) and glob[at] == "*":
                at += 1
        elif char == "?":
            out.append("[^/]")
            at += 1
        elif char == "[":
            found = _class(glob, at + 1)
            if found is None:
                return None
            expression, at = found
            out.append(expression)
        elif char == "\\":
            if at + 1 == len(glob):
                return None
            out.append(re.escape(glob[at + 1]))
            at += 2
        else:
            out.append(re.escape(char))
            at += 1
    return "".join(out)


def _class(glob: str, at: int) -> tuple[str, int] | None:
    """The bracket expression whose inside begins at `at`, and where it ends."""
    negated = glob[at : at + 1] in ("!", "^")
    at += negated
    out: list[str] = []
    first = True
    while at < len(glob) and (first or glob[at] != "]"):
        first = False
        named = re.match(r"\[:([a-z]+):\]", glob[at:])
        if named:
            if named[1] not in _CLASSES:
                return None
            out.append(_CLASSES[named[1]])
            at += named.end()
            continue
        low, at = _literal(glob, at)
        if glob[at : at + 1] == "-" and glob[at + 1 : at + 2] not in ("", "]"):
            high, at = _literal(glob, at + 1)
            if low <= high:
                out.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            out.append(re.escape(low))
    if at >= len(glob):
        return None
    inside = "".join(out)
    if not inside:
        return ("[^/]" if negated else "(?!)"), at + 1
    return f"(?!/)[{'^' if negated else ''}{inside}]", at + 1


def _literal(glob: str, at: int) -> tuple[str, int]:
    if glob[at] == "\\" and at + 1 < len(glob):
        return glob[at + 1], at + 2
    return glob[at], at + 1
