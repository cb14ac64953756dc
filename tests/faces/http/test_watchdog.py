from __future__ import annotations

import asyncio
import logging
import time

import pytest

from danlu.faces.http.watchdog import Watchdog


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records]


def hold_everyone_up(until: float) -> None:
    while time.monotonic() < until:
        time.sleep(0.01)


async def hung(caplog: pytest.LogCaptureFixture) -> None:
    dog = Watchdog(limit_s=0.5)
    await asyncio.sleep(0)
    ends = time.monotonic() + 60
    while not told(caplog) and time.monotonic() < ends:
        hold_everyone_up(time.monotonic() + 1)
    for _ in range(600):
        if len(told(caplog)) < 2:
            await asyncio.sleep(0.1)
    dog.close()


def test_a_blocking_call_is_told_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    """(fault 58) A call that blocks the event loop; and then it goes on."""
    caplog.set_level(logging.WARNING)

    asyncio.run(hung(caplog))

    assert "the event loop has stood still" in told(caplog)[0]
    assert "hold_everyone_up" in told(caplog)[0]
    assert "goes on after" in told(caplog)[1]


async def fine() -> None:
    dog = Watchdog(limit_s=30)
    for _ in range(20):
        await asyncio.sleep(0.05)
    dog.close()


def test_a_loop_that_waits_is_not_told_of(caplog: pytest.LogCaptureFixture) -> None:
    asyncio.run(fine())

    assert told(caplog) == []
