"""Code archives from strangers: what they may cost, and how a refusal is told."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from danlu.flow import code
from danlu.flow.code import store_archive
from danlu.model.code import CodeLimits
from danlu.model.errors import Invalid
from danlu.stores.folder import FolderStore
from tests.flow.archives import BUCKET, archive, info, member, opened, special, take


@pytest.fixture
def objects(tmp_path: Path) -> Iterator[FolderStore]:
    with opened(tmp_path) as store:
        yield store


def test_too_many_files_are_told_exactly(objects: FolderStore) -> None:
    """(case 99)"""
    data = archive({f"f{number}": (b"x", False) for number in range(13)})
    with pytest.raises(Invalid) as refused:
        take(objects, data, limits=CodeLimits(files=12))
    assert refused.value.key == "code-too-many-files"
    assert refused.value.params == {"count": 13, "limit": 12}
    assert take(objects, data, limits=CodeLimits(files=13)).files == 13


def test_too_many_bytes_are_told_exactly(objects: FolderStore) -> None:
    """(case 99)"""
    data = archive({"a": (bytes(700), False), "b": (bytes(301), False)})
    with pytest.raises(Invalid) as refused:
        take(objects, data, limits=CodeLimits(size=1000))
    assert refused.value.key == "code-too-large"
    assert refused.value.params == {"size": 1001, "limit": 1000}
    assert take(objects, data, limits=CodeLimits(size=1001)).size == 1001


def test_links_count_as_what_they_become(objects: FolderStore) -> None:
    links = [info(f"l{number}", tarfile.SYMTYPE, "big") for number in range(20)]
    data = member("big", bytes(1000)) + special(*links)
    with pytest.raises(Invalid) as refused:
        take(objects, data, limits=CodeLimits(size=20_999))
    assert refused.value.params == {"size": 21_000, "limit": 20_999}
    assert take(objects, data, limits=CodeLimits(size=21_000)).files == 21


class Endless(io.RawIOBase):
    """An archive that never ends: the same blocks again and again."""

    def __init__(self, make: Callable[[int], bytes]) -> None:
        self._make = make
        self._number = 0
        self._rest = b""
        self.given = 0

    def read(self, size: int = -1, /) -> bytes:
        while len(self._rest) < size:
            self._rest += self._make(self._number)
            self._number += 1
        data, self._rest = self._rest[:size], self._rest[size:]
        self.given += len(data)
        return data


@pytest.mark.parametrize(
    "make",
    [
        lambda number: info(f"f{number}").tobuf(),
        lambda number: info(f"d{number}", tarfile.DIRTYPE).tobuf(),
        lambda number: info(f"l{number}", tarfile.SYMTYPE, "a").tobuf(),
        lambda number: info(f"f{number}", size=1 << 20).tobuf() + bytes(1 << 20),
        lambda number: info("one", size=1 << 32).tobuf() if number == 0 else bytes(1 << 20),
    ],
    ids=["files", "directories", "links", "content", "one file"],
)
def test_an_endless_archive_is_given_up(
    objects: FolderStore, make: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code, "MOST_ENTRIES", 2000)
    endless = Endless(make)
    with pytest.raises(Invalid) as refused:
        store_archive(
            objects,
            BUCKET,
            endless,  # type: ignore[arg-type]  # `read` is all that is used
            "code",
            CodeLimits(files=100, size=8 << 20),
        )
    assert refused.value.key in {"code-too-many-files", "code-too-large"}
    assert "more than" in refused.value.message()
    assert endless.given < 100 << 20


def test_a_bomb_is_given_up_early(objects: FolderStore) -> None:
    bomb = gzip.compress(archive({"zeros": (bytes(50 << 20), False)}))
    with pytest.raises(Invalid) as refused:
        take(objects, bomb)
    assert refused.value.key == "code-archive"
    assert "200 times" in refused.value.message()


MEMORY_SCRIPT = """
import io, resource, sys, tarfile
from danlu.flow.code import store_archive
from danlu.model import tar
from danlu.ports.objects import ObjectInfo
from danlu.stores.folder import FolderStore

class Archive:
    def __init__(self):
        self.parts = self.make()
        self.rest = b""
    def make(self):
        yield tar.encode("one", 40 << 20, executable=False)
        for _ in range(160):
            yield bytes(256 << 10)
        for number in range(80):
            yield tar.encode(f"f{number}", 1 << 20, executable=False)
            yield bytes(1 << 20)
        yield tar.END
    def read(self, size):
        while len(self.rest) < size:
            part = next(self.parts, None)
            if part is None:
                break
            self.rest += part
        data, self.rest = self.rest[:size], self.rest[size:]
        return data

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

store = FolderStore(sys.argv[1])
store.create_bucket("danlu")
before = peak()
store_archive(store, "danlu", Archive(), "code")
print(peak() - before)
"""


def test_memory_stays_small(tmp_path: Path) -> None:
    """120 MiB of code, of which 40 are one file. (case 98)"""
    done = subprocess.run(
        [sys.executable, "-c", MEMORY_SCRIPT, str(tmp_path / "objects")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(done.stdout) < 32 << 20
