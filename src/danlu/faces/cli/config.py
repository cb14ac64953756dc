"""danlu config: every setting, its value, and where that comes from."""

from __future__ import annotations

from pathlib import Path

from danlu import settings
from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import printable

SECRET = ("database",)
"""Settings whose value may hold a password: of a URL, only the part behind it is shown."""


def config(session: Session) -> int:
    """List the settings of the local server, as its next start would read them."""
    loaded = settings.load(Path(session.data))
    meanings = settings.describe(session.language)
    rows = []
    for name, (default, meaning) in meanings.items():
        value = settings.plain(getattr(loaded.settings, name))
        if name in SECRET and "@" in value:
            value = f"…@{value.rpartition('@')[2]}"
        source = session.data_source if name == "data" else loaded.sources[name]
        rows.append((name, value, source, default, meaning))
    if session.json:
        keys = ("name", "value", "source", "default", "meaning")
        session.put_json({"settings": [dict(zip(keys, row, strict=True)) for row in rows]})
        return 0
    shown = [
        (name, printable(value) or "-", session.text(f"source.{source}"), meaning)
        for name, value, source, _default, meaning in rows
    ]
    session.terminal.table(session.text("columns.config").split("|"), shown)
    return 0
