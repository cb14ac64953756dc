"""Writes the packaged help of `danlu`: what click renders, so that showing it needs no click."""

from __future__ import annotations

import sys
from pathlib import Path

from danlu.faces.cli.clicked import program
from danlu.faces.cli.texts import LANGUAGES

HELP = Path(__file__).resolve().parent.parent / "src" / "danlu" / "faces" / "cli" / "help"


def rendered(language: str) -> str:
    """The program's help in a language."""
    danlu = program(language)
    with danlu.make_context("danlu", [], resilient_parsing=True) as context:
        return f"{danlu.get_help(context)}\n"


def main() -> int:
    """Write one file a language."""
    HELP.mkdir(exist_ok=True)
    for language in LANGUAGES:
        path = HELP / f"{language}.txt"
        path.write_text(rendered(language), encoding="utf-8")
        print(path.relative_to(HELP.parents[4]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
