"""Code directories: their digest, and the paths that they may hold."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from danlu.model.code import (
    CodeFile,
    CodeLimits,
    check_name,
    check_path,
    check_tree,
    digest,
    is_digest,
    printable,
    target,
)
from danlu.model.errors import Invalid

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
files = st.lists(
    st.builds(
        CodeFile,
        path=names,
        size=st.integers(0, 99),
        sha256=st.sampled_from(["a" * 64, "b" * 64]),
        executable=st.booleans(),
    ),
    max_size=4,
    unique_by=lambda file: file.path,
)


@given(one=files, other=files)
def test_the_digest_tells_trees_apart_and_not_their_order(
    one: list[CodeFile], other: list[CodeFile]
) -> None:
    shuffled = random.Random(1).sample(one, len(one))
    assert digest(one) == digest(shuffled)
    assert (digest(one) == digest(other)) == ({f.record for f in one} == {f.record for f in other})
    assert is_digest(digest(one))


def test_a_name_cannot_play_a_second_record() -> None:
    plain = CodeFile("a", 1, "a" * 64)
    faked = f"a\n- 1 {'a' * 64} 1 b"
    assert digest([CodeFile(faked, 1, "a" * 64)]) != digest([plain, CodeFile("b", 1, "a" * 64)])


def test_the_digest_never_changes_its_meaning() -> None:
    """Stored code is found again by it."""
    tree = [CodeFile("b/é\n", 3, "0" * 64, executable=True), CodeFile("a", 0, "f" * 64)]
    assert digest(tree) == "6506628f0f91814fa5505c2a1ccc734c90158b74978ebe6dd04ff81089d40037"


@pytest.mark.parametrize(
    "path",
    ["a", "a/b", "-rf", ".env", "...", "a b", "a\nb", "丹炉/🔥", "a" * 255, "/".join("a" * 32)],
)
def test_good_path(path: str) -> None:
    check_path(path)


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("", "code-path-outside"),
        ("/etc/passwd", "code-path-outside"),
        ("../a", "code-path-outside"),
        ("a/../b", "code-path-outside"),
        ("a/..", "code-path-outside"),
        ("./a", "code-path-outside"),
        ("a//b", "code-path-outside"),
        ("a/", "code-path-outside"),
        ("a\0b", "code-path-outside"),
        ("a\udcff", "code-path-encoding"),
        ("a" * 256, "code-path-long"),
        ("é" * 128, "code-path-long"),
        ("/".join(["a" * 255] * 4), "code-path-long"),
        ("/".join("a" * 33), "code-path-deep"),
    ],
)
def test_bad_path_is_refused_and_named(path: str, key: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_path(path)
    assert refused.value.key == key
    assert printable(path)[:20] in refused.value.message() or "\0" in path
    assert refused.value.message("zh").encode()


@pytest.mark.parametrize("name", ["", ".", "..", ".complete", "a/b", "a\0", "a\udcff", "é" * 65])
def test_bad_name(name: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_name(name)
    assert refused.value.key == "code-name"


def test_good_name() -> None:
    check_name("my code 丹炉")
    check_name("é" * 64)


def test_a_path_used_twice_or_as_file_and_directory_is_refused() -> None:
    check_tree(["a", "b/a", "b/c/d", "a.b"])
    with pytest.raises(Invalid) as twice:
        check_tree(["a", "b", "a"])
    assert twice.value.key == "code-path-twice"
    with pytest.raises(Invalid) as both:
        check_tree(["a/b/c", "a"])
    assert both.value.key == "code-path-both"


@pytest.mark.parametrize(
    ("path", "link", "expected"),
    [
        ("a", "b", "b"),
        ("d/a", "b", "d/b"),
        ("d/a", "../b", "b"),
        ("d/e/a", "../../b/./c//", "b/c"),
        ("a", "../b", None),
        ("d/a", "../../d/b", None),
        ("a", "/b", None),
        ("d/a", "..", None),
        ("a", "", None),
    ],
)
def test_where_a_link_leads(path: str, link: str, expected: str | None) -> None:
    assert target(path, link) == expected


def test_limits_are_told_with_exact_figures() -> None:
    """(case 99)"""
    limits = CodeLimits()
    limits.check(4096, 134_217_728)
    with pytest.raises(Invalid) as files:
        limits.check(4097, 0)
    assert "4097 files" in files.value.message()
    assert "4096" in files.value.message()
    with pytest.raises(Invalid) as size:
        limits.check(1, 134_217_729)
    assert "134217729 bytes" in size.value.message()
    assert "134217728" in size.value.message()
