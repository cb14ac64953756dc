"""mox.file.copy_parallel: many files, whole, and nothing else touched."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import moxing as mox
from moxing.framework.file import _progress, _transfer, _upload
from tests.faces.cli.house import until
from tests.runtime.storage import Handler, Storage, status
from tests.runtime.test_imports import RUNTIME


def tree(root: Path) -> dict[str, bytes | None]:
    """Every file and directory below it."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else None
        for path in root.rglob("*")
    }


@pytest.fixture
def data(tmp_path: Path) -> Path:
    root = tmp_path / "数据 set"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "deep" / "er" / "空 格+%.txt").write_text("x")
    (root / ".hidden").write_text("")
    for number in range(40):
        (root / f"{number}.bin").write_bytes(os.urandom(number * 100))
    return root


def test_there_and_back_is_the_same(storage: Storage, data: Path, tmp_path: Path) -> None:
    storage.page = 7
    mox.file.copy_parallel(data, "obs://demo/set")
    mox.file.copy_parallel("obs://demo/set/", "s3://demo/copy/", threads=3, is_processing=False)
    mox.file.copy_parallel("obs://demo/copy", tmp_path / "back")

    assert tree(tmp_path / "back") == tree(data)
    assert storage.demo["copy/empty/"] == b""


def test_local_files_that_were_there_stay(storage: Storage, tmp_path: Path) -> None:
    """(ModelArts-Lab #1841: 3.4 GB of local files destroyed)"""
    here = tmp_path / "here"
    (here / "sub").mkdir(parents=True)
    (here / "mine").write_text("mine")
    (here / "sub" / "mine").write_text("mine")
    (here / "both").write_text("old")
    storage.put("d/both", b"new")

    mox.file.copy_parallel("obs://demo/d", here)
    mox.file.copy_parallel(here, "obs://demo/up")

    assert tree(here) == {"mine": b"mine", "sub": None, "sub/mine": b"mine", "both": b"new"}


def test_one_file_and_some_files(storage: Storage, data: Path, tmp_path: Path) -> None:
    mox.file.copy_parallel(data / "7.bin", "obs://demo/seven")
    mox.file.copy_parallel(data, "obs://demo/some", file_list=["3.bin", "deep/er/空 格+%.txt"])
    mox.file.copy_parallel("obs://demo/some", tmp_path / "one", file_list=["3.bin"])

    assert sorted(storage.demo) == ["seven", "some/3.bin", "some/deep/er/空 格+%.txt"]
    assert list(tree(tmp_path / "one")) == ["3.bin"]
    with pytest.raises(ValueError, match="file_list"):
        mox.file.copy_parallel(data, "obs://demo/x", file_list=["../outside"])


def test_large_files_go_in_parts(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_upload, "LARGE", 10_000)
    monkeypatch.setattr(_transfer, "LARGE", 10_000)
    monkeypatch.setattr(_upload, "PART", 3_000)
    (tmp_path / "large").write_bytes(os.urandom(10_001))

    mox.file.copy(tmp_path / "large", "obs://demo/large")
    mox.file.copy("obs://demo/large", tmp_path / "back")

    assert (tmp_path / "back").read_bytes() == storage.demo["large"]
    assert (tmp_path / "back").read_bytes() == (tmp_path / "large").read_bytes()
    assert len([path for path in storage.requests("PUT") if "partNumber" in path]) == 4
    assert storage.uploads == {}


@pytest.mark.parametrize("key", ["../out", "a/../../out", "/abs", "a//b", "a/./b", "x\0y"])
def test_no_key_leads_out_of_the_directory(
    storage: Storage, tmp_path: Path, key: str, capfd: pytest.CaptureFixture[str]
) -> None:
    storage.put(f"d/{key}", b"bad")
    storage.put("d/good", b"good")

    mox.file.copy_parallel("obs://demo/d", tmp_path / "in")

    assert tree(tmp_path) == {"in": None, "in/good": b"good"}
    assert "1 not copied" in capfd.readouterr().err


