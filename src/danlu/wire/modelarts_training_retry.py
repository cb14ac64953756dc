"""How often and after which causes a job is tried again: ModelArts' annotations, and our fields.

ModelArts says it with annotations, all of them strings: `job-retry-num` (1–3) asks for restarts
after faults of the platform, `job-unconditional-retry` for restarts after the script's own failures
too, `hang-retry` after a hang. Our `danlu.retries` and `danlu.retry_on` say it by cause, and go
before annotations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from danlu.model import limits
from danlu.model.errors import Invalid
from danlu.model.hang import Hang, HangAction
from danlu.model.job import JobSpec
from danlu.model.log_rules import MOST_RULES, LogRule, RuleAction
from danlu.model.retry import FREE, Cause, Retry
from danlu.wire.shape import (
    INTEGER,
    STRING,
    Kind,
    Listing,
    Schema,
    Shape,
    Text,
    Whole,
    listing,
    reply,
)

MOST_RETRIES = 100
RETRY_NUM = "fault-tolerance/job-retry-num"
UNCONDITIONAL = "fault-tolerance/job-unconditional-retry"
HANG = "fault-tolerance/hang-retry"
NUMBERS = ("1", "2", "3")
ON = ("true",)
OFF = ("", "false", "0", "off", "no", "none", "null")
"""Values of annotations that ask for nothing."""

FIELDS: dict[str, Kind] = {
    "retries": Whole(0, MOST_RETRIES, "further attempts after the script's own failures"),
    "retry_on": Listing(
        Text(tuple(Cause)),
        most=len(Cause),
        about="causes after which there is a further attempt; default: with retries all of them,"
        " otherwise the platform's (which do not count as retries); [] = none",
    ),
    "hang_after_s": Whole(
        0, limits.TIME_LIMIT_S, "seconds without any sign of life that are a hang; 0 = never"
    ),
    "log_rules": Listing(
        Shape(
            {
                "match": Text(about="text that a line of the log holds; * stands for any text"),
                "action": Text(tuple(RuleAction)),
            },
            required=("match", "action"),
            remedy={"match": "say what to look for", "action": "send no-retry or avoid-node"},
        ),
        most=MOST_RULES,
        about="what follows where the log of a failed attempt has such a line",
    ),
    "on_hang": Text(
        tuple(HangAction), "notify (default), stop, or restart, which counts as a retry"
    ),
}

SCHEMA: dict[str, Schema] = {
    "retries": INTEGER,
    "retry_on": listing(STRING),
    "hang_after_s": INTEGER,
    "on_hang": STRING,
    "log_rules": listing(reply({"match": STRING, "action": STRING})),
}


def policy(annotations: Mapping[str, str], extras: Mapping[str, Any]) -> Retry:
    """The policy that a create body asks for; Invalid for an annotation that says nothing."""
    limit = _number(annotations)
    causes = list(FREE)
    if _switch(annotations, UNCONDITIONAL) and limit:
        causes += [Cause.USER_ERROR, Cause.OUT_OF_MEMORY]
    if _switch(annotations, HANG) and limit:
        causes.append(Cause.HANG)
    if "retries" in extras:
        limit = extras["retries"]
        causes = list(Cause) if limit else list(FREE)
    if "retry_on" in extras:
        causes = [Cause(name) for name in extras["retry_on"]]
    return Retry(limit, tuple(cause for cause in Cause if cause in causes))


def hang(annotations: Mapping[str, str], extras: Mapping[str, Any]) -> Hang:
    """What a create body wants to be done about a hang."""
    restarts = _switch(annotations, HANG) and _number(annotations)
    action = HangAction.RESTART if restarts else HangAction.NOTIFY
    return Hang(extras.get("hang_after_s"), HangAction(extras.get("on_hang", action)))


def shown(spec: JobSpec) -> dict[str, Any]:
    """The fields that make these policies again; none for those that every job has."""
    found: dict[str, Any] = {}
    if spec.retry != Retry():
        found["retries"] = spec.retry.limit
        found["retry_on"] = [cause.value for cause in spec.retry.on]
    if spec.hang.after_s is not None:
        found["hang_after_s"] = spec.hang.after_s
    if spec.hang.action is not HangAction.NOTIFY:
        found["on_hang"] = spec.hang.action.value
    if spec.log_rules:
        found["log_rules"] = [
            {"match": rule.match, "action": rule.action.value} for rule in spec.log_rules
        ]
    return found


def log_rules(extras: Mapping[str, Any]) -> tuple[LogRule, ...]:
    """What a create body says about lines of the log."""
    return tuple(
        LogRule(rule["match"], RuleAction(rule["action"])) for rule in extras.get("log_rules", ())
    )


def _number(annotations: Mapping[str, str]) -> int:
    value = annotations.get(RETRY_NUM, "")
    if value.lower() in OFF:
        return 0
    if value not in NUMBERS:
        expected = f"one of {', '.join(NUMBERS)}"
        field = f"metadata.annotations.{RETRY_NUM}"
        raise Invalid("field-value", field=field, value=value, expected=expected)
    return int(value)


def _switch(annotations: Mapping[str, str], key: str) -> bool:
    value = annotations.get(key, "").lower()
    if value not in (*ON, *OFF):
        field = f"metadata.annotations.{key}"
        raise Invalid("field-value", field=field, value=value, expected="true or false")
    return value in ON
