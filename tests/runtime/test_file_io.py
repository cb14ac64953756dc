"""The functions of mox.file, against a storage and on local paths."""

from __future__ import annotations

from pathlib import Path

import pytest

import moxing as mox
from moxing.framework import file
from moxing.framework.file import file_io
from tests.runtime.storage import STAMP, Storage

ODD = "obs://demo/数据/a b+&=#%?.txt"


def test_contents(storage: Storage) -> None:
    mox.file.write(ODD, "一行\n")
    mox.file.append(ODD, "more")
    mox.file.append("s3://demo/new", b"\x00")

    assert mox.file.read(ODD) == "一行\nmore"
    assert mox.file.read("obs://demo/new", binary=True) == b"\x00"
    assert storage.demo == {"数据/a b+&=#%?.txt": "一行\nmore".encode(), "new": b"\x00"}


def test_what_is_there(storage: Storage) -> None:
    storage.put("d/e/f.txt", b"abc")
    storage.put("d/empty/", b"")

    assert [mox.file.exists(f"obs://demo/{key}") for key in ("d", "d/", "d/e/f.txt", "x", "")] == [
        True, True, True, False, True,
    ]  # fmt: skip
    assert not mox.file.exists("obs://nowhere/x")
    assert mox.file.is_directory("obs://demo/d/empty")
    assert not mox.file.is_directory("obs://demo/d/e/f.txt")
    assert mox.file.get_size("obs://demo/d/e/f.txt") == 3
    assert mox.file.get_size("obs://demo/d", recursive=True) == 3
    assert mox.file.stat("obs://demo/d").is_directory
    found = mox.file.stat("obs://demo/d/e/f.txt")
    assert (found.length, found.mtime_nsec, found.is_directory) == (3, STAMP * 10**9, False)


def test_listings_are_whole_page_by_page(storage: Storage) -> None:
    storage.page = 3
    names = [f"n{number:02}" for number in range(10)]
    for name in names:
        storage.put(f"d/{name}", b"")
    storage.put("d/sub/x", b"")
    storage.put("d", b"a file of the same name")

    assert mox.file.list_directory("obs://demo/d") == [*names, "sub"]
    assert mox.file.list_directory("obs://demo/d/", recursive=True) == [*names, "sub", "sub/x"]
    assert list(mox.file.walk("obs://demo/d")) == [
        ("obs://demo/d", ["sub"], names),
        ("obs://demo/d/sub", [], ["x"]),
    ]
    with mox.file.scan_dir("obs://demo/d") as entries:
        assert {(entry.name, entry.is_dir()) for entry in entries} == {
            *((name, False) for name in names),
            ("sub", True),
        }


def test_patterns(storage: Storage) -> None:
    for key in ("a/1.txt", "a/2.txt", "a/b/3.txt", "a/.hidden.txt", "a/[x].txt"):
        storage.put(key, b"")

    def found(pattern: str, *, recursive: bool = False) -> list[str]:
        return mox.file.glob(f"obs://demo/{pattern}", recursive=recursive)

    assert found("a/?.txt") == ["obs://demo/a/1.txt", "obs://demo/a/2.txt"]
    assert found("*/b/*.txt") == ["obs://demo/a/b/3.txt"]
    assert found("a/**/*.txt", recursive=True) == [
        "obs://demo/a/1.txt", "obs://demo/a/2.txt", "obs://demo/a/[x].txt", "obs://demo/a/b/3.txt",
    ]  # fmt: skip
    assert found("a/1.txt") == ["obs://demo/a/1.txt"]
    assert found("a/nothing*") == []


def test_directories_are_made_and_removed(storage: Storage) -> None:
    mox.file.make_dirs("obs://demo/x/y")
    mox.file.make_dirs("obs://demo/x/y")
    mox.file.mk_dir("obs://demo/x/y/")
    assert storage.demo == {"x/y/": b""}
    assert mox.file.list_directory("obs://demo/x/y") == []
    storage.put("x/y/\x01odd\n", b"")
    storage.put("xy", b"")

    mox.file.remove("obs://demo/x", recursive=True)
    assert storage.demo == {"xy": b""}
    mox.file.remove("obs://demo/xy")
    assert storage.demo == {}


def test_one_file_goes_every_way(storage: Storage, tmp_path: Path) -> None:
    here = tmp_path / "deep" / "down" / "x.txt"
    storage.put("x.txt", b"content")

    mox.file.copy("obs://demo/x.txt", here)
    mox.file.copy(here, "obs://demo/y/")
    mox.file.copy("obs://demo/y/x.txt", "obs://demo/z")
    mox.file.copy(here, tmp_path)

    assert here.read_bytes() == (tmp_path / "x.txt").read_bytes() == b"content"
    assert storage.demo == dict.fromkeys(("x.txt", "y/x.txt", "z"), b"content")


