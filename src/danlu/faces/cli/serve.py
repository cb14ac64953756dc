"""danlu serve: the server in the foreground."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from danlu import settings
from danlu.faces.cli.session import Session


def serve(session: Session, *, insecure_bind: bool, **flags: Any) -> int:
    """Serve until SIGINT or SIGTERM; jobs go on without us."""
    from danlu.faces.http.serve import serve as serve_http

    loaded = settings.load(
        Path(session.data), {**flags, "insecure_bind": True if insecure_bind else None}
    )
    return int(serve_http(loaded.settings) or 0)
