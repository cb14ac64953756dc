"""JSON bodies: only what RFC 8259 allows, within bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from danlu.model import limits
from danlu.model.errors import Invalid
from danlu.wire.body import kind_of, parse

INTEGERS = st.integers(-(1 << 63), (1 << 63) - 1)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | INTEGERS
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_whatever_json_can_say_is_read_as_it_was_said(value: dict[str, Any]) -> None:
    assert parse(json.dumps(value).encode()) == value
    assert parse(json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")) == value


@given(st.binary(max_size=200))
def test_whatever_comes_is_an_object_or_refused(data: bytes) -> None:
    try:
        found = parse(data)
    except Invalid as problem:
        key, said = problem.key, problem.message("zh")
    else:
        assert isinstance(found, dict)
        return
    assert (key, bool(said)) == ("not-json", True)


@pytest.mark.parametrize(
    ("depth", "fine"), [(limits.JSON_DEPTH, True), (limits.JSON_DEPTH + 1, False)]
)
@pytest.mark.parametrize(("opening", "closing"), [('{"a":', "}"), ("[", "]")])
def test_depth_is_bounded_exactly(depth: int, opening: str, closing: str, *, fine: bool) -> None:
    inner = opening * (depth - 1) + "1" + closing * (depth - 1)
    body = f'{{"x": {inner}}}'.encode()
    if fine:
        assert parse(body)
    else:
        with pytest.raises(Invalid, match="nested deeper"):
            parse(body)


def test_brackets_in_strings_are_no_depth() -> None:
    assert parse(json.dumps({"a": "[{" * 1000}).encode())
    assert parse(json.dumps({"a": [[]] * 1000}).encode())


def test_size_is_bounded_exactly() -> None:
    room = limits.BODY_BYTES - len('{"a": ""}')
    assert parse(b'{"a": "%b"}' % (b"x" * room))
    with pytest.raises(Invalid) as caught:
        parse(b'{"a": "%b"}' % (b"x" * (room + 1)))
    assert (caught.value.http, caught.value.key) == (413, "body-too-large")
    assert caught.value.params == {"size": limits.BODY_BYTES + 1, "limit": limits.BODY_BYTES}


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "null"), (True, "a boolean"), (1, "a number"), (1.5, "a number"), ("", "a string"),
     ([], "a list"), ({}, "an object")],
)  # fmt: skip
def test_kinds_have_names(value: object, kind: str) -> None:
    assert kind_of(value) == kind
