"""A command that is run beside a task's program, and how its streams travel: in messages whose
first byte says what they are.

The channels are those of Kubernetes' exec (`v4.channel.k8s.io`, and CLOSE of its fifth version),
which ModelArts' CloudShell speaks as well. SIGNAL is ours.

| channel | to the command | from it |
|---|---|---|
| 0 | its stdin; an empty one keeps the connection alive | |
| 1, 2 | | its stdout and stderr (with a terminal only the first) |
| 3 | | how it ended, as JSON; the last message |
| 4 | the terminal's size, `{"Width": …, "Height": …}` | |
| 5 | a signal's name, `INT` | |
| 255 | the number of the channel that has ended: 0 | |
"""

from __future__ import annotations

import json

STDIN, STDOUT, STDERR, STATUS, RESIZE, SIGNAL, CLOSE = 0, 1, 2, 3, 4, 5, 255
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
PIECE = 32 << 10
"""Bytes of a stream in one message of ours."""
MESSAGE_BYTES = 128 << 10
"""The longest message that is taken."""
COMMAND_BYTES = 32 << 10
"""The longest command: it stands in a URL."""
SIGNALS = ("HUP", "INT", "QUIT", "TERM", "KILL", "USR1", "USR2", "WINCH", "CONT", "STOP", "TSTP")
JOB_ENDED = "JobEnded"
"""The reason of a command that was ended because its job had."""
LOST = "InternalError"
"""The reason of a command of which nobody knows how it ended."""
NO_EXIT_CODE = 1
MOST_SIZE = 10_000


class Command:
    """What is to be run: argv as it is, no shell in between. `terminal` = it gets one of this many
    columns and rows, of the kind `term`; `stdin` = somebody may write to it.
    """

    __slots__ = ("argv", "columns", "rows", "stdin", "term", "terminal")

    def __init__(
        self,
        argv: tuple[str, ...],
        *,
        terminal: bool = False,
        stdin: bool = True,
        columns: int = 80,
        rows: int = 24,
        term: str = "",
    ) -> None:
        self.argv = argv
        self.terminal = terminal
        self.stdin = stdin
        self.columns = columns
        self.rows = rows
        self.term = term

    def to_json(self) -> bytes:
        """For `from_json`."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__}).encode()

    @classmethod
    def from_json(cls, data: bytes) -> Command:
        """What `to_json` made."""
        found = json.loads(data)
        return cls(tuple(found.pop("argv")), **found)


def message(channel: int, data: bytes = b"") -> bytes:
    """One message."""
    return bytes((channel,)) + data


def ended(code: int, reason: str = "", said: str = "") -> bytes:
    """The STATUS message of a command that ended with an exit code, in Kubernetes' form."""
    status: dict[str, object] = {"metadata": {}, "status": "Success"}
    if code or reason:
        cause = {"reason": "ExitCode", "message": str(code)}
        status = {
            "metadata": {},
            "status": "Failure",
            "reason": reason or "NonZeroExitCode",
            "message": said or f"command terminated with exit code {code}",
            "details": {"causes": [cause]},
        }
    return message(STATUS, json.dumps(status).encode())


def how_ended(data: bytes) -> tuple[int, str, str]:
    """Exit code, reason (empty = by itself) and sentence of a STATUS message without its first
    byte.
    """
    try:
        status = json.loads(data)
        if status.get("status") == "Success":
            return 0, "", ""
        causes = (status.get("details") or {}).get("causes") or ()
        codes = [one.get("message", "") for one in causes if one.get("reason") == "ExitCode"]
        code = int(codes[0]) if codes else NO_EXIT_CODE
        reason = str(status.get("reason") or "")
        said = str(status.get("message") or "")
    except (ValueError, AttributeError, TypeError):
        return NO_EXIT_CODE, LOST, ""
    return code, "" if reason == "NonZeroExitCode" else reason, said


def size(data: bytes) -> tuple[int, int] | None:
    """Columns and rows of a RESIZE message; None where it is none."""
    try:
        found = json.loads(data)
        columns, rows = found["Width"], found["Height"]
    except (ValueError, KeyError, TypeError):
        return None
    numbers = isinstance(columns, int) and isinstance(rows, int)
    if numbers and 0 < columns <= MOST_SIZE and 0 < rows <= MOST_SIZE:
        return columns, rows
    return None
