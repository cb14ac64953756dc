"""The two ways to say how often a job is tried again."""

from __future__ import annotations

from typing import Any

import pytest

from danlu.model.attempt import Attempt, AttemptKey, State
from danlu.model.errors import Invalid
from danlu.model.hang import Hang, HangAction
from danlu.model.job import Job, JobView
from danlu.model.log_rules import LogRule, RuleAction
from danlu.model.retry import FREE, Cause, Retry
from danlu.wire.modelarts_training import job_spec
from danlu.wire.modelarts_training_reply import job

RETRY_NUM = "fault-tolerance/job-retry-num"
UNCONDITIONAL = "fault-tolerance/job-unconditional-retry"


def body(annotations: dict[str, str] | None = None, **extras: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "n", "annotations": annotations or {}},
        "algorithm": {"command": "true"},
        "danlu": extras,
    }


def asked(annotations: dict[str, str] | None = None, **extras: Any) -> Retry:
    return job_spec(body(annotations, **extras)).retry


def test_a_job_that_says_nothing_is_tried_again_after_the_platforms_faults() -> None:
    assert asked() == Retry() == Retry(0, FREE)


def test_modelarts_number_is_for_the_platforms_faults() -> None:
    assert asked({RETRY_NUM: "3"}) == Retry(3, FREE)


def test_modelarts_unconditional_retry_is_for_the_scripts_failures_too() -> None:
    said = asked({RETRY_NUM: "2", UNCONDITIONAL: "True"})
    assert said == Retry(2, (Cause.USER_ERROR, Cause.OUT_OF_MEMORY, *FREE))


def test_modelarts_unconditional_retry_without_a_number_asks_for_nothing() -> None:
    assert asked({UNCONDITIONAL: "true"}) == Retry()


@pytest.mark.parametrize("value", ["", "0", "false", "off"])
def test_annotations_that_ask_for_nothing_are_taken(value: str) -> None:
    assert asked({RETRY_NUM: value, UNCONDITIONAL: value}) == Retry()


@pytest.mark.parametrize(
    ("key", "value"),
    [(RETRY_NUM, "4"), (RETRY_NUM, "-1"), (RETRY_NUM, "two"), (RETRY_NUM, "01"),
     (RETRY_NUM, "٣"), (UNCONDITIONAL, "yes"), (UNCONDITIONAL, "1")],
)  # fmt: skip
def test_an_annotation_that_says_nothing_sensible_is_refused(key: str, value: str) -> None:
    with pytest.raises(Invalid) as refused:
        asked({key: value})
    assert refused.value.params["field"] == f"metadata.annotations.{key}"
    assert str(refused.value.params["value"]).lower() == value


def test_retries_are_for_every_cause_unless_the_causes_are_named() -> None:
    assert asked(retries=5) == Retry(5, tuple(Cause))
    assert asked(retries=5, retry_on=["node", "user-error", "node"]) == Retry(
        5, (Cause.USER_ERROR, Cause.NODE)
    )
    assert asked(retry_on=[]) == Retry(0, ())
    assert asked(retries=0) == Retry()


def test_our_fields_go_before_annotations() -> None:
    assert asked({RETRY_NUM: "3"}, retries=7) == Retry(7, tuple(Cause))
    assert asked({RETRY_NUM: "3"}, retry_on=["hang"]) == Retry(3, (Cause.HANG,))


@pytest.mark.parametrize(
    ("field", "extras"),
    [
        ("danlu.retries", {"retries": -1}),
        ("danlu.retries", {"retries": 101}),
        ("danlu.retries", {"retries": "2"}),
        ("danlu.retry_on", {"retry_on": "node"}),
        ("danlu.retry_on[1]", {"retry_on": ["node", "weather"]}),
        ("danlu.retry_on", {"retry_on": ["node"] * 7}),
    ],
)
def test_a_wrong_field_is_named(field: str, extras: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as refused:
        asked(**extras)
    assert refused.value.params["field"] == field


def test_modelarts_hang_retry_restarts_what_hangs() -> None:
    spec = job_spec(body({RETRY_NUM: "2", "fault-tolerance/hang-retry": "true"}))
    assert spec.hang == Hang(None, HangAction.RESTART)
    assert spec.retry == Retry(2, (Cause.HANG, *FREE))
    assert job_spec(body({"fault-tolerance/hang-retry": "true"})).hang == Hang()


def test_our_fields_about_hangs() -> None:
    assert job_spec(body()).hang == Hang()
    spec = job_spec(body(hang_after_s=60, on_hang="stop"))
    assert spec.hang == Hang(60, HangAction.STOP)
    shown = job(
        JobView(Job("j", "w", spec, 1, "u"), Attempt(AttemptKey("j", 1, "t"), State.QUEUED, 1)), 2
    )
    assert job_spec(shown).hang == spec.hang
    for wrong in ({"hang_after_s": -1}, {"on_hang": "pray"}):
        with pytest.raises(Invalid):
            job_spec(body(**wrong))


def test_the_signal_that_asks_a_program_to_end() -> None:
    """(case 65) SIGTERM unless the job says otherwise, and never SIGKILL."""
    assert job_spec(body()).stop_signal == "SIGTERM"
    spec = job_spec(body(stop_signal="SIGUSR2"))
    shown = job(
        JobView(Job("j", "w", spec, 1, "u"), Attempt(AttemptKey("j", 1, "t"), State.QUEUED, 1)), 2
    )
    assert job_spec(shown).stop_signal == spec.stop_signal == "SIGUSR2"
    for wrong in ("SIGKILL", "TERM", "sigint", 15):
        with pytest.raises(Invalid):
            job_spec(body(stop_signal=wrong))


def test_rules_about_the_log() -> None:
    rules = [{"match": "ECC", "action": "avoid-node"}, {"match": "b*d", "action": "no-retry"}]
    spec = job_spec(body(log_rules=rules))
    assert spec.log_rules == (
        LogRule("ECC", RuleAction.AVOID_NODE),
        LogRule("b*d", RuleAction.NO_RETRY),
    )
    shown = job(
        JobView(Job("j", "w", spec, 1, "u"), Attempt(AttemptKey("j", 1, "t"), State.QUEUED, 1)), 2
    )
    assert job_spec(shown).log_rules == spec.log_rules
    for wrong in ([{"match": "x"}], [{"match": "x", "action": "pray"}], "x"):
        with pytest.raises(Invalid):
            job_spec(body(log_rules=wrong))


@pytest.mark.parametrize(
    "policy",
    [Retry(), Retry(3, FREE), Retry(0, ()), Retry(5, tuple(Cause)), Retry(1, (Cause.HANG,))],
)
def test_a_reply_can_be_sent_back(policy: Retry) -> None:
    """Clients copy a job by sending its details again."""
    spec = job_spec(body(retries=policy.limit, retry_on=[cause.value for cause in policy.on]))
    shown = job(
        JobView(Job("j", "w", spec, 1, "u"), Attempt(AttemptKey("j", 1, "t"), State.QUEUED, 1)), 2
    )
    assert job_spec(shown).retry == spec.retry == policy