def test_moves_between_machine_and_storage(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "f").write_bytes(b"f")
    (tmp_path / "one").write_bytes(b"1")

    mox.file.rename(tmp_path / "one", "obs://demo/one")
    mox.file.rename(tmp_path / "d", "obs://demo/d")
    assert list(tmp_path.iterdir()) == []
    assert storage.demo == {"one": b"1", "d/e/f": b"f"}

    mox.file.rename("obs://demo/d", "obs://demo/moved/d")
    assert storage.demo == {"one": b"1", "moved/d/e/f": b"f"}

    mox.file.rename("obs://demo/moved", tmp_path / "back")
    assert (tmp_path / "back" / "d" / "e" / "f").read_bytes() == b"f"
    assert storage.demo == {"one": b"1"}


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: file.copy("obs://demo/d", "/tmp/x"), IsADirectoryError, "copy_parallel"),
        (lambda: file.copy("obs://demo/none", "/tmp/x"), FileNotFoundError, "demo/none does not"),
        (lambda: file.remove("obs://demo/d"), IsADirectoryError, "recursive=True"),
        (lambda: file.remove("obs://demo", recursive=True), PermissionError, "whole bucket"),
        (lambda: file.read("obs://nowhere/x"), FileNotFoundError, "obs://nowhere/x"),
        (lambda: file.write("obs://nowhere/x", "x"), FileNotFoundError, "no bucket 'nowhere'"),
        (lambda: file.read("obs://demo/d"), IsADirectoryError, "is a directory"),
        (lambda: file.list_directory("obs://demo/d/f"), NotADirectoryError, "is a file"),
        (lambda: file.list_directory("obs://demo/none"), FileNotFoundError, "does not exist"),
        (lambda: file.read("obs:///x"), ValueError, "obs://bucket/key"),
        (lambda: file.File("obs://demo/x", "r+"), ValueError, "r, rb, w, wb, a, ab"),
    ],
)
def test_what_cannot_be_done_is_said(
    storage: Storage, call: object, error: type[Exception], words: str
) -> None:
    storage.put("d/f", b"")

    assert callable(call)
    with pytest.raises(error, match=words):
        call()
    assert storage.demo == {"d/f": b""}


def test_a_directory_of_the_machine_is_not_copied_as_a_file(
    storage: Storage, tmp_path: Path
) -> None:
    with pytest.raises(IsADirectoryError, match="copy_parallel"):
        mox.file.copy(tmp_path, "obs://demo/x")


def test_keys_of_scripts_are_ignored(storage: Storage, capfd: pytest.CaptureFixture[str]) -> None:
    mox.file.set_auth(ak="AKIDOTHER", sk="secret-in-a-script", server="obs.example", is_secure=True)

    mox.file.write("obs://demo/x", "x")

    assert storage.demo == {"x": b"x"}
    said = capfd.readouterr().err
    assert "not used" in said
    assert "secret-in-a-script" not in said


def test_refusals_name_the_storages_words(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DANLU_OBS_ACCESS_KEY", "AKIDWRONG")

    with pytest.raises(PermissionError, match="InvalidAccessKeyId: so"):
        mox.file.read("obs://demo/x")


def test_tuning_attributes_are_taken(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_LARGE_FILE_METHOD", "_NUMBER_OF_PROCESSES", "_LARGE_FILE_TASK_NUM"):
        monkeypatch.setattr(file_io, name, 7)

    file_io.write("obs://demo/x", "x")
    assert file_io.read("obs://demo/x") == "x"


# outside the platform


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DANLU_OBS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "MOXING_OBS_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")


def test_local_paths_need_no_storage(outside: None, tmp_path: Path) -> None:
    """(ModelArts-Lab #1743: no local test)"""
    mox.file.make_dirs(tmp_path / "a" / "b")
    mox.file.write(tmp_path / "a" / "b" / "c.txt", "文")
    mox.file.append(tmp_path / "a" / "b" / "c.txt", "本")
    mox.file.copy_parallel(tmp_path / "a", tmp_path / "copy")

    assert mox.file.read(tmp_path / "copy" / "b" / "c.txt") == "文本"
    assert mox.file.list_directory(tmp_path, recursive=True) == [
        "a", "a/b", "a/b/c.txt", "copy", "copy/b", "copy/b/c.txt",
    ]  # fmt: skip
    assert mox.file.glob(f"{tmp_path}/*/b/*.txt") != []
    mox.file.remove(tmp_path / "copy", recursive=True)
    assert not mox.file.exists(tmp_path / "copy")


def test_objects_need_a_storage_and_the_way_without_is_named(outside: None) -> None:
    with pytest.raises(OSError, match=r"no storage here.*MOXING_OBS_DIR.*/data/x\.txt"):
        mox.file.read("obs://data/x.txt")


def test_the_words_are_chinese_where_people_are(
    outside: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")

    with pytest.raises(OSError, match="此处没有对象存储"):
        mox.file.read("obs://data/x.txt")


def test_a_directory_stands_for_the_storage(
    outside: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOXING_OBS_DIR", str(tmp_path))
    mox.file.make_dirs("obs://data/train")
    mox.file.write("obs://data/train/x", "1")
    mox.file.copy_parallel("obs://data/train", "s3://data/copy/")

    assert (tmp_path / "data" / "copy" / "x").read_text() == "1"
    assert mox.file.exists("obs://data/copy")
    with pytest.raises(ValueError, match="lead out of"):
        mox.file.read("obs://data/../../secret")
