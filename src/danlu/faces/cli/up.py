"""danlu up: the local server in the background."""

from __future__ import annotations

from danlu.faces.cli.local import endpoint
from danlu.faces.cli.session import Session
from danlu.faces.cli.starting import ensure


def up(session: Session, *, host: str | None, port: int | None) -> int:
    """Start the server of the data directory unless it runs already; return when it answers."""
    flags = [*(["--host", host] if host else []), *([] if port is None else ["--port", str(port)])]
    ready, started = ensure(session.data, flags=tuple(flags))
    if session.json:
        shown = {key: value for key, value in ready.items() if key != "secret_key"}
        session.put_json({"started": started, **shown})
    else:
        key = "server-started" if started else "server-runs"
        session.say(key, api=endpoint(ready, session.data).api)
    if flags and not started:
        session.say("server-flags-unused", flags=" ".join(flags))
    return 0
