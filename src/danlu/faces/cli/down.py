"""danlu down: stop the local server; jobs go on."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

from danlu.faces.cli import local
from danlu.faces.cli.failure import RETRY, Failure
from danlu.faces.cli.session import Session

PATIENCE_S = 30.0


def down(session: Session) -> int:
    """Ask the server that holds the data directory to end, and wait until it has."""
    pid = _stop(session.data)
    if session.json:
        session.put_json({"stopped": pid is not None, "pid": pid})
    else:
        session.say("server-stopped" if pid is not None else "server-not-up", data=session.data)
    return 0


def _stop(data: str) -> int | None:
    """SIGTERM to the process that holds the lock; its number, or None if there was no server."""
    end = time.monotonic() + PATIENCE_S
    while (pid := local.held_by(data)) is not None:
        if time.monotonic() > end:
            raise Failure(RETRY, "server-stays", pid=pid, seconds=int(PATIENCE_S))
        if pid == 0:
            time.sleep(0.02)
            continue
        try:
            process = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            # The descriptor pins the process; only then is it asked who it is.
            if not local.has_lock_open(data, pid):
                time.sleep(0.02)
                continue
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(process, signal.SIGTERM)
            if not select.select([process], [], [], max(0.0, end - time.monotonic()))[0]:
                raise Failure(RETRY, "server-stays", pid=pid, seconds=int(PATIENCE_S))
        finally:
            os.close(process)
        return pid
    return None
