"""mox.file.File: objects as files."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

import moxing as mox
from moxing.framework.file import _streams, _upload
from tests.runtime.storage import KEYS, Object, Storage
from tests.runtime.test_imports import RUNTIME

URL = "obs://demo/file"


def test_reading_like_a_file(storage: Storage) -> None:
    storage.put("file", "eins\nzwei 二\n\ndrei".encode())

    with mox.file.File(URL, "r") as file:
        assert file.readline() == "eins\n"
        assert file.readlines() == ["zwei 二\n", "\n", "drei"]
    assert [line.strip() for line in mox.file.File(URL)] == ["eins", "zwei 二", "", "drei"]
    with mox.file.File(URL, "rb") as file:
        assert file.read(4) == b"eins"
        assert file.seek(-4, os.SEEK_END) == file.tell()
        assert file.read() == b"drei"
        assert file.seek(0) == 0
        assert file.read() == storage.demo["file"]


def test_writing_like_a_file(storage: Storage) -> None:
    with mox.file.File(URL, "w") as file:
        csv.writer(file).writerows([["a", 1], ["b", 2]])
        assert storage.demo == {}
    assert storage.demo["file"] == b"a,1\r\nb,2\r\n"
    with mox.file.File(URL, "wb") as file:
        file.write(b"xxxx")
        file.seek(1)
        file.write(memoryview(b"yy"))
        assert file.tell() == 3
        file.truncate(3)
    assert storage.demo["file"] == b"xyy"


def test_libraries_take_such_files(storage: Storage) -> None:
    with mox.file.File(URL, "wb") as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("inside.txt", "content" * 1000)
    with mox.file.File(URL, "rb") as file, zipfile.ZipFile(file) as archive:
        assert archive.read("inside.txt") == b"content" * 1000


def test_appending(storage: Storage) -> None:
    with mox.file.File(URL, "a") as file:
        file.write("one\n")
    with mox.file.File(URL, "ab") as file:
        assert file.tell() == 4
        file.write(b"two\n")
        with pytest.raises(io.UnsupportedOperation):
            file.seek(0)
    assert storage.demo["file"] == b"one\ntwo\n"


def test_two_who_append_lose_nothing(storage: Storage) -> None:
    first, second = mox.file.File(URL, "a"), mox.file.File(URL, "a")
    first.write("first\n")
    second.write("second\n")
    second.close()

    def meanwhile(handler: object) -> bool:
        storage.put("file", storage.demo["file"] + b"third\n")
        return False

    # Another one appends between the moment at which the first looks and the one at which it puts.
    storage.faults = [lambda _: False, lambda _: False, meanwhile]
    first.close()

    assert storage.demo["file"] == b"second\nthird\nfirst\n"


def test_many_who_append_lose_nothing_and_repeat_nothing(storage: Storage) -> None:
    def append(name: int) -> None:
        for number in range(10):
            mox.file.append(URL, f"{name}:{number}\n")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, range(4)))

    lines = storage.demo["file"].decode().split()
    assert sorted(lines) == sorted(f"{name}:{number}" for name in range(4) for number in range(10))


def test_what_ends_with_an_error_is_not_stored(
    storage: Storage, capfd: pytest.CaptureFixture[str]
) -> None:
    storage.put("file", b"the good checkpoint")

    for mode in ("w", "wb"):
        with pytest.raises(KeyError):
            _interrupted(mode)

    assert storage.demo == {"file": b"the good checkpoint"}
    assert "obs://demo/file was not stored" in capfd.readouterr().err


def _interrupted(mode: str) -> None:
    with mox.file.File(URL, mode) as file:
        file.write("half" if mode == "w" else b"half")
        raise KeyError


def test_what_a_script_forgets_to_close_is_stored(storage: Storage) -> None:
    script = (
        "import moxing as mox\n"
        "mox.file.File('obs://demo/dropped', 'w').write('x')\n"
        "kept = mox.file.File('obs://demo/kept', 'w')\n"
        "kept.write('y')\n"
    )
    env = {
        "PYTHONPATH": str(RUNTIME), "DANLU_OBS_ENDPOINT": storage.url,
        "DANLU_OBS_ACCESS_KEY": KEYS[0], "DANLU_OBS_SECRET_KEY": KEYS[1],
    }  # fmt: skip
    subprocess.run([sys.executable, "-c", script], env=env, check=True)

    assert storage.demo == {"dropped": b"x", "kept": b"y"}


def test_much_goes_through_a_file_and_in_parts(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("IN_MEMORY", 100), ("LARGE", 1000), ("PART", 300)):
        monkeypatch.setattr(_upload, name, value)
    monkeypatch.setattr(_streams, "IN_MEMORY", 100)
    for size in (99, 500, 2000):
        data = os.urandom(size)
        with mox.file.File(URL, "wb") as file:
            for start in range(0, size, 17):
                file.write(data[start : start + 17])
        assert storage.demo["file"] == data
        mox.file.append(URL, data)
        assert storage.demo["file"] == data + data
    assert len([path for path in storage.requests("PUT") if "partNumber" in path]) == 7
    assert storage.uploads == {}


def test_a_reader_has_one_version(storage: Storage) -> None:
    storage.put("file", b"a" * (1 << 20))
    with mox.file.File(URL, "rb") as file:
        file.read(10)
        storage.put("file", b"b" * (1 << 20))
        file.seek(1 << 19)
        with pytest.raises(OSError, match="was replaced while it was read"):
            file.read(10)


def test_a_forked_process_reads_for_itself(storage: Storage) -> None:
    data = os.urandom(6 << 20)
    storage.put("file", data)
    with mox.file.File(URL, "rb") as file:
        assert file.read(10) == data[:10]
        file.seek(3 << 20)
        child = os.fork()
        if child == 0:
            os._exit(0 if file.read(1 << 20) == data[3 << 20 : 4 << 20] else 1)
        assert file.read(1 << 20) == data[3 << 20 : 4 << 20]
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_damage_on_the_way_is_noticed(storage: Storage, tmp_path: object) -> None:
    storage.buckets["demo"]["file"] = Object(b"damaged", "0" * 32)

    with pytest.raises(OSError, match="arrived damaged"):
        mox.file.copy(URL, f"{tmp_path}/x")
    assert os.listdir(str(tmp_path)) == []
