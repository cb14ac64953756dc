"""Whether a job whose attempt has ended badly is tried again, and when. Pure.

Causes of the user's own (a script that fails, memory, a hang) are tried again as often as the job
says. Causes of the platform's (a node, our own programs, a pre-emption) cost the user nothing, but
they too are bounded: of attempts that end so soon after one another there are only so many. How
many there have been is counted from the attempts on record, never kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from danlu.model.attempt import Attempt, State
from danlu.model.reason import Reason, ReasonCode


class Cause(StrEnum):
    """Kinds of causes that a retry policy tells apart."""

    USER_ERROR = "user-error"
    OUT_OF_MEMORY = "out-of-memory"
    HANG = "hang"
    NODE = "node"
    PLATFORM = "platform"
    PREEMPTION = "preemption"


FREE = (Cause.NODE, Cause.PLATFORM, Cause.PREEMPTION)
"""Causes that do not count against the user's retries."""

CAUSES = MappingProxyType(
    {
        ReasonCode.EXIT: Cause.USER_ERROR,
        ReasonCode.SIGNAL: Cause.USER_ERROR,
        ReasonCode.CELL_FAILED: Cause.USER_ERROR,
        ReasonCode.NOTEBOOK_FAILED: Cause.USER_ERROR,
        ReasonCode.INPUT_FAILED: Cause.USER_ERROR,
        ReasonCode.CODE_FAILED: Cause.USER_ERROR,
        ReasonCode.REQUIREMENTS_FAILED: Cause.USER_ERROR,
        ReasonCode.BOOT_FAILED: Cause.USER_ERROR,
        ReasonCode.IMAGE_FAILED: Cause.USER_ERROR,
        ReasonCode.CONTAINER_FAILED: Cause.PLATFORM,
        ReasonCode.GPUS_MISSING: Cause.NODE,
        ReasonCode.PIDS_LIMIT: Cause.USER_ERROR,
        ReasonCode.OUT_OF_DISK: Cause.USER_ERROR,
        ReasonCode.OUT_OF_MEMORY: Cause.OUT_OF_MEMORY,
        ReasonCode.ENVIRONMENT_FAILED: Cause.PLATFORM,
        ReasonCode.LAUNCH_FAILED: Cause.PLATFORM,
        ReasonCode.AGENT_LOST: Cause.PLATFORM,
        ReasonCode.TASK_LOST: Cause.NODE,
        ReasonCode.REBOOTED: Cause.NODE,
        ReasonCode.PREEMPTED: Cause.PREEMPTION,
        ReasonCode.HUNG: Cause.HANG,
    }
)
"""What each reason is to a policy. Those that are missing are never tried again: the job did what
it should, somebody wanted it to end, its image does not pass its checks, its outputs wait on disk
for a hand that saves them, the disk is full and would only be fuller, or nobody can say what became
of it."""

FIRST_DELAY_S = 2.0
MOST_DELAY_S = 300.0
SOON_S = 600
"""An attempt that ran longer did not fail of what it found at its start: the next one need not
wait longer than the one before."""
WELL_S = 3600
"""An attempt that ran longer is no part of a row of platform faults."""


@dataclass(frozen=True, slots=True)
class Retry:
    """A job's policy: at most `limit` further attempts after causes of the user's own, and only
    after causes that are in `on`.
    """

    limit: int = 0
    on: tuple[Cause, ...] = FREE


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows an end: `delay_s` None = no further attempt. `used` of `most` retries for a
    cause of this kind are spent, the one that is granted here included.
    """

    cause: Cause
    delay_s: float | None
    used: int
    most: int


def verdict(
    policy: Retry, reason: Reason, attempts: Sequence[Attempt], *, free: int, fraction: float
) -> Verdict | None:
    """What follows the last of `attempts`, which ends with `reason`; None where its cause is one
    that nobody wants to try again.

    `attempts` are all of the job, the first one first; `free` is how many attempts in a row
    may be lost to the platform; `fraction` is a draw from [0, 1).
    """
    cause = CAUSES.get(reason.code)
    if cause is None or cause not in policy.on:
        return None
    earlier = attempts[:-1]
    if cause in FREE:
        used, most = _platform_faults(attempts), max(free, policy.limit)
    else:
        used, most = sum(_cause(one) not in (None, *FREE) for one in earlier), policy.limit
    if used >= most:
        return Verdict(cause, None, used, most)
    return Verdict(cause, delay_s(attempts, fraction), used + 1, most)


def delay_s(attempts: Sequence[Attempt], fraction: float) -> float:
    """How long the next attempt waits: doubled with each attempt in a row that ended soon, and
    spread by half, so that what failed together does not come back together.
    """
    row = 0
    for one in reversed(attempts):
        if ran_s(one) >= SOON_S:
            break
        row += 1
    wait_s: float = min(MOST_DELAY_S, FIRST_DELAY_S * 2 ** min(16, max(0, row - 1)))
    return min(MOST_DELAY_S, wait_s * (0.5 + fraction))


def ran_s(attempt: Attempt) -> float:
    """How long the program of an attempt ran; 0 where it never did."""
    ended = attempt.exited_at or attempt.ended_at
    if attempt.started_at is None or ended is None:
        return 0.0
    return max(0, ended - attempt.started_at) / 1000


def _platform_faults(attempts: Sequence[Attempt]) -> int:
    """How many attempts before the last were lost to the platform in a row."""
    if ran_s(attempts[-1]) >= WELL_S:
        return 0
    count = 0
    for one in reversed(attempts[:-1]):
        if _cause(one) not in FREE or ran_s(one) >= WELL_S:
            break
        count += 1
    return count


def _cause(attempt: Attempt) -> Cause | None:
    if attempt.reason is None or attempt.state is State.SUCCEEDED:
        return None
    return CAUSES.get(attempt.reason.code)