def test_links_pipes_and_loops(
    storage: Storage, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "file").write_text("x")
    (root / "link").symlink_to("file")
    (root / "sub" / "up").symlink_to("..")
    (root / "broken").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    (root / os.fsdecode(b"\xff")).write_text("")

    mox.file.copy_parallel(root, "obs://demo/d")

    assert storage.demo == {"d/file": b"x", "d/link": b"x"}
    assert "4 not copied" in capfd.readouterr().err


def test_a_directory_is_not_copied_into_itself(storage: Storage, data: Path) -> None:
    for source, target in (
        (str(data), str(data / "sub")),
        (str(data), str(data)),
        ("obs://demo/a", "obs://demo/a/b"),
        ("obs://demo", "obs://demo/b"),
    ):
        storage.put("a/x", b"")
        with pytest.raises(ValueError, match="into itself"):
            mox.file.copy_parallel(source, target)


def test_nothing_half_written_has_its_final_name(storage: Storage, tmp_path: Path) -> None:
    storage.put("d/x", b"x" * 300_000)
    (tmp_path / "x").write_text("old")

    def look(handler: Handler) -> bool:
        seen.append((tmp_path / "x").read_text())
        return False

    seen: list[str] = []
    storage.faults = [look] * 10
    mox.file.copy_parallel("obs://demo/d", tmp_path)

    assert set(seen) == {"old"}
    assert tree(tmp_path) == {"x": b"x" * 300_000}


def test_the_first_error_ends_it_and_names_the_file(storage: Storage, tmp_path: Path) -> None:
    for number in range(200):
        storage.put(f"d/{number:03}", b"x")

    def gone(handler: Handler) -> bool:
        if handler.key == "d/003":
            handler.refuse(403, "AccessDenied")
            return True
        return False

    storage.faults = [gone] * 1000
    with pytest.raises(PermissionError, match="obs://demo/d/003"):
        mox.file.copy_parallel("obs://demo/d", tmp_path / "x", threads=2)
    assert len(storage.requests("GET")) < 100
    assert not [name for name in tree(tmp_path) if name.endswith(".moxing")]


