"""The text without which a pattern cannot match."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from danlu.faces.cli.literal import required


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("loss", "loss"), ("^line 29.9$", "line 29"), (r"step \d+: loss=[0-9.]+nan", ": loss="),
        ("colou?r", "colo"), ("ab*c", "a"), ("ab+c", "ab"), (r"a\.b\.c", "a.b.c"), ("a|b", ""),
        (r"\x41bc", ""), (r"a\x20bcd", ""), (r"\101bc", ""),
        ("(?i)error", ""), ("x(abc)?yz", "yz"), ("[abc]def", "def"), ("[]x]def", "def"),
        (r"[\]x]def", "def"), ("a{3}bc", "bc"), (r"\bword\b", "word"), ("", ""), (".*", ""),
        ("错误：.*失败", "错误："), ("(", ""), ("a" * 300, "a" * 256),
    ],
)  # fmt: skip
def test_what_is_required(pattern: str, text: str) -> None:
    assert required(pattern) == text


PARTS = st.sampled_from(
    ["a", "b", "ab", ".", "a*", "b+", "c?", "[ab]", "[^a]", "(ab)", "(a)?", r"\d", r"\.", "a{2}",
     "b{0,1}", "^", "$", "(a(b)c)", "|", r"\w", "[]a]", "()", "中",
     r"\x61", r"\141", r"\x2e", r"\u4e2d"]
)  # fmt: skip
WORDS = st.text("abc.0中", max_size=12)


@given(st.lists(PARTS, max_size=6).map("".join), WORDS)
def test_no_line_that_matches_lacks_it(pattern: str, line: str) -> None:
    try:
        found = re.search(pattern, line)
    except re.error:
        return
    assert found is None or required(pattern) in line
