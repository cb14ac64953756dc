"""Storage paths in the three forms that clients send."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from danlu.model.errors import Invalid
from danlu.model.url import LocalUrl, ObjectUrl, parse


@pytest.mark.parametrize("form", ["obs://b/a/c/", "s3://b/a/c/", "/b/a/c/"])
def test_three_forms_name_one_place(form: str) -> None:
    assert parse(form, "x") == ObjectUrl("b", "a/c/")


def test_parts() -> None:
    url = ObjectUrl("b", "a/c")
    assert (url.directory, url.name, str(url.child("d"))) == ("a/c/", "c", "obs://b/a/c/d")
    assert ObjectUrl("b", "").name == "b"
    assert LocalUrl("/").name == "root"


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("file:///a//b/.", "/a/b"),
        ("file:////a/./b//", "/a/b/"),
        ("file:///.", "/"),
        ("file:///a/..b", "/a/..b"),
    ],
)
def test_a_local_place_has_one_spelling(written: str, path: str) -> None:
    assert parse(written, "f") == LocalUrl(path)


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "b/a",
        "obs://",
        "obs:///a",
        "http://b/a",
        "obs://b/../a",
        "obs://b/./a",
        "obs://b/\0",
        "obs://b/\ud800",
        "file://relative",
        "file:///a/../b",
        "obs://b/" + "k" * 1025,
    ],
)
def test_what_is_no_place(bad: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse(bad, "some.field")
    assert "some.field" in str(caught.value)


@given(st.text())
def test_any_text_is_a_place_or_a_clear_no(value: str) -> None:
    try:
        url = parse(value, "f")
    except Invalid:
        return
    assert parse(str(url), "f") == url
