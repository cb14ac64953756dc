"""Samples in tar files (shards), read from object storage as a stream: nothing is staged.

A shard is a tar in which the files of one sample follow each other and share the name up to its
first dot, as WebDataset has it: `000001.json`, `000001.bin`, `000002.json` …

    python shards.py s3://bucket/shards --count 8 --samples 1000      # writes some to try with
    python shards.py s3://bucket/shards                               # reads and counts them

Addresses begin with s3:// or obs:// (or are local directories). They are opened with fsspec where
s3fs is installed, otherwise with boto3. Both find endpoint and keys in the environment: in a Danlu
job there is nothing to set.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

Sample = dict[str, bytes]
"""The files of one sample by what follows the first dot of their names, and `__key__`."""


class Storage(Protocol):
    """What a reader needs of the storage; addresses are `bucket/key`."""

    def list(self, address: str) -> list[str]: ...
    def open(self, address: str) -> IO[bytes]: ...
    def put(self, address: str, source: IO[bytes]) -> None: ...


class Fsspec:
    """By fsspec's s3fs, which reads AWS_ENDPOINT_URL and the keys by itself."""

    def __init__(self) -> None:
        import fsspec

        self._files: Any = fsspec.filesystem("s3")

    def list(self, address: str) -> list[str]:
        return sorted(self._files.ls(address, detail=False))

    def open(self, address: str) -> IO[bytes]:
        opened: IO[bytes] = self._files.open(address, "rb", block_size=4 << 20)
        return opened

    def put(self, address: str, source: IO[bytes]) -> None:
        with self._files.open(address, "wb") as target:
            while data := source.read(1 << 20):
                target.write(data)


class Boto:
    """By boto3, which reads the same variables."""

    def __init__(self) -> None:
        import boto3
        from botocore.config import Config

        config = Config(retries={"mode": "standard", "max_attempts": 8})
        self._client: Any = boto3.client("s3", config=config)

    def list(self, address: str) -> list[str]:
        bucket, _, prefix = address.partition("/")
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=f"{prefix.rstrip('/')}/", Delimiter="/"
        )
        return [f"{bucket}/{one['Key']}" for page in pages for one in page.get("Contents", ())]

    def open(self, address: str) -> IO[bytes]:
        bucket, _, key = address.partition("/")
        return io.BufferedReader(_Ranged(self._client, bucket, key), 4 << 20)

    def put(self, address: str, source: IO[bytes]) -> None:
        bucket, _, key = address.partition("/")
        self._client.upload_fileobj(source, bucket, key)


class _Ranged(io.RawIOBase):
    """Goes on where it was when a connection ends: an epoch may take hours."""

    def __init__(self, client: Any, bucket: str, key: str) -> None:
        self._client = client
        self._wanted = {"Bucket": bucket, "Key": key}
        self._size = client.head_object(**self._wanted)["ContentLength"]
        self._at = 0
        self._body: Any = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        from botocore.exceptions import BotoCoreError

        for again in range(5):
            if self._at >= self._size:
                return 0
            try:
                if self._body is None:
                    span = f"bytes={self._at}-"
                    self._body = self._client.get_object(**self._wanted, Range=span)["Body"]
                data = self._body.read(len(buffer))
                if data:
                    buffer[: len(data)] = data
                    self._at += len(data)
                    return len(data)
            except (BotoCoreError, OSError):
                if again == 4:
                    raise
            self._body = None
        raise OSError(f"{self._wanted['Key']} ends at byte {self._at} of {self._size}")


class Local:
    """A directory of this machine, to try a script without storage."""

    def list(self, address: str) -> list[str]:
        return sorted(str(path) for path in Path(address).iterdir())

    def open(self, address: str) -> IO[bytes]:
        return Path(address).open("rb")

    def put(self, address: str, source: IO[bytes]) -> None:
        Path(address).parent.mkdir(parents=True, exist_ok=True)
        Path(address).write_bytes(source.read())


def storage_of(url: str) -> tuple[Storage, str]:
    """What opens `url`, and the address under which it knows it."""
    scheme, found, address = url.partition("://")
    if not found:
        return Local(), url
    if scheme not in ("s3", "obs"):
        raise SystemExit(f"{url}: it must begin with s3:// or obs://, or be a directory")
    makers: tuple[Callable[[], Storage], ...] = (Fsspec, Boto)
    for make in makers:
        try:
            return make(), address
        except ImportError:
            continue
    raise SystemExit("neither s3fs nor boto3 is installed: pip install boto3")


def mine(shards: Sequence[str], *, rank: int, world: int, worker: int, workers: int) -> list[str]:
    """The shards of one worker of one rank: every shard is somebody's, and nobody's twice."""
    return list(shards[rank * workers + worker :: world * workers])


def samples(storage: Storage, shards: Iterable[str]) -> Iterator[Sample]:
    """The samples of some shards, in order, as they arrive."""
    for shard in shards:
        with storage.open(shard) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            yield from _grouped(tar)


def _grouped(tar: tarfile.TarFile) -> Iterator[Sample]:
    current: Sample = {}
    for member in tar:
        if not member.isfile():
            continue
        folder, slash, name = member.name.rpartition("/")
        stem, _, kind = name.partition(".")
        key = f"{folder}{slash}{stem}".encode()
        if current and current["__key__"] != key:
            yield current
            current = {}
        content = tar.extractfile(member)
        assert content is not None  # noqa: S101 - a file has a content
        current.update({"__key__": key, kind: content.read()})
    if current:
        yield current


def shuffled(found: Iterable[Sample], buffer: int, seed: int) -> Iterator[Sample]:
    """In an order that is random within `buffer` samples, and the same for the same seed."""
    dice = random.Random(seed)  # noqa: S311 - an order is no secret
    held: list[Sample] = []
    for sample in found:
        held.append(sample)
        if len(held) >= buffer:
            yield held.pop(dice.randrange(len(held)))
    dice.shuffle(held)
    yield from held


def write(url: str, count: int, per_shard: int, make: Callable[[int], Sample]) -> None:
    """Write `count` shards of `per_shard` samples each; `make` gives the files of a sample."""
    storage, address = storage_of(url)
    for shard in range(count):
        with tempfile.TemporaryFile() as file:
            with tarfile.open(fileobj=file, mode="w") as tar:
                for number in range(shard * per_shard, (shard + 1) * per_shard):
                    for kind, content in make(number).items():
                        member = tarfile.TarInfo(f"{number:08}.{kind}")
                        member.size = len(content)
                        tar.addfile(member, io.BytesIO(content))
            file.seek(0)
            storage.put(f"{address.rstrip('/')}/{shard:06}.tar", file)


def synthetic(number: int) -> Sample:
    """A sample of a problem that is easily learnt: the sum of eight numbers, and whether it is
    positive.
    """
    dice = random.Random(number)  # noqa: S311 - made up data
    values = [dice.uniform(-1, 1) for _ in range(8)]
    return {"json": json.dumps({"x": values, "label": int(sum(values) > 0)}).encode()}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("url")
    parser.add_argument("--count", type=int, default=0, help="write so many shards first")
    parser.add_argument("--samples", type=int, default=1000, help="samples in each of them")
    options = parser.parse_args()
    if options.count:
        write(options.url, options.count, options.samples, synthetic)
    storage, address = storage_of(options.url)
    shards = storage.list(address)
    found = sum(1 for _ in samples(storage, shards))
    print(f"{found} samples in {len(shards)} shards")
    return 0


if __name__ == "__main__":
    sys.exit(main())
