"""danlu exec and danlu shell: a command in a running job, as if it ran here.

Only one thread writes to the server: keys, signals, sizes and answers to pings wait for it in a
queue. The one that reads from it waits for nobody, so no two full pipes can wait for each other.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable

from danlu.faces.cli.failure import FAULT, INTERRUPTED, RETRY, USAGE, Failure
from danlu.faces.cli.http import HttpError
from danlu.faces.cli.session import Session, utf8
from danlu.faces.cli.websocket import PONG, Closed, WebSocket
from danlu.model import execute as words

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from queue import SimpleQueue
    from threading import Semaphore
    from types import FrameType
    from typing import Any

    Packet = tuple[int | None, bytes]
    """A message's bytes and None, or those of a frame of another kind."""

AHEAD = 8
"""Pieces of stdin that wait to be sent."""
SERVICE_RESTART = 1012
SHELLS = "command -v bash >/dev/null 2>&1 && exec bash; exec sh"
FORWARDED = ("SIGTERM", "SIGHUP", "SIGQUIT")


def execute(
    session: Session, *, words: tuple[str, ...], task: str | None, interactive: bool, tty: bool
) -> int:
    """Run a command; its exit code is ours."""
    job, *argv = words
    if tty and not _is_terminal():
        raise Failure(USAGE, "exec-no-terminal")
    return _run(session, job, task, argv, stdin=interactive, terminal=tty)


def shell(session: Session, *, job: str, task: str | None) -> int:
    """A shell with a terminal, or one that reads a script from stdin."""
    terminal = _is_terminal()
    argv = ["/bin/sh", "-c", SHELLS] if terminal else ["/bin/sh", "-s"]
    return _run(session, job, task, argv, stdin=True, terminal=terminal)


def _is_terminal() -> bool:
    return os.name == "posix" and os.isatty(0) and os.isatty(1)


def _run(
    session: Session, job: str, task: str | None, argv: list[str], *, stdin: bool, terminal: bool
) -> int:
    query: dict[str, object] = {
        "argv": json.dumps([utf8(word, "COMMAND") for word in argv]),
        "terminal": int(terminal),
        "stdin": int(stdin),
    }
    if task is not None:
        name = utf8(task, "--task")
        query["task"] = f"worker-{name}" if name.isdigit() else name
    if terminal:
        columns, rows = os.get_terminal_size(1)
        query.update(columns=columns or 80, rows=rows or 24, term=os.environ.get("TERM", "")[:64])
    socket = session.client().socket("jobs", utf8(job, "JOB"), "exec", query=query)
    held = Held(session, socket, terminal=terminal)
    try:
        return held.run(stdin=stdin)
    finally:
        socket.close()


class Held:
    """One command that runs."""

    def __init__(self, session: Session, socket: WebSocket, *, terminal: bool) -> None:
        from queue import SimpleQueue
        from threading import Semaphore

        self._session = session
        self._socket = socket
        self._terminal = terminal
        self._queue: SimpleQueue[Packet] = SimpleQueue()
        self._ahead: Semaphore = Semaphore(AHEAD)
        self._pressed = 0
        self._before: Any = None

    def run(self, *, stdin: bool) -> int:
        """Until the command has ended; its exit code."""
        from threading import Thread

        self._socket.on_ping = lambda data: self._queue.put((PONG, data))
        restore = self._take_over()
        try:
            Thread(target=self._write, daemon=True).start()
            if stdin:
                Thread(target=self._read_stdin, daemon=True).start()
            return self._read()
        finally:
            restore()

    def _read(self) -> int:
        err = getattr(self._session.terminal.err, "buffer", None)
        while True:
            try:
                message = self._socket.receive()
            except Closed as closed:
                key = "exec-restart" if closed.code == SERVICE_RESTART else "exec-lost"
                detail = closed.reason or str(closed.code)
                raise Failure(RETRY, key, detail=detail) from closed
            except HttpError as error:
                if self._pressed > 1:
                    return INTERRUPTED
                raise Failure(RETRY, "exec-restart", detail=error) from error
            if not message:
                continue
            channel, data = message[0], message[1:]
            if channel == words.STDOUT:
                self._session.terminal.raw(data)
            elif channel == words.STDERR and err is not None:
                err.write(data)
                err.flush()
            elif channel == words.STATUS:
                return self._ended(data)

    def _ended(self, data: bytes) -> int:
        code, reason, said = words.how_ended(data)
        if reason == words.JOB_ENDED:
            self._session.say("exec-job-ended")
        elif reason:
            raise Failure(FAULT, "exec-lost", detail=said or reason)
        return code

    def _write(self) -> None:
        while True:
            kind, data = self._queue.get()
            try:
                if kind is None:
                    self._socket.send(data)
                else:
                    self._socket.frame(kind, data)
            except HttpError:
                return
            if kind is None and data[:1] == b"\0":
                self._ahead.release()

    def _say(self, channel: int, data: bytes = b"") -> None:
        self._queue.put((None, words.message(channel, data)))

    def _read_stdin(self) -> None:
        descriptor = sys.stdin.fileno()
        while True:
            self._ahead.acquire()
            try:
                data = os.read(descriptor, words.PIECE)
            except OSError:
                data = b""
            if not data:
                self._say(words.CLOSE, b"\0")
                return
            self._say(words.STDIN, data)

    # what belongs to a terminal

    def _take_over(self) -> Callable[[], None]:
        """Have keys and signals go to the command; what undoes it."""
        undo: list[Callable[[], None]] = []

        def on(name: str, handler: Callable[[int, FrameType | None], None]) -> None:
            number = getattr(signal, name, None)
            if number is not None:
                before = signal.signal(number, handler)
                undo.append(lambda: _put_back(number, before))

        on("SIGINT", self._interrupt)
        for name in FORWARDED:
            on(name, lambda number, _: self._say(words.SIGNAL, _name(number)))
        if self._terminal:
            on("SIGWINCH", lambda *_: self._resize())
            undo.append(raw_mode())

        def put_back() -> None:
            for one in reversed(undo):
                one()

        return put_back

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        """The first Ctrl-C is the command's, the second one ours."""
        self._pressed += 1
        self._say(words.SIGNAL, _name(number))
        if self._pressed > 1:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            self._socket.hang_up()

    def _resize(self) -> None:
        columns, rows = os.get_terminal_size(1)
        if columns and rows:
            self._say(words.RESIZE, json.dumps({"Width": columns, "Height": rows}).encode())


def _name(number: int) -> bytes:
    return signal.Signals(number).name.removeprefix("SIG").encode()


def _put_back(number: int, before: Any) -> None:
    signal.signal(number, before)


def raw_mode() -> Callable[[], None]:
    """Have the terminal hand on every key as it is; what gives it back."""
    import termios
    import tty

    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSADRAIN)
    return lambda: termios.tcsetattr(0, termios.TCSADRAIN, before)
