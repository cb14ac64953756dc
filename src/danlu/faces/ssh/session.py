"""A session of a guest who came in by an instance's name: handed on to its own sshd as it is."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import asyncssh

from danlu.faces.ssh.relay import Counter

Inner = Callable[[], Awaitable[asyncssh.SSHClientConnection]]
NOBODY = 255
"""The exit status with which ssh itself says that nobody was reached."""


class Outer(asyncssh.SSHServerSession[bytes]):
    """The guest's end. What it asks for is asked of the instance: command, shell or subsystem, with
    its terminal and variables; signals, sizes and the exit status go along.
    """

    def __init__(self, inner: Inner, count: Counter) -> None:
        self._inner = inner
        self.count = count
        self.channel: asyncssh.SSHServerChannel[bytes] | None = None
        self.peer: asyncssh.SSHClientChannel[bytes] | None = None
        self._command: str | None = None
        self._subsystem: str | None = None
        self._ended = False
        self._early: list[bytes] = []
        """What came before the instance answered; no more than a channel's window."""
        self._early_end = False
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, channel: Any) -> None:
        """The channel is there."""
        self.channel = channel

    def pty_requested(self, *_: object) -> bool:
        """The instance decides on it."""
        return True

    def shell_requested(self) -> bool:
        """A login."""
        return True

    def exec_requested(self, command: str) -> bool:
        """A command."""
        self._command = command
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        """sftp, usually."""
        self._subsystem = subsystem
        return True

    def session_started(self) -> None:
        """Go on to the instance."""
        if self.channel is not None:
            self._task = asyncio.get_running_loop().create_task(self._begin(self.channel))

    async def _begin(self, channel: asyncssh.SSHServerChannel[bytes]) -> None:
        terminal = channel.get_terminal_type()
        options: dict[str, Any] = {}
        if terminal is not None:
            options = {
                "term_type": terminal,
                "term_size": channel.get_terminal_size(),
                "term_modes": channel.get_terminal_modes(),
            }
        try:
            inner = await self._inner()
            self.peer, _ = await inner.create_session(
                lambda: Inside(self),
                self._command,
                subsystem=self._subsystem,
                env=list(channel.get_environment().items()),
                request_pty="force" if terminal is not None else False,
                encoding=None,
                **options,
            )
        except (asyncssh.Error, OSError) as problem:
            said = getattr(problem, "reason", "") or str(problem)
            channel.write_stderr(f"danlu: {said}\r\n".encode())
            channel.exit(NOBODY)
            return
        for data in self._early:
            self.peer.write(data)
        if self._early_end:
            self.peer.write_eof()
        self._early.clear()
        if self._ended:
            self.peer.close()

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """What the guest types or sends."""
        del datatype
        self.count(len(data))
        if self.peer is not None:
            self.peer.write(data)
        else:
            self._early.append(data)

    def eof_received(self) -> bool:
        """The guest has said all; what comes back is still wanted."""
        if self.peer is not None:
            with contextlib.suppress(OSError):
                self.peer.write_eof()
        else:
            self._early_end = True
        return True

    def pause_writing(self) -> None:
        """The guest does not read as fast as the instance writes."""
        if self.peer is not None:
            self.peer.pause_reading()

    def resume_writing(self) -> None:
        """There is room again."""
        if self.peer is not None:
            self.peer.resume_reading()

    def terminal_size_changed(self, *size: int) -> None:
        """A window was drawn larger or smaller."""
        if self.peer is not None:
            self.peer.change_terminal_size(*size)

    def signal_received(self, signal: str) -> None:
        """A signal for the program."""
        if self.peer is not None:
            self.peer.send_signal(signal)

    def break_received(self, msec: int) -> bool:
        """A break on the line."""
        if self.peer is not None:
            self.peer.send_break(msec)
        return self.peer is not None

    def connection_lost(self, exc: Exception | None) -> None:
        """The guest is gone: so is what was run for him, unless it wants to stay."""
        del exc
        self._ended = True
        if self.peer is not None:
            self.peer.close()


class Inside(asyncssh.SSHClientSession[bytes]):
    """The instance's end."""

    def __init__(self, outer: Outer) -> None:
        self._outer = outer
        self._status: int | None = None
        self._signal: tuple[str, bool, str, str] | None = None

    def data_received(self, data: bytes, datatype: int | None) -> None:
        """What the program says."""
        self._outer.count(len(data))
        if self._outer.channel is not None:
            self._outer.channel.write(data, datatype)

    def eof_received(self) -> bool:
        """The program has said all."""
        if self._outer.channel is not None:
            with contextlib.suppress(OSError):
                self._outer.channel.write_eof()
        return True

    def pause_writing(self) -> None:
        """The program does not read as fast as the guest sends."""
        if self._outer.channel is not None:
            self._outer.channel.pause_reading()

    def resume_writing(self) -> None:
        """There is room again."""
        if self._outer.channel is not None:
            self._outer.channel.resume_reading()

    def exit_status_received(self, status: int) -> None:
        """How it ended; output may still follow."""
        self._status = status

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:  # noqa: FBT001 -- asyncssh's
        """Which signal ended it."""
        self._signal = (signal, core_dumped, msg, lang)

    def connection_lost(self, exc: Exception | None) -> None:
        """All is said: tell how it ended."""
        channel = self._outer.channel
        if channel is None:
            return
        if self._signal is not None:
            channel.exit_with_signal(*self._signal)
        elif self._status is not None:
            channel.exit(self._status)
        elif exc is None:
            channel.close()
        else:
            channel.exit(NOBODY)