def test_many_processes_may_fill_one_directory(
    storage: Storage, data: Path, tmp_path: Path
) -> None:
    mox.file.copy_parallel(data, "obs://demo/set")
    target = tmp_path / "cache"
    threads = [
        threading.Thread(target=mox.file.copy_parallel, args=("obs://demo/set", target))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert tree(target) == tree(data)


def test_progress_is_a_few_lines(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """(ModelArts-Lab PR #881: cannot tell slow from stuck)"""
    monkeypatch.setattr(_progress, "COUNT_AFTER_S", 0.0)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    now = 0.0
    progress = _progress.Progress("src", "obs://demo/d", lambda: [1 << 20] * 600, lambda: now)
    until(lambda: progress._whole is not None)
    for _ in range(600):
        now += 1.0
        progress.add(1 << 20)
        progress.file()
    progress.over()
    progress.end()

    lines = capfd.readouterr().err.splitlines()
    assert lines[0] == (
        "moxing: src -> obs://demo/d: 9 of 600 files, 10.0 MiB of 600.0 MiB after 10 s"
        " (1.0 MiB/s), 590 s to go"
    )
    assert lines[-1] == "moxing: copied src -> obs://demo/d: 600 files, 600.0 MiB in 600.0 s"
    assert 10 < len(lines) < 20


def test_a_file_that_shrinks_is_said(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "growing"
    file.write_bytes(b"x" * 1000)
    send = _upload.send

    def shrunk(*args: Any) -> None:
        os.truncate(file, 10)
        send(*args)

    monkeypatch.setattr(_transfer, "send", shrunk)
    with pytest.raises(OSError, match="changed while it was copied"):
        mox.file.copy(file, "obs://demo/x")
    assert storage.demo == {}


def test_a_storage_with_a_bad_time(storage: Storage, data: Path, tmp_path: Path) -> None:
    some = [status(503), status(500), *[lambda _: False] * 10]
    storage.faults = some * 4
    mox.file.copy_parallel(data, "obs://demo/set")
    storage.faults = some * 4
    mox.file.copy_parallel("obs://demo/set", tmp_path / "back")

    assert tree(tmp_path / "back") == tree(data)


def test_an_empty_directory_is_one_afterwards(storage: Storage, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    mox.file.copy_parallel(tmp_path / "empty", "obs://demo/empty")
    mox.file.copy_parallel("obs://demo/empty", tmp_path / "back")

    assert mox.file.is_directory("obs://demo/empty")
    assert (tmp_path / "back").is_dir()


def test_a_large_file_on_its_way_is_given_up(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (_upload, _transfer):
        monkeypatch.setattr(module, "LARGE", 1000)
    monkeypatch.setattr(_upload, "PART", 1000)
    monkeypatch.setattr(_upload, "MOST_PARTS", 10**9)
    (tmp_path / "1-large").write_bytes(b"x" * 1_000_000)
    (tmp_path / "2-bad").write_bytes(b"x")

    def refused(handler: Handler) -> bool:
        if handler.key == "d/2-bad":
            handler.refuse(403, "AccessDenied")
            return True
        return False

    storage.faults = [refused] * 2000
    with pytest.raises(PermissionError, match="d/2-bad"):
        mox.file.copy_parallel(tmp_path, "obs://demo/d", threads=2)
    assert len(storage.requests("PUT")) < 900
    assert storage.uploads == {}
    assert storage.demo == {}


def test_a_process_that_is_killed_leaves_nothing_half_written(
    storage: Storage, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    (here / "sub").mkdir(parents=True)
    if _transfer._nameless(str(here)) is None:
        pytest.skip("no files without names on this file system")
    for number in range(4):
        storage.put(f"d/{number}", b"x" * 500_000)
    halfway = threading.Semaphore(0)

    def stalls(handler: Handler) -> bool:
        handler.send_response(206)
        handler.send_header("Content-Length", "500000")
        handler.end_headers()
        handler.wfile.write(b"x" * 300_000)
        handler.wfile.flush()
        halfway.release()
        # Until the other side is gone.
        handler.rfile.read(1)
        handler.close_connection = True
        return True

    storage.faults = [_passes, _passes, *[stalls] * 4]
    env = {name: value for name, value in os.environ.items() if name.startswith("DANLU_OBS")}
    script = f"import moxing as mox; mox.file.copy_parallel('obs://demo/d', {str(here)!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", script], env={**env, "PYTHONPATH": str(RUNTIME)}
    )
    for _ in range(4):
        assert halfway.acquire(timeout=30)
    process.kill()
    process.wait()

    assert tree(here) == {"sub": None}
    mox.file.copy_parallel("obs://demo/d", here)
    assert sorted(tree(here)) == ["0", "1", "2", "3", "sub"]


def _passes(handler: Handler) -> bool:
    return False


def test_where_files_need_names_they_have_one_that_says_so(
    storage: Storage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_transfer, "_nameless", lambda _: None)
    storage.put("d/x", b"x")
    with _transfer.appearing(str(tmp_path / "y")) as file:
        file.write(b"half")
        [draft] = os.listdir(tmp_path)
        assert draft.startswith(".y.")
        assert draft.endswith(".moxing")
    mox.file.copy_parallel("obs://demo/d", tmp_path)

    assert tree(tmp_path) == {"x": b"x", "y": b"half"}


def test_where_a_name_cannot_be_given_the_content_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refused)
    with _transfer.appearing(str(tmp_path / "y")) as file:
        file.write(b"y" * 1_000_000)

    assert tree(tmp_path) == {"y": b"y" * 1_000_000}
