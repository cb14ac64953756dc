"""A directory as a shelf: plain files only, and nothing outside of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from danlu.model.errors import Missing
from danlu.stores.shelf import FolderShelf


def test_files_are_read_by_name(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d/中文 x").write_bytes(b"1" * 3_000_000)
    assert b"".join(FolderShelf(str(tmp_path)).read("d/中文 x")) == b"1" * 3_000_000


@pytest.mark.parametrize(
    "name",
    ["", "..", "../secret", "d/../../secret", "/etc/passwd", "link", "out/secret", "d", "pipe",
     "nowhere", "a//b", "./a", "a\0b", "x" * 300],
)  # fmt: skip
def test_nothing_outside_is_opened(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "out").symlink_to(tmp_path)
    os.mkfifo(root / "pipe")
    with pytest.raises(Missing):
        list(FolderShelf(str(root)).read(name))
