"""`.danluignore` reads like gitignore; git itself is asked wherever it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from danlu.faces.cli import code, ignore
from danlu.faces.cli.ignore import Ignore
from tests.services import require


@pytest.mark.parametrize(
    ("pattern", "left_out", "kept"),
    [
        ("a", ["a", "b/a"], ["ab", "ba"]),
        ("/a", ["a"], ["b/a"]),
        ("b/a", ["b/a"], ["a", "c/b/a"]),
        ("*.log", ["x.log", "b/.log"], ["x.logs", "x.log.txt"]),
        ("b/*", ["b/a"], ["b", "b/c/d"]),
        ("**/a", ["a", "b/a", "b/c/a"], ["b/xa"]),
        ("b/**", ["b/a", "b/c/d"], ["b", "bb/a"]),
        ("b/**/a", ["b/a", "b/c/a", "b/c/d/a"], ["ba", "b/xa"]),
        ("a**b", ["ab", "axxb", "d/axb"], ["a/b"]),
        ("a?c", ["abc", "a☃c"], ["ac", "a/c"]),
        ("[ab]c", ["ac", "bc"], ["cc", "c"]),
        ("[!ab]c", ["cc"], ["ac", "/c"]),
        ("[^ab]c", ["cc"], ["ac"]),
        ("[a-c]", ["b"], ["d", "-"]),
        ("[]a]", ["]", "a"], ["b"]),
        ("[a-]", ["-", "a"], ["b"]),
        ("[[:digit:]x]", ["5", "x"], ["y", ":"]),
        (r"[\]]", ["]"], ["\\"]),
        (r"\#a", ["#a"], ["a"]),
        (r"\!a", ["!a"], ["a"]),
        (r"\*", ["*"], ["a"]),
        ("#a", [], ["#a", "a"]),
        ("", [], ["a"]),
        ("/", [], ["a"]),
        ("a ", ["a"], ["a "]),
        (r"a\ ", ["a "], ["a"]),
        ("a\r", ["a"], []),
        ("[a", [], ["a", "[a"]),
        ("a\\", [], ["a", "a\\"]),
        ("丹炉/*.pt", ["丹炉/a.pt"], ["丹炉/a/b.pt"]),
        ("a.b", ["a.b"], ["axb"]),
        ("(a|b)+", ["(a|b)+"], ["a", "b"]),
    ],
)
def test_a_pattern(pattern: str, left_out: list[str], kept: list[str]) -> None:
    rules = Ignore([pattern])
    assert [path for path in left_out if not rules.leaves_out(path, directory=False)] == []
    assert [path for path in kept if rules.leaves_out(path, directory=False)] == []


def test_a_slash_at_the_end_means_directories() -> None:
    rules = Ignore(["build/"])
    assert rules.leaves_out("build", directory=True)
    assert rules.leaves_out("a/build", directory=True)
    assert not rules.leaves_out("build", directory=False)


def test_the_last_rule_that_fits_decides() -> None:
    rules = Ignore(["*.log", "!keep.log", "/x/keep.log"])
    assert rules.leaves_out("a.log", directory=False)
    assert not rules.leaves_out("keep.log", directory=False)
    assert rules.leaves_out("x/keep.log", directory=False)


# Only ASCII: `?` is one character to us and one byte to git.
names = st.sampled_from(["a", "b", "ab", "a.log", "b c", "[a]", "-", "!a", "#a", "a\\b"])
trees = st.sets(st.lists(names, min_size=1, max_size=3).map("/".join), min_size=1, max_size=8)
PIECES = """a b ab .log * ** ? / /**/ [ab] [!a] [a-b] []a] [ ] \\ \\a \\* # - [[:alpha:]] [^b-]"""
pieces = st.sampled_from([*PIECES.split(), " "])
lines = st.lists(
    st.tuples(
        st.sampled_from(["", "!"]), st.lists(pieces, min_size=1, max_size=5).map("".join)
    ).map("".join),
    max_size=4,
)


@pytest.fixture(scope="module")
def repository() -> Path:
    require(shutil.which("git"), "git: apt-get install git")
    return Path(shutil.which("git") or "")


@settings(
    max_examples=int(os.environ.get("DANLU_EXAMPLES", "120")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(tree=trees, rules=lines)
@example(tree={"a/b", "a/ab", "b"}, rules=["a/*", "!a/b"])
@example(tree={"a/b", "ab"}, rules=["a", "!a/b"])  # what is inside an ignored directory stays out
def test_git_agrees(repository: Path, tree: set[str], rules: list[str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        for path in tree:
            try:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_bytes(b"")
            except OSError:
                continue  # a file stands where a directory would have to
        text = "\n".join(rules) + "\n"
        (root / ignore.FILE).write_text(text)
        (root / ".gitignore").write_text(text)
        assert _ours(root) == _gits(root, repository), text


def _ours(root: Path) -> list[str]:
    return [file.path for file in code.scan(root).files]


def _gits(root: Path, git: Path) -> list[str]:
    environment = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "HOME": str(root)}
    subprocess.run([git, "init", "-q", root], check=True, env=environment)
    argv = [
        str(git),
        "-C",
        str(root),
        "ls-files",
        "--others",
        "--exclude-per-directory=.gitignore",
        "-z",
    ]
    listed = subprocess.run(argv, check=True, env=environment, capture_output=True).stdout
    return sorted(os.fsdecode(listed).split("\0")[:-1], key=os.fsencode)
