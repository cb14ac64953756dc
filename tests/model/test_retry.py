"""Which ends are followed by another attempt, how many of them, and after how long."""

from __future__ import annotations

from dataclasses import replace

import pytest

from danlu.model.attempt import Attempt, AttemptKey, State
from danlu.model.reason import BLAME, Blame, Reason, ReasonCode
from danlu.model.retry import (
    CAUSES,
    FREE,
    MOST_DELAY_S,
    SOON_S,
    WELL_S,
    Cause,
    Retry,
    Verdict,
    delay_s,
    verdict,
)

ANY = tuple(Cause)


def attempts(*codes: ReasonCode, ran: float = 1) -> list[Attempt]:
    """One attempt a code; each ran for `ran` seconds and ended so."""
    return [
        Attempt(
            AttemptKey("j", number, "t"),
            State.FAILED,
            0,
            started_at=0,
            exited_at=round(ran * 1000),
            ended_at=round(ran * 1000) + 5,
            reason=Reason(code),
        )
        for number, code in enumerate(codes, 1)
    ]


def after(
    policy: Retry, *codes: ReasonCode, free: int = 3, ran: float = 1, fraction: float = 0.5
) -> Verdict | None:
    """What follows the last of attempts that ended with `codes`."""
    known = attempts(*codes, ran=ran)
    return verdict(policy, Reason(codes[-1]), known, free=free, fraction=fraction)


EXIT, LOST, MEMORY = ReasonCode.EXIT, ReasonCode.TASK_LOST, ReasonCode.OUT_OF_MEMORY


def test_every_cause_of_a_policy_has_its_reasons() -> None:
    free = {code for code, cause in CAUSES.items() if cause in FREE}
    assert free == {
        code for code, blame in BLAME.items() if blame in (Blame.PLATFORM, Blame.CAPACITY)
    } - {ReasonCode.OUTPUT_FAILED, ReasonCode.OUT_OF_DISK, ReasonCode.RESTORED,
         ReasonCode.IMAGE_UNVERIFIED, ReasonCode.HOME_KEPT}  # fmt: skip


@pytest.mark.parametrize(
    "code",
    [
        ReasonCode.COMPLETED,
        ReasonCode.STOPPED,
        ReasonCode.TIME_LIMIT,
        ReasonCode.OUTPUT_FAILED,
    ],
)
def test_some_ends_are_never_tried_again(code: ReasonCode) -> None:
    """(case 29) A job that somebody stopped, or that did what it should."""
    assert after(Retry(100, ANY), code, free=100) is None


def test_the_users_budget_is_counted_from_the_attempts() -> None:
    """(case 31)"""
    policy = Retry(2, ANY)
    verdicts = [after(policy, *[EXIT] * count) for count in (1, 2, 3, 4)]
    found = [(one.delay_s is not None, one.used, one.most) for one in verdicts if one]
    assert found == [(True, 1, 2), (True, 2, 2), (False, 2, 2), (False, 3, 2)]


def test_platform_faults_cost_the_user_nothing() -> None:
    codes = [LOST, EXIT, LOST, ReasonCode.AGENT_LOST, EXIT]
    said = after(Retry(2, ANY), *codes)
    assert said is not None
    assert (said.used, said.most, said.delay_s is not None) == (2, 2, True)


def test_platform_faults_in_a_row_are_bounded() -> None:
    """(case 42) (case 35) A machine that loses every attempt is not tried for ever."""
    granted = [after(Retry(), *[LOST] * count, free=3) for count in range(1, 6)]
    assert [one is not None and one.delay_s is not None for one in granted] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_an_attempt_that_ran_long_ends_the_row() -> None:
    """A job of weeks survives more than three restarts of its machine."""
    known = attempts(*[LOST] * 50, ran=WELL_S)
    said = verdict(Retry(), Reason(LOST), known, free=1, fraction=0.5)
    assert said is not None
    assert (said.used, said.most) == (1, 1)
    short = [*known, replace(known[-1], exited_at=1)]
    assert verdict(Retry(), Reason(LOST), short, free=1, fraction=0.5) == said
    twice = [*short, replace(known[-1], exited_at=1)]
    refused = verdict(Retry(), Reason(LOST), twice, free=1, fraction=0.5)
    assert refused is not None
    assert refused.delay_s is None


@pytest.mark.parametrize(
    ("policy", "code", "tried"),
    [
        (Retry(), EXIT, False),
        (Retry(), LOST, True),
        (Retry(on=()), LOST, False),
        (Retry(3, (Cause.OUT_OF_MEMORY,)), EXIT, False),
        (Retry(3, (Cause.OUT_OF_MEMORY,)), MEMORY, True),
        (Retry(3, (Cause.USER_ERROR,)), LOST, False),
        (Retry(3, (Cause.NODE,)), ReasonCode.REBOOTED, True),
        (Retry(3, (Cause.NODE,)), ReasonCode.LAUNCH_FAILED, False),
        (Retry(3, (Cause.PREEMPTION,)), ReasonCode.PREEMPTED, True),
    ],
)
def test_only_the_causes_of_the_policy_are_tried_again(
    policy: Retry,
    code: ReasonCode,
    tried: bool,  # noqa: FBT001 -- a case of the table
) -> None:
    assert (after(policy, code) is not None) is tried


def test_a_server_may_try_nothing_by_itself() -> None:
    said = after(Retry(), LOST, free=0)
    assert said == Verdict(Cause.NODE, None, 0, 0)


def test_a_users_limit_is_a_limit_for_the_platform_too() -> None:
    """Who asks for five retries gets five, whatever the cause."""
    said = after(Retry(5, ANY), *[LOST] * 5, free=3)
    assert said is not None
    assert (said.used, said.most, said.delay_s is not None) == (5, 5, True)


def test_waits_grow_and_are_bounded() -> None:
    """(case 35) (case 38)"""
    waits = [delay_s(attempts(*[EXIT] * count), 0.5) for count in range(1, 40)]
    assert waits[:4] == [2, 4, 8, 16]
    assert waits == sorted(waits)
    assert waits[-1] == MOST_DELAY_S


def test_waits_are_spread_by_the_dice() -> None:
    known = attempts(EXIT, EXIT, EXIT)
    assert [delay_s(known, fraction) for fraction in (0.0, 0.5, 0.999)] == [4, 8, 11.992]
    long = attempts(*[EXIT] * 30)
    assert delay_s(long, 0.999) == MOST_DELAY_S


def test_an_attempt_that_ran_a_while_is_followed_soon() -> None:
    known = [*attempts(*[EXIT] * 10), *attempts(EXIT, ran=SOON_S)]
    assert delay_s(known, 0.5) == 2


def test_a_clock_that_went_back_makes_no_run_negative() -> None:
    """(case 112)"""
    (one,) = attempts(EXIT)
    assert delay_s([replace(one, started_at=10_000, exited_at=1)], 0.5) == 2
