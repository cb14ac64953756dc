"""What git says about a code directory: which commit it is at, and what was changed since."""

from __future__ import annotations

import os

GIT_S = 10.0
DIFF_BYTES = 8 << 20
DIFF_FILE = "uncommitted.diff"
DIFF_WORDS = ("diff", "HEAD", "--binary", "--no-color", "--no-ext-diff", "--no-textconv")
COMMIT, DIRTY, DIFF = "danlu/git-commit", "danlu/git-dirty", "danlu/git-diff"
"""Annotations of a job."""


class State:
    """`diff` is what `git apply` turns the commit into the directory's tracked files with; None
    where it is too large to keep.
    """

    __slots__ = ("commit", "diff")

    def __init__(self, commit: str, diff: bytes | None) -> None:
        self.commit = commit
        self.diff = diff


def look(directory: str) -> State | None:
    """The state of the repository that `directory` lies in; None where there is none, no git, or
    no commit yet.
    """
    if not _in_repository(directory):
        return None
    commit = _git(directory, "rev-parse", "HEAD")
    if commit is None:
        return None
    diff = _git(directory, *DIFF_WORDS, "--", ".")
    if diff is None:
        return None
    return State(commit.decode("ascii", "replace").strip(), None if _large(diff) else diff)


def _large(diff: bytes) -> bool:
    return len(diff) > DIFF_BYTES


def _in_repository(directory: str) -> bool:
    """Without asking git: most code directories are in none, and a process costs milliseconds."""
    place = os.path.abspath(directory)
    while True:
        if os.path.exists(os.path.join(place, ".git")):
            return True
        above = os.path.dirname(place)
        if above == place:
            return False
        place = above


def _git(directory: str, *words: str) -> bytes | None:
    """What git prints; None where it fails. No monitor, hook or diff program of the repository is
    run; its content filters are, as with every `git status`.
    """
    import subprocess

    quiet = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null")
    environ = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
    try:
        done = subprocess.run(
            ["git", "-C", directory, *quiet, *words],
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
