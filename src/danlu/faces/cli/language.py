"""English or Chinese: decided before anything else is imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from danlu.model.texts import Language


def language_of(wanted: object, environ: Mapping[str, str]) -> Language:
    """`en` or `zh`: the flag, DANLU_LANG, or the locale in POSIX's order."""
    for value in (
        wanted,
        environ.get("DANLU_LANG"),
        environ.get("LC_ALL"),
        environ.get("LC_MESSAGES"),
        environ.get("LANG"),
    ):
        if value:
            return "zh" if str(value).lower().startswith("zh") else "en"
    return "en"


def flag_of(argv: Sequence[str]) -> str | None:
    """What `--lang` says on a command line that could not be read."""
    for at, word in enumerate(argv):
        if word == "--lang":
            return argv[at + 1] if at + 1 < len(argv) else ""
        if word.startswith("--lang="):
            return word.removeprefix("--lang=")
        if word == "--":
            break
    return None
