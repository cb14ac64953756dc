"""The clock and the dice, so that rules can be tested with their own."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Time as the platform reads it."""

    def now(self) -> int:
        """UTC, milliseconds since 1970. May jump when the machine's clock is set."""

    def monotonic(self) -> float:
        """Seconds since some start; never goes back. For every time-out."""


class Dice(Protocol):
    """Randomness."""

    def token(self) -> str:
        """128 fresh random bits as 32 hexadecimal digits."""

    def job_id(self) -> str:
        """A fresh UUID in its usual form."""

    def fraction(self) -> float:
        """A number from 0 up to, but not including, 1."""
