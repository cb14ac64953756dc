"""What the command line itself says, in English and in Chinese, by key.

Sentences about jobs come from the server in the language that the request names; these are the
rest. Help texts (`options.py`) and those of `danlu doctor` (`checks.py`) are loaded when needed.
"""

from __future__ import annotations

from collections.abc import Mapping

from danlu.faces.cli.texts.messages import MESSAGES

LANGUAGES = ("en", "zh")

MAX_VALUE_CHARS = 400


def text(key: str, language: str, /, **params: object) -> str:
    """The sentence `key` with `params` filled in."""
    return fill(MESSAGES, key, language, params)


def fill(
    texts: Mapping[str, tuple[str, str]], key: str, language: str, params: Mapping[str, object]
) -> str:
    """Like `text`, from other texts. Values lose their control characters and their excess."""
    template = texts[key][language == "zh"]
    if not params:
        return template.format()
    return template.format_map({name: shown(value) for name, value in params.items()})


def shown(value: object) -> str:
    """A value as it may be printed to a terminal: printable, and not longer than useful."""
    plain = value if isinstance(value, str) else str(value)
    return printable(plain if len(plain) <= MAX_VALUE_CHARS else f"{plain[:MAX_VALUE_CHARS]}…")


def printable(plain: str) -> str:
    """`plain` with its control characters escaped."""
    if plain.isprintable():
        return plain
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in plain)
