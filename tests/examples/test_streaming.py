"""The reader of shards: every sample once, whatever happens on the way."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.services import ROOT, torch_python

FOLDER = ROOT / "examples" / "streaming"


@pytest.fixture
def shards(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    import shards

    yield shards
    sys.modules.pop("shards")


def test_what_is_written_is_read(shards: ModuleType, tmp_path: Path) -> None:
    shards.write(str(tmp_path / "s"), 3, 10, shards.synthetic)
    storage, address = shards.storage_of(str(tmp_path / "s"))

    found = list(shards.samples(storage, storage.list(address)))

    assert [one["__key__"] for one in found] == [f"{number:08}".encode() for number in range(30)]
    assert all(set(json.loads(one["json"])) == {"x", "label"} for one in found)


def test_the_files_of_a_sample_are_joined(shards: ModuleType) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name in ("a/1.jpg", "a/1.seg.png", "a/2.jpg", "b/2.jpg"):
            member = tarfile.TarInfo(name)
            member.size = len(name)
            tar.addfile(member, io.BytesIO(name.encode()))
    stream.seek(0)
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        found = list(shards._grouped(tar))

    assert found == [
        {"__key__": b"a/1", "jpg": b"a/1.jpg", "seg.png": b"a/1.seg.png"},
        {"__key__": b"a/2", "jpg": b"a/2.jpg"},
        {"__key__": b"b/2", "jpg": b"b/2.jpg"},
    ]


@pytest.mark.parametrize(("world", "workers"), [(1, 1), (2, 3), (4, 4)])
def test_every_shard_is_somebodys(shards: ModuleType, world: int, workers: int) -> None:
    names = [f"{number}" for number in range(13)]
    shared = [
        shards.mine(names, rank=rank, world=world, worker=worker, workers=workers)
        for rank in range(world)
        for worker in range(workers)
    ]
    assert sorted(name for own in shared for name in own) == sorted(names)


def test_the_order_is_random_and_the_same_again(shards: ModuleType) -> None:
    def order(seed: int) -> list[int]:
        return list(shards.shuffled(iter(range(100)), 10, seed))

    assert sorted(order(1)) == list(range(100))
    assert order(1) == order(1) != order(2)


class Failing:
    """A client whose connections end early."""

    def __init__(self, data: bytes, cuts: list[int]) -> None:
        self._data = data
        self._cuts = cuts
        self.asked: list[str] = []

    def head_object(self, **_: str) -> dict[str, int]:
        return {"ContentLength": len(self._data)}

    def get_object(self, *, Range: str, **_: str) -> dict[str, io.BytesIO]:  # noqa: N803 - boto3's name
        self.asked.append(Range)
        start = int(Range[6:-1])
        end = start + self._cuts.pop(0) if self._cuts else len(self._data)
        return {"Body": io.BytesIO(self._data[start:end])}


def test_a_stream_that_ends_early_is_gone_on_with(
    shards: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    exceptions: Any = ModuleType("botocore.exceptions")
    exceptions.BotoCoreError = RuntimeError
    monkeypatch.setitem(sys.modules, "botocore", ModuleType("botocore"))
    monkeypatch.setitem(sys.modules, "botocore.exceptions", exceptions)
    client = Failing(b"0123456789" * 1000, [4000, 0, 3000])

    assert io.BufferedReader(shards._Ranged(client, "b", "k"), 100).read() == b"0123456789" * 1000
    assert client.asked == [f"bytes={start}-" for start in (0, 4000, 4000, 7000)]
    with pytest.raises(OSError, match="ends at byte 0 of 5"):
        shards._Ranged(Failing(b"abcde", [0] * 9), "b", "k").readinto(bytearray(5))


@pytest.mark.torch
def test_a_model_learns_from_shards(shards: ModuleType, tmp_path: Path) -> None:
    shards.write(str(tmp_path / "s"), 4, 500, shards.synthetic)

    done = subprocess.run(
        [torch_python(), FOLDER / "train.py", "--data_url", tmp_path / "s", "--workers", "2"],
        capture_output=True,
        text=True,
        check=True,
    )

    first, last = done.stdout.splitlines()
    assert first.startswith("epoch 1: 2000 samples")
    assert float(last.rpartition(" ")[2]) > 0.9
