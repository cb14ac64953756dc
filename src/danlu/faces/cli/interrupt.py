"""Ctrl-C in the moments in which it must not tear a call apart."""

from __future__ import annotations

import signal

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from types import FrameType, TracebackType
    from typing import Any, Self


class Held:
    """While it is open, the first Ctrl-C is only noted; the second ends the program at once."""

    def __init__(self) -> None:
        self.pressed = False
        self._before: Any = None

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.pressed = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def last_chance() -> None:
    """From now on Ctrl-C ends the program at once."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
