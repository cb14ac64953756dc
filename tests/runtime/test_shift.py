"""shift('os', 'mox'): Python's own functions take objects as well, and then no more."""

from __future__ import annotations

import builtins
import glob
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import moxing as mox
from tests.runtime.storage import Storage

# The very functions are the point here; pathlib knows no objects.


@pytest.fixture
def shifted(storage: Storage) -> Iterator[Storage]:
    mox.file.shift("os", "mox")
    try:
        yield storage
    finally:
        mox.file.shift("mox", "os")


def test_every_function_of_the_list(shifted: Storage, tmp_path: Path) -> None:
    with open("obs://demo/d/a.json", "w", encoding="utf-8") as file:
        json.dump({"文": 1}, file)
    with io.open(file="obs://demo/d/a.json", encoding="utf-8") as file:  # noqa: UP020 - this one too
        assert json.load(file) == {"文": 1}
    os.makedirs("obs://demo/d/e/f", exist_ok=True)
    os.mkdir("obs://demo/d/g")
    assert os.listdir("obs://demo/d") == os.listdir(path="obs://demo/d") == ["a.json", "e", "g"]
    assert [os.path.exists(f"obs://demo/d/{name}") for name in ("a.json", "e", "x")] == [
        True, True, False,
    ]  # fmt: skip
    assert os.path.isdir("obs://demo/d/g")
    assert os.path.isfile("obs://demo/d/a.json")
    assert not os.path.isfile("obs://demo/d/g")
    assert not os.path.isfile("obs://demo/none")
    size = os.path.getsize("obs://demo/d/a.json")
    assert os.stat("obs://demo/d/a.json").st_size == size == len(shifted.demo["d/a.json"])
    with os.scandir("obs://demo/d") as entries:
        assert {entry.name: entry.is_dir() for entry in entries} == {
            "a.json": False, "e": True, "g": True,
        }  # fmt: skip
    assert next(os.walk("obs://demo/d")) == ("obs://demo/d", ["e", "g"], ["a.json"])
    assert glob.glob("obs://demo/*/*.json") == ["obs://demo/d/a.json"]
    shutil.copyfile("obs://demo/d/a.json", tmp_path / "a.json")
    shutil.copytree(tmp_path, "obs://demo/tree")
    os.rename(src="obs://demo/tree/a.json", dst="obs://demo/b.json")
    os.remove("obs://demo/b.json")
    shutil.rmtree("obs://demo/d")
    assert shifted.demo == {}
    shutil.rmtree("obs://demo/none", ignore_errors=True)


def test_paths_that_were_tidied_up_are_still_objects(shifted: Storage) -> None:
    shifted.put("d/x", b"x")

    assert os.path.exists(os.path.normpath("obs://demo/d//x"))
    assert os.path.exists(Path("obs://demo/d") / "x")


def test_local_files_go_the_way_they_went(shifted: Storage, tmp_path: Path) -> None:
    place = tmp_path / "x"
    with open(place, "x", encoding="latin-1") as file:
        file.write("ä")
    assert place.read_bytes() == b"\xe4"
    assert os.listdir(tmp_path) == ["x"]
    descriptor = os.open(place, os.O_RDONLY)
    assert os.stat(descriptor).st_size == 1
    with open(descriptor, "rb", closefd=True) as file:
        assert file.read() == b"\xe4"
    with pytest.raises(FileNotFoundError):
        os.remove(tmp_path / "none")
    os.remove(place)
    assert shifted.asked == []


def test_back_is_back(storage: Storage) -> None:
    before = (builtins.open, io.open, os.listdir, os.path.exists, shutil.rmtree, glob.glob)
    mox.file.shift("os", "mox")
    mox.file.shift("os", "mox")
    assert os.path.exists is not before[3]
    mox.file.shift("mox", "os")
    assert before == (
        builtins.open, io.open, os.listdir, os.path.exists, shutil.rmtree, glob.glob,
    )  # fmt: skip
    assert not os.path.exists("obs://demo")
    assert storage.asked == []


def test_what_somebody_else_has_replaced_is_left_alone(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    mox.file.shift("os", "mox")

    def theirs(path: str) -> list[str]:
        return [path]

    monkeypatch.setattr(os, "listdir", theirs)
    mox.file.shift("mox", "os")

    assert os.listdir is theirs


def test_other_directions_are_refused() -> None:
    with pytest.raises(ValueError, match=r"shift\('os', 'mox'\)"):
        mox.file.shift("os", "obs")
