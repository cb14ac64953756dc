"""A directory as the place of outputs: whoever may write there cannot lead an agent elsewhere."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from danlu.node import fetch, folder_target
from danlu.node.folder_target import FolderTarget

DEEP = ".danlu/staging/a/x"


class Place:
    """An output with one file in it, and what lies beside it and is nobody's business."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve() / "out"
        self.target = FolderTarget(self.root)
        self.outside = root / "outside"
        self.outside.mkdir()
        (self.outside / "x").write_bytes(b"theirs")
        self.file = root / "file"
        self.file.write_bytes(b"ours")
        self.target.put(self.file, "sub/x", last=False)
        self.target.put(self.file, DEEP, last=False)

    def swap(self, name: str) -> None:
        """Put a link that leads outside where a directory was."""
        (self.root / name).rename(self.root / "away")
        (self.root / name).symlink_to(self.outside)

    def untouched(self) -> bool:
        found = {path.name: path.read_bytes() for path in self.outside.iterdir()}
        return found == {"x": b"theirs"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


ACTS: dict[str, Callable[[Place], object]] = {
    "put": lambda p: p.target.put(p.file, "sub/x", last=False),
    "put below": lambda p: p.target.put(p.file, "sub/deeper/y", last=True),
    "stream": lambda p: p.target.put_stream(io.BytesIO(b"more"), "sub/x"),
    "move": lambda p: p.target.move(DEEP, "sub/x"),
    "move out": lambda p: p.target.move("sub/x", "taken"),
    "document": lambda p: p.target.document("sub/x"),
    "put document": lambda p: p.target.put_document("sub/x", b"{}", None),
    "clear": lambda p: p.target.clear("sub/"),
}


@pytest.mark.parametrize("act", ACTS)
def test_a_link_where_a_directory_was_is_refused(place: Place, act: str) -> None:
    place.swap("sub")
    with pytest.raises(NotADirectoryError):
        ACTS[act](place)
    assert place.untouched()
    assert not (place.root / "taken").exists()


@pytest.mark.parametrize("act", ["put", "stream", "put document"])
def test_so_is_one_instead_of_the_output_itself(place: Place, act: str) -> None:
    place.root.rename(place.root.with_name("other"))
    place.root.symlink_to(place.outside)
    with pytest.raises(NotADirectoryError):
        ACTS[act](place)
    assert place.untouched()


def test_a_directory_that_is_swapped_in_mid_upload_takes_the_file_with_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = fetch.digest

    def swapped(path: Path) -> str:
        place.swap("sub")
        return digest(path)

    monkeypatch.setattr(folder_target, "digest", swapped)
    place.file.write_bytes(b"new")
    place.target.put(place.file, "sub/x", last=False)
    assert (place.root / "away" / "x").read_bytes() == b"new"
    assert place.untouched()


def test_links_are_neither_read_nor_written_through(place: Place) -> None:
    path = place.root / "sub" / "x"
    path.unlink()
    path.symlink_to(place.outside / "x")
    with pytest.raises(OSError, match="symbolic links"):
        place.target.document("sub/x")
    with pytest.raises(OSError, match="symbolic links"):
        place.target.move("sub/x", "taken")
    assert place.target.settle({"sub/x": len(b"theirs")}) == ["sub/x"]
    place.target.put(place.file, "sub/x", last=False)
    assert (path.is_symlink(), path.read_bytes()) == (False, b"ours")
    assert place.untouched()


def test_what_is_cleared_ends_at_links(place: Place) -> None:
    (place.root / ".danlu/staging/a/link").symlink_to(place.outside)
    kept = place.target.put(place.file, ".danlu/staging/b/y", last=False)
    assert kept
    place.target.clear(".danlu/staging/", keep=".danlu/staging/b/")
    left = [path.name for path in (place.root / ".danlu/staging").iterdir()]
    assert left == ["b"]
    place.target.clear(".danlu/staging/")
    assert not (place.root / ".danlu/staging").exists()
    assert place.untouched()
    place.target.clear("nothing/here/")
