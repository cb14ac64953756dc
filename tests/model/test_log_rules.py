"""Texts and stars against lines: found where they should be, and never for long."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from danlu.model.errors import Invalid
from danlu.model.log_rules import (
    LINE_BYTES,
    MOST_RULES,
    PATTERN_CHARS,
    Finder,
    LogRule,
    RuleAction,
    holds,
    parts,
)
from danlu.model.rules import check
from tests.contract.samples import spec

AVOID, STOP = RuleAction.AVOID_NODE, RuleAction.NO_RETRY


@pytest.mark.parametrize(
    ("match", "line", "found"),
    [
        ("CUDA error", b"RuntimeError: CUDA error: out of memory", True),
        ("cuda error", b"RuntimeError: CUDA error", False),
        ("NCCL*timeout", b"[rank1] NCCL watchdog saw a timeout of 600 s", True),
        ("timeout*NCCL", b"[rank1] NCCL watchdog saw a timeout of 600 s", False),
        ("**a**", b"xax", True),
        ("a*a", b"a", False),
        ("不收敛", "损失不收敛".encode(), True),
        ("a.c", b"abc", False),
        ("[a-z]+", b"abc", False),
    ],
)
def test_a_pattern_is_text_with_stars(match: str, line: bytes, *, found: bool) -> None:
    assert holds(line, parts(match)) is found


@given(st.text("ab*", min_size=1, max_size=8), st.text("ab", max_size=12))
def test_it_finds_what_a_regular_expression_finds(match: str, line: str) -> None:
    expected = ".*".join(re.escape(part) for part in match.split("*"))
    assert holds(line.encode(), parts(match)) is (re.search(expected, line) is not None)


def test_no_pattern_and_no_line_take_long() -> None:
    """What would keep a regular expression busy for years is answered at once."""
    match = "*a" * (PATTERN_CHARS // 2) + "b"
    finder = Finder([LogRule(match, STOP)] * MOST_RULES)
    for _ in range(200):
        finder.look(b"a" * (1 << 20))
    assert finder.found == []


def test_the_first_line_of_each_action_counts() -> None:
    finder = Finder([LogRule("bad", STOP), LogRule("ECC", AVOID), LogRule("worse", STOP)])
    for line in (b"fine", b"ECC on 3\r", b"ECC on 4", b"worse", b"bad", b"ECC"):
        finder.look(line)
    found = [(one.rule.match, one.line) for one in finder.found]
    assert found == [("ECC", "ECC on 3"), ("worse", "worse")]
    assert finder.done


def test_of_a_long_line_the_beginning_is_looked_at() -> None:
    finder = Finder([LogRule("end", STOP)])
    finder.look(b"x" * LINE_BYTES + b"end")
    assert not finder.found


@pytest.mark.parametrize("match", ["", "*", "***", "a\nb", "x" * (PATTERN_CHARS + 1), "a\0b"])
def test_a_pattern_that_says_nothing_is_refused(match: str) -> None:
    with pytest.raises(Invalid) as refused:
        check(spec(log_rules=(LogRule("fine", STOP), LogRule(match, AVOID))))
    assert refused.value.params["field"] == "danlu.log_rules[1].match"


def test_too_many_rules_are_refused() -> None:
    with pytest.raises(Invalid) as refused:
        check(spec(log_rules=(LogRule("x", STOP),) * (MOST_RULES + 1)))
    assert refused.value.params["field"] == "danlu.log_rules"
