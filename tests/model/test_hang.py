"""When nothing moves: a table of what was seen, on a clock that is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pytest

from danlu.model.hang import Look, Still, still

AFTER_S = 100.0
T = TypeVar("T")


def looks(
    count: int = 21,
    every_s: float = 5.0,
    *,
    log: Sequence[int] = (7,),
    io: Sequence[int | None] = (100,),
    cpu: Sequence[float | None] = (0.0,),
    gpu: Sequence[float | None] = (None,),
) -> list[Look]:
    """Looks at a task in which nothing moves; the last values given stay."""

    def at(values: Sequence[T], n: int) -> T:
        return values[min(n, len(values) - 1)]

    return [Look(n * every_s, at(log, n), at(io, n), at(cpu, n), at(gpu, n)) for n in range(count)]


def test_a_stopped_process_hangs() -> None:
    assert still(looks(), AFTER_S) == Still(0.0, 0.0, None)


@pytest.mark.parametrize(
    ("moves", "seen"),
    [
        ("a line of log", looks(log=[7] * 10 + [8])),
        ("a line just now", looks(log=[7] * 20 + [8])),
        ("a read", looks(io=[100] * 15 + [101])),
        ("a process that ended, and its bytes with it", looks(io=[100] * 15 + [90])),
        ("processors that do now this and now that", looks(cpu=[0.1, 3.0, 0.2, 2.5] * 6)),
        ("a GPU whose kernels come and go", looks(gpu=[0.9, 0.5, 1.0, 0.7] * 6)),
        ("one last kernel", looks(gpu=[1.0] * 20 + [0.0])),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_any_sign_of_life_is_one(moves: str, seen: list[Look]) -> None:
    assert still(seen, AFTER_S) is None, moves


@pytest.mark.parametrize(
    ("case", "seen", "cpu", "gpu"),
    [
        ("a rank in a collective call", looks(cpu=[1.0, 2.0] * 12, gpu=[1.0]), 1.0, 1.0),
        ("a loop without an end", looks(cpu=[1.0, 0.99, 1.01] * 8), 1.01, None),
        ("eight loops", looks(cpu=[8.0, 7.9, 8.05] * 8), 8.05, None),
        ("I/O that the system does not tell", looks(io=[None]), 0.0, None),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_busy_is_no_sign_of_life(
    case: str, seen: list[Look], cpu: float, gpu: float | None
) -> None:
    found = still(seen, AFTER_S)
    assert found is not None, case
    assert (found.cpu_cores, found.gpu_busy) == (cpu, gpu)


@pytest.mark.parametrize("count", [0, 1, 4, 20])
def test_what_was_not_seen_for_long_enough_says_nothing(count: int) -> None:
    assert still(looks(count), AFTER_S) is None


def test_a_watcher_that_was_away_says_nothing() -> None:
    """The agent was stopped, or the machine slept: it did not see that nothing moved."""
    seen = [look for look in looks() if not 20 < look.at_s < 80]
    assert still(seen, AFTER_S) is None


def test_only_the_time_that_counts_counts() -> None:
    seen = looks(60, log=[1, 2, 3, 4, 5])
    assert still(seen, AFTER_S) == Still(195.0, 0.0, None)
    assert still(seen, 290.0) is None


def test_a_task_of_which_nothing_is_known_does_not_hang() -> None:
    assert still(looks(cpu=[None]), AFTER_S) is None


def test_zero_is_never() -> None:
    assert still(looks(), 0) is None
