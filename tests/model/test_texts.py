"""Every sentence exists in both languages and takes the same values."""

from __future__ import annotations

import ast
import string
from pathlib import Path

import pytest

import danlu
from danlu.model.reason import BLAME, ReasonCode
from danlu.model.texts import MAX_VALUE_CHARS, TEXTS, text
from danlu.model.texts.errors import ERRORS
from danlu.model.texts.events import EVENTS
from danlu.model.texts.images import IMAGES
from danlu.model.texts.lab import LAB_PAGES
from danlu.model.texts.notebooks import NOTEBOOK_EVENTS
from danlu.model.texts.obs import OBS_ERRORS
from danlu.model.texts.phrases import PARTS, PHRASES
from danlu.model.texts.reasons import REASONS

SOURCE = Path(danlu.__file__).parent
RAISED = {**ERRORS, **OBS_ERRORS}


def _fields(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


@pytest.mark.parametrize("key", sorted(TEXTS))
def test_both_languages_take_the_same_values(key: str) -> None:
    english, chinese = TEXTS[key]
    assert english.strip()
    assert chinese.strip()
    assert _fields(chinese) <= _fields(english)
    assert any("\u4e00" <= c <= "\u9fff" for c in chinese)


def test_no_key_stands_in_two_tables() -> None:
    tables = (ERRORS, REASONS, EVENTS, IMAGES, OBS_ERRORS, LAB_PAGES, NOTEBOOK_EVENTS)
    assert len(TEXTS) == sum(map(len, tables))


def test_every_reason_has_a_text_and_a_blame() -> None:
    assert {str(code) for code in ReasonCode} <= REASONS.keys()
    assert BLAME.keys() == set(ReasonCode)


def test_values_are_shortened_and_cannot_steer_a_terminal() -> None:
    said = text("obs-url", field="x", value="\x1b[2J" + "a" * 1000)
    assert "\x1b" not in said
    assert "characters" in said
    assert len(said) < MAX_VALUE_CHARS + 400


def test_every_error_in_the_source_has_its_text_and_its_values() -> None:
    """A key that is raised but not written, or a value that is missing, would show only when
    something has already gone wrong."""
    classes = {"Invalid", "Denied", "Missing", "Refused", "EngineError", "Unavailable"}
    wrong = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            if node.func.id not in classes or not node.args:
                continue
            key = node.args[0]
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                continue
            given = {keyword.arg for keyword in node.keywords}
            if key.value not in RAISED:
                wrong.append(f"{path.name}:{node.lineno} {key.value} has no text")
            elif None not in given and not _fields(RAISED[key.value][0]) <= given:
                missing = _fields(RAISED[key.value][0]) - given
                wrong.append(f"{path.name}:{node.lineno} {key.value} lacks {missing}")
    assert wrong == []


def test_a_cause_inside_an_event_is_told_in_the_readers_language() -> None:
    told = {"because": "exit", "task": "worker-0", "exit_code": 3}
    assert text("job-failed", "en", **told) == "failed: task worker-0 exited with code 3"
    assert "退出码 3" in text("job-failed", "zh", **told)


def _phrases_of(tree: ast.Module) -> set[str]:
    """What the source hands to texts as a phrase; a value inside one is `{}`."""
    found: set[str] = set()

    def take(node: ast.expr) -> None:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = (p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
            found.add("".join(map(str, parts)))
        elif isinstance(node, ast.IfExp):
            take(node.body)
            take(node.orelse)
        elif isinstance(node, ast.Dict):
            for value in node.values:
                take(value)

    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg in PARTS:
                    take(keyword.value)
    return found


def test_every_phrase_in_the_source_has_its_chinese() -> None:
    source = SOURCE.rglob("*.py")
    used = {one for path in source for one in _phrases_of(ast.parse(path.read_text("utf-8")))}
    assert len(used) > 40
    assert sorted(used - PHRASES.keys() - {""}) == []


def test_a_phrase_with_a_value_keeps_the_value() -> None:
    said = text("field-value", "zh", field="x", value=0, expected="a number from 1 to 3")
    assert "1 至 3 之间的数字" in said
