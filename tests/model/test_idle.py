"""Whether a notebook is idle: every signal alone keeps it up, and only all together let it stop."""

from __future__ import annotations

import itertools

import pytest

from danlu.model.idle import Idle, Signal, judge, warning

START = 1_000_000
HOUR = 3600
T = 1800
NAMES = ("kernels", "terminals", "processes", "ssh", "gpu", "hold")


def quiet(at: int = START) -> list[Signal]:
    return [Signal(name, at) for name in NAMES]


def at(seconds: float) -> int:
    return START + round(seconds * 1000)


def test_all_off_stops_it() -> None:
    assert not judge(quiet(), START, T, at(T - 1)).due(at(T - 1))
    assert judge(quiet(), START, T, at(T)).due(at(T))


@pytest.mark.parametrize("name", NAMES)
def test_each_signal_alone_keeps_it_up(name: str) -> None:
    """(case 84) Whatever goes on, be it as silent as it likes, is a use."""
    now = at(5 * HOUR)
    goes_on = [Signal(n, START, goes_on=n == name) for n in NAMES]
    recent = [Signal(n, at(5 * HOUR - 60) if n == name else START) for n in NAMES]

    assert not judge(goes_on, START, T, now).due(now)
    assert judge(goes_on, START, T, now).idle_since == now
    assert not judge(recent, START, T, now).due(now)
    assert judge(recent, START, T, now).stops_at == at(5 * HOUR - 60 + T)


@pytest.mark.parametrize("name", NAMES)
def test_unknown_is_not_idle(name: str) -> None:
    """A probe that fails is an alert: what cannot be told keeps the notebook up, and is named."""
    signals = [Signal(n, None if n == name else START) for n in NAMES]
    now = at(100 * HOUR)

    found = judge(signals, START, T, now)

    assert not found.due(now)
    assert (found.stops_at, found.idle_since, found.unknown) == (None, None, (name,))


def test_a_start_sets_all_clocks_back() -> None:
    """(case 89) What was before the start does not stop what has just begun."""
    old = quiet(at(-10 * HOUR))

    found = judge(old, START, T, at(1))

    assert (found.idle_since, found.stops_at) == (START, at(T))


def test_the_latest_signal_counts_in_whatever_order_they_come() -> None:
    signals = [Signal("kernels", at(10)), Signal("ssh", at(300)), Signal("gpu", at(20))]

    found = {
        judge(list(some), START, T, at(400)).stops_at for some in itertools.permutations(signals)
    }

    assert found == {at(300 + T)}


def test_instants_of_the_future_are_no_later_than_now() -> None:
    """A clock that was set back must not keep a notebook up for as long as it was wrong."""
    found = judge([Signal("kernels", at(9 * HOUR))], START, T, at(60))

    assert found.idle_since == at(60)


def test_never_is_never() -> None:
    now = at(1000 * HOUR)

    found = judge(quiet(), START, None, now)

    assert not found.due(now)
    assert found.idle_since == START


def test_without_signals_it_is_idle_since_its_start() -> None:
    assert judge([], START, T, at(T)).due(at(T))


@pytest.mark.parametrize(
    ("idle", "leased", "default_s", "most_s", "expected"),
    [
        (Idle(), False, 3600, 0, 3600),  # unset: the server's default
        (Idle(), True, 3600, 0, None),  # who has a lease is left to it
        (Idle(off=True), False, 3600, 0, None),  # off is not unset
        (Idle(600), False, 3600, 0, 600),
        (Idle(600), True, 3600, 0, 600),  # whichever comes first
        (Idle(), False, 0, 0, None),  # a server without a default
        (Idle(off=True), False, 3600, 7200, 7200),  # the server's most binds everybody
        (Idle(86_400), False, 3600, 7200, 7200),
        (Idle(), True, 3600, 7200, 7200),
        (Idle(600), False, 3600, 7200, 600),
    ],
)
def test_unset_off_and_a_duration_are_three_things(
    idle: Idle,
    leased: bool,  # noqa: FBT001 -- a column of the table
    default_s: int,
    most_s: int,
    expected: int | None,
) -> None:
    assert idle.effective_s(default_s, most_s, leased=leased) == expected
    assert idle.unset == (idle == Idle())


MINUTE = 60_000


@pytest.mark.parametrize(
    ("left_ms", "warned", "expected"),
    [
        (11 * MINUTE, 0, 0),
        (10 * MINUTE, 0, 10),
        (9 * MINUTE, 0, 10),
        (9 * MINUTE, 10, 0),
        (2 * MINUTE, 10, 2),
        (MINUTE, 0, 2),  # late: only the one that is true
        (MINUTE, 2, 0),
        (0, 2, 0),
        (-1, 0, 0),
    ],
)
def test_warnings_come_once_each(left_ms: int, warned: int, expected: int) -> None:
    assert warning(START + left_ms, warned, START) == expected


def test_what_does_not_end_is_not_warned_of() -> None:
    assert warning(None, 0, START) == 0
