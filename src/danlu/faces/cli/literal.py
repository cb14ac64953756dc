"""A text without which a regular expression cannot match: what a server may look for cheaply."""

from __future__ import annotations

import re

SPECIAL = frozenset(".^$*+?{}[]()|\\")
MOST_CHARS = 256
CODED = re.compile(r"\\[0-9xuUN]")
"""A character by its number or name, or a group again: what follows is no text of its own."""


def required(pattern: str) -> str:
    """The longest plain text that every match of `pattern` holds; empty where there is none that
    is certain.
    """
    if "(?" in pattern or "|" in pattern or CODED.search(pattern):
        return ""
    runs, run, at, depth = [""], "", 0, 0
    while at < len(pattern):
        c = pattern[at]
        at += 1
        if c in "*?{":
            runs.append(run[:-1])  # what stands before it may be missing
            run = ""
            if c == "{":
                at = max(at, pattern.find("}", at) + 1)
        elif c == "+":
            runs.append(run)
            run = ""
        elif c == "\\" and at < len(pattern) and not pattern[at].isalnum():
            run += pattern[at] if not depth else ""
            at += 1
        elif c in SPECIAL:
            runs.append(run)
            run = ""
            depth += (c == "(") - (c == ")")
            at += c == "\\"
            if c == "[":
                at = _behind_set(pattern, at)
        elif not depth:
            run += c
    runs.append(run)
    return max(runs, key=len)[:MOST_CHARS]


def _behind_set(pattern: str, at: int) -> int:
    """Where a set of characters ends that begins in front of `at`."""
    at += pattern[at : at + 1] == "^"
    at += pattern[at : at + 1] == "]"
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1
