"""Directories with owners: above, below, beside."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from danlu.model.prefixes import Prefixes


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("obs://b/out/a/", "one"),
        ("obs://b/out/a", "one"),
        ("obs://b/out/a/deep/er", "one"),
        ("obs://b/out/", "one"),
        ("obs://b/", "one"),
        ("obs://b/out/ab/", None),
        ("obs://b/out/b/", None),
        ("obs://other/out/a/", None),
        ("file:///data/x", "two"),
        ("file:///data/x/y", "two"),
        ("file:///", "two"),
        ("file:///datax", None),
    ],
)
def test_a_directory_is_taken_by_those_above_and_below_it(path: str, owner: str | None) -> None:
    taken = Prefixes()
    taken.add("obs://b/out/a/", "one")
    taken.add("file:///data/x", "two")
    assert taken.owner(path) == owner


def test_only_its_owner_gives_a_directory_back() -> None:
    taken = Prefixes()
    taken.add("x/a", "one")
    taken.add("x/a/", "two")
    taken.remove("x/a", "two")
    assert taken.owner("x/a") == "one"
    taken.remove("x/a", "one")
    assert taken.owner("x/a") is None
    taken.remove("x/a", "one")


PATHS = st.lists(st.sampled_from("ab"), min_size=1, max_size=4).map("/".join)


@given(st.lists(PATHS, max_size=6, unique=True), PATHS)
def test_it_answers_as_looking_at_every_directory_would(known: list[str], asked: str) -> None:
    taken = Prefixes()
    for path in known:
        taken.add(path, path)
    where = f"{asked}/"
    near = {p for p in known if where.startswith(f"{p}/") or f"{p}/".startswith(where)}
    assert (taken.owner(asked) in near) if near else taken.owner(asked) is None
