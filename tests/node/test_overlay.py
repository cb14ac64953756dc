"""What a task laid over its environment is read without following it anywhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from danlu.node.overlay import Overlay


@pytest.fixture
def whole(tmp_path: Path) -> Overlay:
    (tmp_path / "lower/a/deep").mkdir(parents=True)
    (tmp_path / "upper/a").mkdir(parents=True)
    for name in ("one", "two", "deep/three"):
        (tmp_path / "lower/a" / name).write_text("below")
    (tmp_path / "upper/a/two").write_text("above")
    (tmp_path / "upper/a/new").write_text("above")
    return Overlay(str(tmp_path / "lower"), str(tmp_path / "upper"))


def test_what_was_written_is_seen_instead(whole: Overlay) -> None:
    assert whole.names("a") == ["deep", "new", "one", "two"]
    assert [whole.text(f"a/{name}") for name in ("one", "two", "deep/three")] == [
        "below", "above", "below",
    ]  # fmt: skip
    assert sorted(whole.changed()) == ["a/new", "a/two"]
    assert [whole.hidden(f"a/{name}") for name in ("one", "two")] == [False, True]
    assert whole.sha256("a/nothing") == whole.text("nothing/at/all") == ""


def test_what_was_removed_is_not_seen(whole: Overlay, tmp_path: Path) -> None:
    try:
        os.mknod(tmp_path / "upper/a/one", stat.S_IFCHR, os.makedev(0, 0))
        os.mknod(tmp_path / "upper/a/deep", stat.S_IFCHR, os.makedev(0, 0))
    except PermissionError:
        pytest.skip("devices are made by root")
    assert whole.names("a") == ["new", "two"]
    assert whole.text("a/deep/three") == ""
    assert whole.hidden("a/deep/three")
    assert sorted(whole.changed()) == ["a/new", "a/two"]


def test_links_and_pipes_lead_nowhere(whole: Overlay, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/METADATA").write_text("secret")
    (tmp_path / "upper/a/out").symlink_to(tmp_path / "secret")
    (tmp_path / "upper/a/file").symlink_to(tmp_path / "secret/METADATA")
    os.mkfifo(tmp_path / "upper/a/pipe")
    assert whole.names("a/out") == []
    assert whole.text("a/out/METADATA") == whole.text("a/file") == whole.text("a/pipe") == ""
    assert {"a/out", "a/file", "a/pipe"} <= set(whole.changed())
