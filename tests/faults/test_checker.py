"""The checker finds what it is for: each doctored history breaks one invariant."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from danlu.node.agent import MOST_STARTS
from tests.faults import checker
from tests.faults.checker import check, line
from tests.faults.history import (
    Accepted,
    AttemptRow,
    History,
    Kill,
    Look,
    Order,
    Remains,
    Word,
)

ORDER = Order("job-0", steps=3)
ENDED = AttemptRow(1, "t1", "succeeded", "completed")
LOST = AttemptRow(1, "t1", "failed", "agent-lost")
EVENTS = ("job-submitted", "job-placed", "job-launching", "job-running", "job-succeeded")


def word(kind: str, step: int = 0, **changes: Any) -> Word:
    return replace(Word(0, kind, "job-0", "j0", 1, 0, "r1", step), **changes)


def in_order(*words: Word) -> list[Word]:
    return [replace(one, at=at) for at, one in enumerate(words)]


def outputs(run: str = "r1") -> dict[str, bytes]:
    found = {f"part-0-{step}.json": b"{}" for step in range(3)}
    return {**found, "result-0.json": json.dumps({"run": run}).encode()}


def log(*steps: int) -> dict[int, bytes]:
    return {0: b"".join(line(step, ORDER) for step in steps)}


RUN = (word("start"), word("step", 0), word("step", 1), word("step", 2), word("end"), word("gone"))


def good() -> History:
    """One job that succeeded, while a server and an agent were killed."""
    return History(
        orders=[ORDER],
        accepted=[Accepted("job-0", "j0"), Accepted("job-0", "j0")],
        words=in_order(*RUN),
        kills=[Kill("server"), Kill("agent", "j0", 1)],
        looks=[Look("j0", 1, state) for state in ("queued", "running", "succeeded")],
        remains=[Remains("j0", "job-0", (ENDED,), EVENTS, outputs(), log(0, 1, 2))],
        integrity=["ok"],
    )


def shot() -> History:
    """The shim of attempt 1 was killed; attempt 2 went on from a checkpoint."""
    again = [replace(one, attempt=2, run="r2") for one in RUN]
    history = good()
    history.words = in_order(
        word("start"), word("step", 0), word("step", 1), word("gone"),
        again[0], *again[2:],
    )  # fmt: skip
    history.kills.append(Kill("shim", "j0", 1))
    history.looks = [Look("j0", 1, "running"), Look("j0", 1, "failed"), Look("j0", 2, "queued")]
    attempts = (LOST, AttemptRow(2, "t2", "succeeded", "completed"))
    events = ("job-running", "job-failed", "job-running", "job-succeeded")
    history.remains = [Remains("j0", "job-0", attempts, events, outputs("r2"), log(1, 2))]
    return history


def test_a_good_history_has_no_violation() -> None:
    assert check(good()) == []


def test_a_shot_attempt_may_be_tried_again() -> None:
    assert check(shot()) == []


def test_a_shot_attempt_may_be_the_last() -> None:
    history = shot()
    history.words = history.words[:4]
    history.looks = history.looks[:2]
    history.remains = [Remains("j0", "job-0", (LOST,), ("job-failed",), {}, log(0))]

    assert check(history) == []


def test_a_stopped_program_may_be_cut_off_before_its_line() -> None:
    history = good()
    history.orders = [replace(ORDER, stopped=True)]
    history.words = in_order(*RUN[:3], word("gone"))
    cancelled = AttemptRow(1, "t1", "cancelled", "stopped")
    history.looks = []
    history.remains = [Remains("j0", "job-0", (cancelled,), ("job-cancelled",), {}, log(0))]

    assert check(history) == []


def test_an_attempt_whose_agents_all_died_before_its_program_may_be_followed() -> None:
    """Not one that has begun, nor one that lost fewer of them."""
    followed = AttemptRow(2, "t2", "succeeded", "completed")
    again = [replace(one, attempt=2, run="r2") for one in RUN]
    history = good()
    history.words = in_order(*again)
    history.looks = []
    history.remains = [
        Remains("j0", "job-0", (LOST, followed), EVENTS, outputs("r2"), log(0, 1, 2))
    ]
    history.kills = [Kill("agent", "j0", 1)] * (MOST_STARTS - 1)
    assert {violation.invariant for violation in check(history)} == {"work-repeated"}

    history.kills.append(Kill("agent", "j0", 1))
    assert check(history) == []

    history.words = in_order(RUN[0], RUN[-1], *again)
    assert {violation.invariant for violation in check(history)} == {"work-repeated"}


def left(**changes: Any) -> Callable[[History], None]:
    """Doctor what is left of the job."""

    def doctor(history: History) -> None:
        history.remains = [replace(history.remains[0], **changes)]

    return doctor


def words(*changed: Word) -> Callable[[History], None]:
    def doctor(history: History) -> None:
        history.words = in_order(*changed)

    return doctor


def add(name: str, *items: object) -> Callable[[History], None]:
    def doctor(history: History) -> None:
        getattr(history, name).extend(items)

    return doctor


SECOND = [replace(one, run="r2") for one in RUN]
NEXT = [replace(one, run="r2", attempt=2) for one in RUN]
TWO = (LOST, AttemptRow(2, "t2", "succeeded", "completed"))

DOCTORED: dict[str, tuple[Callable[[History], None], str]] = {
    "an accepted job is not there": (add("accepted", Accepted("job-1", "j1")), "lost"),
    "a job was never accepted": (add("orders", Order("job-9", 1)), "lost"),
    "one label, two jobs": (add("accepted", Accepted("job-0", "j1")), "doubled"),
    "one label, two rows": (
        add("remains", Remains("j1", "job-0", (ENDED,), EVENTS, outputs(), {})),
        "doubled",
    ),
    "two programs one after the other": (words(*RUN, *SECOND), "launched-twice"),
    "two programs at once": (words(RUN[0], SECOND[0], *RUN[1:], SECOND[-1]), "overlapping"),
    "an attempt before the other is gone": (words(*RUN[:-1], *NEXT, RUN[-1]), "overlapping"),
    "not ended": (left(attempts=(replace(ENDED, state="running"),)), "stuck"),
    "another attempt after success": (
        left(attempts=(ENDED, replace(ENDED, number=2))),
        "final-changed",
    ),
    "an attempt is missing": (left(attempts=(replace(ENDED, number=2),)), "doubled"),
    "a final state was left": (add("looks", Look("j0", 1, "failed")), "final-changed"),
    "back to an earlier attempt": (
        add("looks", Look("j0", 2, "queued"), Look("j0", 1, "succeeded")),
        "final-changed",
    ),
    "ended twice": (left(events=(*EVENTS, "job-failed")), "committed-twice"),
    "another run's result": (left(outputs=outputs("r9")), "outputs-wrong"),
    "no result": (left(outputs={**outputs(), "result-0.json": b""}), "outputs-wrong"),
    "a file is missing": (
        left(outputs={k: v for k, v in outputs().items() if k != "part-0-1.json"}),
        "outputs-wrong",
    ),
    "failed for no reason": (
        left(attempts=(replace(ENDED, state="failed", reason="exit"),)),
        "outcome-wrong",
    ),
    "the platform's fault without a kill": (left(attempts=(LOST,)), "outcome-wrong"),
    "work was repeated": (words(*RUN[:4], RUN[2], *RUN[4:]), "work-repeated"),
    "a second attempt without a kill": (left(attempts=TWO), "work-repeated"),
    "a line is missing": (left(logs=log(0, 2)), "log-wrong"),
    "a line is there twice": (left(logs=log(0, 1, 1, 2)), "log-wrong"),
    "the last line is missing": (left(logs=log(0, 1)), "log-wrong"),
    "the log is empty": (left(logs={0: b""}), "log-wrong"),
    "the database is damaged": (add("integrity", "row 3 missing from index"), "database-damaged"),
    "a process is left": (add("survivors", "123 python"), "survivor"),
    "an answer of 500": (add("refusals", "GET jobs: 500"), "server-error"),
}


@pytest.mark.parametrize("case", DOCTORED)
def test_a_doctored_history_is_found_out(case: str) -> None:
    doctor, invariant = DOCTORED[case]
    history = good()
    doctor(history)

    assert invariant in {violation.invariant for violation in check(history)}


def test_a_log_with_strange_bytes_is_found_out_even_after_a_kill() -> None:
    history = shot()
    history.kills.append(Kill("shim", "j0", 2))
    history.remains = [replace(history.remains[0], logs={0: b"step 1 \0"})]

    assert [violation.invariant for violation in check(history)] == ["log-wrong"]


def test_every_rule_has_a_doctored_history() -> None:
    found = set()
    for doctor, _ in DOCTORED.values():
        history = good()
        doctor(history)
        found |= {rule for rule in checker.RULES if list(rule(history))}

    assert found == set(checker.RULES)
