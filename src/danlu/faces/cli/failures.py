"""Shows a failure: what was wrong and what to do next, on stderr, and its exit status."""

from __future__ import annotations

import errno
import os

from danlu.faces.cli.failure import FAULT, RETRY, Failure
from danlu.faces.cli.http import HttpError
from danlu.faces.cli.session import Session, dump
from danlu.model.errors import PlatformError

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def explain(session: Session, error: Exception) -> int:
    """Show `error` and give the exit status that it means."""
    if session.debug or os.environ.get("DANLU_DEBUG"):
        import traceback

        session.terminal.say("".join(traceback.format_exception(error)).rstrip())
    language = session.language
    if isinstance(error, HttpError):
        error = Failure(RETRY, "lost", detail=error)
    if isinstance(error, OSError):
        error = output_failure(error) or error
    if isinstance(error, Failure):
        record, status, message = error.record(language), error.exit_status, error.message(language)
    elif isinstance(error, PlatformError):
        status, message = error.exit, error.message(language)
        record = {
            "error_code": error.code, "error_msg": message, "key": error.key, "exit": status
        }  # fmt: skip
    else:
        name, status = type(error).__name__, FAULT
        message = session.text("unexpected", name=name, detail=error)
        record = {"error_code": name, "error_msg": message, "key": "unexpected", "exit": status}
    if session.json:
        session.terminal.say(dump(record))
    else:
        session.terminal.say(f"danlu: {message}")
    return status


def output_failure(error: OSError) -> Failure | None:
    """The failure to show where `error` is that stdout takes no more; None for any other."""
    if error.errno not in NO_ROOM or error.filename is not None:
        return None
    # What could not be written now cannot be written at the interpreter's end either.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
    return Failure(FAULT, "output-failed", detail=error.strerror)
