"""Every sentence that the platform says to a person, in English and in Chinese, by key.

A key never changes its meaning and is never translated: programs may depend on it.
"""

from __future__ import annotations

from danlu.model.texts.errors import ERRORS
from danlu.model.texts.events import EVENTS
from danlu.model.texts.images import IMAGES
from danlu.model.texts.lab import LAB_PAGES
from danlu.model.texts.notebooks import NOTEBOOK_EVENTS
from danlu.model.texts.obs import OBS_ERRORS
from danlu.model.texts.reasons import REASONS

TYPE_CHECKING = False
if TYPE_CHECKING:  # the client's path comes through here, and typing is a third of its time
    from typing import Literal

    Language = Literal["en", "zh"]
else:
    Language = str

TEXTS: dict[str, tuple[str, str]] = {
    **ERRORS,
    **REASONS,
    **EVENTS,
    **NOTEBOOK_EVENTS,
    **IMAGES,
    **OBS_ERRORS,
    **LAB_PAGES,
}

MAX_VALUE_CHARS = 200
"""A value that a person typed is shown up to this length; the rest is said to be cut."""


def text(key: str, language: Language = "en", /, **params: object) -> str:
    """Return the sentence `key` in `language` with `params` filled in.

    Values are shortened and their control characters escaped, so that a message can be
    printed to a terminal or a log whatever a request held. A value that is missing shows as `?`.
    A `because` that is a reason's key becomes that reason's sentence, from the same values.
    """
    english, chinese = TEXTS[key]
    because = params.get("because")
    if isinstance(because, str) and because in REASONS and because != key:
        params["because"] = text(because, language, **{**params, "because": "?"})
    template = chinese if language == "zh" else english
    shown = {name: _shown(value) for name, value in params.items()}
    if language == "zh":
        from danlu.model.texts import phrases

        for name in phrases.PARTS & shown.keys():
            shown[name] = phrases.chinese(shown[name])
    return template.format_map(_Shown(shown))


class _Shown(dict[str, str]):
    """Values by name. One that was not recorded must not take the whole sentence with it."""

    def __missing__(self, name: str) -> str:
        return "?"


def _shown(value: object) -> str:
    plain = value if isinstance(value, str) else str(value)
    cut = plain[:MAX_VALUE_CHARS]
    safe = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
    return safe if len(plain) <= MAX_VALUE_CHARS else f"{safe}… ({len(plain)} characters)"
