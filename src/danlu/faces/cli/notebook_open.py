"""danlu notebook open: JupyterLab in the browser."""

from __future__ import annotations

import os
import sys

from danlu.faces.cli.session import Session

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""One of them is set where a browser can be seen."""


def run(session: Session, *, notebook: str, print_only: bool) -> int:
    """Open a notebook. Without a screen, or where nobody looks at the output, print the link."""
    made = session.client().post("notebooks", notebook, "open")
    if session.json:
        session.put_json(made)
    elif print_only or session.quiet or not _seen() or not _shown(made["url"]):
        session.put(made["url"])
    else:
        session.say("notebook-opened", name=notebook)
    return 0


def _seen() -> bool:
    screen = sys.platform in ("darwin", "win32") or any(os.environ.get(one) for one in SCREENS)
    return screen and sys.stdout.isatty()


def _shown(url: str) -> bool:
    import webbrowser

    return webbrowser.open(url)
