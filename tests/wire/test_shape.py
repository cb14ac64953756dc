"""Declarations of JSON: what they read is what their schema says."""

from __future__ import annotations

from typing import Any

import pytest

from danlu.model.errors import Invalid
from danlu.wire.shape import (
    ABSENT,
    Flag,
    Kind,
    Listing,
    Mapped,
    ReplyOnly,
    Shape,
    Text,
    Unsupported,
    Whole,
    empty,
)

POINT = Shape(
    {
        "x": Whole(0, 9),
        "y": Whole(),
        "label": Text(("a", "b")),
        "old": Unsupported("leave it out", ("no",)),
    },
    required=("x",),
    remedy={"x": "say where"},
)  # fmt: skip


def refused(kind: Kind, value: Any, at: str = "f") -> Invalid:
    with pytest.raises(Invalid) as caught:
        kind.read(value, at)
    assert caught.value.message("en")
    assert caught.value.message("zh")
    return caught.value


def test_fields_are_read_and_null_counts_as_left_out() -> None:
    assert POINT.read({"x": 1, "y": None, "label": "a"}, "") == {"x": 1, "label": "a"}
    assert POINT.read({"x": 2.0}, "") == {"x": 2}


@pytest.mark.parametrize(
    ("value", "key", "field"),
    [
        ([], "field-type", "at"),
        ({}, "field-missing", "at.x"),
        ({"x": None}, "field-missing", "at.x"),
        ({"x": "1"}, "field-type", "at.x"),
        ({"x": True}, "field-type", "at.x"),
        ({"x": 1.5}, "field-type", "at.x"),
        ({"x": 10}, "field-value", "at.x"),
        ({"x": -1}, "field-value", "at.x"),
        ({"x": 1, "label": "c"}, "field-value", "at.label"),
        ({"x": 1, "label": 1}, "field-type", "at.label"),
        ({"x": 1, "z": 1}, "field-unknown", "at.z"),
        ({"x": 1, "Z": None}, "field-unknown", "at.Z"),
        ({"x": 1, "old": "yes"}, "field-unsupported", "at.old"),
        ({"x": 1, "old": {"a": [{"b": 1}]}}, "field-unsupported", "at.old"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(value: Any, key: str, field: str) -> None:
    problem = refused(POINT, value, "at")
    assert (problem.key, problem.params["field"]) == (key, field)


@pytest.mark.parametrize(
    "value", [None, "", "no", [], {}, False, 0, {"a": {"b": []}}, [{}, {"c": ""}], 0.0]
)
def test_an_unsupported_field_that_says_nothing_is_taken(value: Any) -> None:
    assert POINT.read({"x": 1, "old": value}, "") == {"x": 1}
    assert value == "no" or empty(value)


def test_lists_name_the_entry() -> None:
    points = Listing(POINT, most=2)
    assert points.read([{"x": 1}, None], "p") == [{"x": 1}]
    assert refused(points, [{"x": 1}, {}], "p").params["field"] == "p[1].x"
    assert refused(points, [{"x": 1}] * 3, "p").key == "too-many"
    assert refused(points, {}, "p").key == "field-type"


def test_free_names_keep_their_values_kind() -> None:
    texts = Mapped(Text())
    assert texts.read({"a": "1", "b": None}, "m") == {"a": "1"}
    assert refused(texts, {"a": 1}, "m").params["field"] == "m.a"
    assert refused(texts, [], "m").key == "field-type"


def test_flags_are_booleans_alone() -> None:
    assert Flag().read(False, "f") is False
    for value in (0, 1, "true", None):
        assert refused(Flag(), value).key == "field-type"


def test_what_only_replies_hold_is_not_looked_at() -> None:
    assert ReplyOnly().read({"whatever": [1]}, "f") is ABSENT


def test_a_declaration_describes_itself() -> None:
    schema = POINT.schema()
    assert schema["required"] == ["x"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["x"] == {"type": "integer", "minimum": 0, "maximum": 9}
    assert schema["properties"]["label"]["enum"] == ["a", "b", None]
    assert "leave it out" in schema["properties"]["old"]["description"]
