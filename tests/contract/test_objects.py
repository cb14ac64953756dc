"""What every ObjectStore promises of buckets, objects and keys."""

from __future__ import annotations

import hashlib
import io
import os
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from danlu.model.errors import Invalid, Missing, PlatformError, Refused, Unavailable
from danlu.ports.objects import ObjectStore
from tests.contract.objects import (
    ODD_KEYS,
    STORES,
    content,
    names,
    new_bucket,
    opened,
    ordered,
    storable,
    stored,
)

keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)


@pytest.fixture(scope="module", params=STORES)
def store(request: pytest.FixtureRequest) -> Iterator[ObjectStore]:
    with opened(request.param) as made:
        yield made


@pytest.fixture
def bucket(store: ObjectStore) -> str:
    return new_bucket(store)


# ---------------------------------------------------------------------- buckets


def test_bucket_is_made_once_and_listed_in_order(store: ObjectStore) -> None:
    made = sorted(new_bucket(store) for _ in range(3))
    assert not store.create_bucket(made[0])
    listed = store.buckets()
    assert [name for name in listed if name in made] == made
    assert list(listed) == sorted(listed)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "ab",
        "a" * 64,
        "Upper",
        "under_score",
        "-begin",
        "end-",
        ".begin",
        "end.",
        "a..b",
        "a.-b",
        "a-.b",
        "192.168.0.1",
        "a/b",
        "..",
        "a b",
        "a\0b",
        "bücket",
        "abc\n",
    ],
)
def test_bad_bucket_name_is_invalid_to_make_and_missing_to_use(
    store: ObjectStore, name: str
) -> None:
    with pytest.raises(Invalid) as refused:
        store.create_bucket(name)
    assert refused.value.key == "bucket-name"
    with pytest.raises(Missing):
        store.list(name)


@pytest.mark.parametrize("name", ["abc", "a.b", "0-0", "a" * 63, "a--b", "1.2.3", "a.b-c.d"])
def test_good_bucket_name(store: ObjectStore, name: str) -> None:
    assert store.create_bucket(name)
    store.delete_bucket(name)


def test_bucket_with_objects_is_not_deleted(store: ObjectStore, bucket: str) -> None:
    store.put(bucket, "a", b"1")
    with pytest.raises(Refused) as refused:
        store.delete_bucket(bucket)
    assert refused.value.key == "bucket-not-empty"
    assert content(store, bucket, "a") == b"1"


def test_deleted_bucket_is_gone_and_can_be_made_again(store: ObjectStore, bucket: str) -> None:
    store.put(bucket, "a", b"1")
    store.delete(bucket, ["a"])
    store.delete_bucket(bucket)
    assert bucket not in store.buckets()
    for use in (
        lambda: store.head(bucket, "a"),
        lambda: store.read(bucket, "a"),
        lambda: store.list(bucket),
        lambda: store.put(bucket, "a", b"2"),
        lambda: store.delete(bucket, ["a"]),
        lambda: store.delete_bucket(bucket),
        lambda: list(store.walk(bucket)),
    ):
        with pytest.raises(Missing) as missing:
            use()
        assert missing.value.key == "no-such-bucket"
    assert store.create_bucket(bucket)
    assert not store.list(bucket).objects
    store.put(bucket, "a", b"3")
    assert content(store, bucket, "a") == b"3"


# ---------------------------------------------------------------------- one object


@pytest.mark.parametrize("size", [0, 1, 20_000, 300_000, 9 << 20])
def test_round_trip_from_bytes_and_from_a_stream(
    store: ObjectStore, bucket: str, size: int
) -> None:
    data = random.Random(size).randbytes(size)
    for source in (data, io.BytesIO(data), Dribble(data)):
        put = store.put(bucket, "key", source, metadata={"mode": "755", "文": "火\n"})
        assert put.size == size
        assert put.etag == hashlib.md5(data, usedforsecurity=False).hexdigest()
        assert put.sha256 in {"", hashlib.sha256(data).hexdigest()}
        assert put == store.head(bucket, "key")
        assert put.metadata == {"mode": "755", "文": "火\n"}
        assert content(store, bucket, "key") == data


class Dribble(io.BytesIO):
    """A stream that gives less than it is asked for, like a socket."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size, 100_001) if size and size > 0 else size)


def test_overwrite_replaces_content_and_metadata(store: ObjectStore, bucket: str) -> None:
    first = store.put(bucket, "a", b"one", metadata={"old": "1"})
    second = store.put(bucket, "a", b"two!", metadata={"new": "2"})
    assert store.head(bucket, "a") == second
    assert second.metadata == {"new": "2"}
    assert second.etag != first.etag
    assert second.modified_at >= first.modified_at
    assert store.put(bucket, "a", b"").metadata == {}
    assert names(store.list(bucket)) == ["a"]


def test_a_source_that_fails_leaves_the_old_version(store: ObjectStore, bucket: str) -> None:
    store.put(bucket, "a", b"old")

    class Fails(io.BytesIO):
        left = 3

        def read(self, size: int | None = -1, /) -> bytes:
            if not self.left:
                raise ConnectionResetError("the client went away")
            self.left -= 1
            return b"new" * 100_000

    with pytest.raises(ConnectionResetError):
        store.put(bucket, "a", Fails())
    assert content(store, bucket, "a") == b"old"


def test_what_is_not_there_is_missing(store: ObjectStore, bucket: str) -> None:
    for use in (store.head, store.read):
        with pytest.raises(Missing) as missing:
            use(bucket, "nothing")
        assert missing.value.key == "no-such-object"
        with pytest.raises(Missing) as missing:
            use("no-such-bucket", "nothing")
        assert missing.value.key == "no-such-bucket"
    with pytest.raises(Missing):
        store.put("no-such-bucket", "a", b"")
    with pytest.raises(Missing):
        store.copy(bucket, "nothing", bucket, "a")
    assert "no-such-bucket" not in store.buckets()


@pytest.mark.parametrize("key", ["", "x" * 1025, "é" * 512 + "x", "\ud800", "a\udcff"])
def test_what_cannot_be_a_key_is_invalid(store: ObjectStore, bucket: str, key: str) -> None:
    for use in (
        lambda: store.put(bucket, key, b""),
        lambda: store.head(bucket, key),
        lambda: store.read(bucket, key),
        lambda: store.delete(bucket, [key]),
    ):
        with pytest.raises(Invalid) as refused:
            use()
        assert refused.value.message().encode()
        assert refused.value.message("zh").encode()
    assert not store.list(bucket).objects


def test_delete_many_at_once_and_what_is_not_there(store: ObjectStore, bucket: str) -> None:
    for number in range(30):
        store.put(bucket, f"k{number}", b"x")
    store.delete(bucket, (f"k{number}" for number in range(5, 2000)))
    assert names(store.list(bucket)) == [f"k{number}" for number in range(5)]
    store.delete(bucket, [])
    store.delete(bucket, ["k0", "k0"])
    assert len(store.list(bucket).objects) == 4


def test_copy_takes_content_and_metadata(store: ObjectStore, bucket: str) -> None:
    other = new_bucket(store)
    source = store.put(bucket, "a", b"content", metadata={"m": "1"})
    store.put(other, "b/c", b"to be replaced")
    copied = store.copy(bucket, "a", other, "b/c")
    assert (copied.bucket, copied.key) == (other, "b/c")
    assert (copied.etag, copied.size, copied.metadata) == (source.etag, 7, {"m": "1"})
    store.delete(bucket, ["a"])
    assert content(store, other, "b/c") == b"content"
    assert store.copy(other, "b/c", other, "b/c").etag == source.etag
    assert content(store, other, "b/c") == b"content"


# ---------------------------------------------------------------------- ranges


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [
        (0, None, b"0123456789"),
        (0, 0, b""),
        (0, 3, b"012"),
        (4, None, b"456789"),
        (4, 2, b"45"),
        (9, 1, b"9"),
        (5, 10**12, b"56789"),
    ],
)
def test_range(
    store: ObjectStore, bucket: str, start: int, length: int | None, expected: bytes
) -> None:
    store.put(bucket, "a", b"0123456789")
    assert b"".join(store.read(bucket, "a", start, length)) == expected


@pytest.mark.parametrize(
    ("start", "length"), [(10, None), (11, 1), (10**15, None), (-1, None), (0, -1), (-3, 2)]
)
def test_range_outside_is_invalid_at_once(
    store: ObjectStore, bucket: str, start: int, length: int | None
) -> None:
    store.put(bucket, "a", b"0123456789")
    with pytest.raises(Invalid) as refused:
        store.read(bucket, "a", start, length)
    assert (refused.value.key, refused.value.http) == ("object-range", 416)
    assert "10 bytes" in refused.value.message()


def test_an_empty_object_is_read_from_its_beginning(store: ObjectStore, bucket: str) -> None:
    store.put(bucket, "a", b"")
    assert content(store, bucket, "a") == b""
    with pytest.raises(Invalid):
        store.read(bucket, "a", 1)


# ---------------------------------------------------------------------- keys and order


def test_odd_keys_are_only_themselves(store: ObjectStore, bucket: str) -> None:
    kept = storable(store, ODD_KEYS)
    for number, key in enumerate(kept):
        store.put(bucket, key, str(number).encode(), metadata={"n": str(number)})
    for number, key in enumerate(kept):
        assert content(store, bucket, key) == str(number).encode()
        assert store.head(bucket, key).metadata == {"n": str(number)}
    wanted = sorted(kept, key=str.encode)
    assert ordered(store, names(store.list(bucket))) == wanted
    assert ordered(store, [item.key for item in store.walk(bucket)]) == wanted
    store.delete(bucket, ["a/b", "..", "\0"])
    left = [key for key in wanted if key not in {"a/b", "..", "\0"}]
    assert ordered(store, names(store.list(bucket))) == left


@stored
@given(wanted=st.sets(keys, max_size=12))
@example(wanted={"\U00010000", "\uffff", "\ue000"})  # UTF-16 would order these otherwise
def test_any_keys_come_back_in_the_order_of_their_bytes(
    store: ObjectStore, wanted: set[str]
) -> None:
    bucket = new_bucket(store)
    wanted = set(storable(store, sorted(wanted)))
    for key in wanted:
        store.put(bucket, key, key.encode())
    assert ordered(store, names(store.list(bucket))) == sorted(wanted, key=str.encode)
    for key in wanted:
        assert content(store, bucket, key) == key.encode()


# ---------------------------------------------------------------------- conditions


def test_if_absent(store: ObjectStore, bucket: str) -> None:
    store.put(bucket, "a", b"1", if_absent=True)
    with pytest.raises(Refused) as refused:
        store.put(bucket, "a", b"2", if_absent=True)
    assert (refused.value.key, refused.value.http) == ("object-condition", 412)
    assert content(store, bucket, "a") == b"1"
    store.delete(bucket, ["a"])
    store.put(bucket, "a", b"3", if_absent=True)


def test_if_etag(store: ObjectStore, bucket: str) -> None:
    with pytest.raises(Refused) as refused:
        store.put(bucket, "a", b"1", if_etag="0" * 32)
    assert refused.value.http == 412
    first = store.put(bucket, "a", b"1")
    second = store.put(bucket, "a", b"2", if_etag=first.etag)
    with pytest.raises(Refused):
        store.put(bucket, "a", b"3", if_etag=first.etag)
    assert store.head(bucket, "a") == second


@pytest.mark.parametrize("kind", ["if_absent", "if_etag"])
def test_of_eight_racing_writers_one_wins(store: ObjectStore, bucket: str, kind: str) -> None:
    start = threading.Barrier(8)

    def race(key: str, number: int, etag: str | None) -> int | None:
        start.wait()
        try:
            store.put(bucket, key, b"%d" % number, if_absent=kind == "if_absent", if_etag=etag)
        except Refused as refused:
            return None if refused.http == 412 else -1
        return number

    with ThreadPoolExecutor(8) as pool:
        for turn in range(20 if store.powers.steady_reads else 5):  # a server takes its time
            key = f"race-{turn}"
            etag = store.put(bucket, key, b"first").etag if kind == "if_etag" else None
            tries = [pool.submit(race, key, number, etag) for number in range(8)]
            won = [number for number in (each.result() for each in tries) if number is not None]
            assert len(won) == 1
            assert content(store, bucket, key) == b"%d" % won[0]


# ---------------------------------------------------------------------- at the same time


def test_a_reader_keeps_its_version(store: ObjectStore, bucket: str) -> None:
    old = random.Random(1).randbytes(3 << 20)
    for change in (
        lambda: store.put(bucket, "a", b"new"),
        lambda: store.delete(bucket, ["a"]),
        lambda: store.copy(bucket, "other", bucket, "a"),
    ):
        store.put(bucket, "other", b"else")
        store.put(bucket, "a", old)
        begun = store.read(bucket, "a")
        not_yet = store.read(bucket, "a", 1 << 20)
        first = next(begun)
        change()
        assert rest(store, begun, old[len(first) :])
        assert rest(store, not_yet, old[1 << 20 :])


def rest(store: ObjectStore, reading: Iterator[bytes], wanted: bytes) -> bool:
    """Whether a reader gets what it is to get, or is told that the object has changed where a
    store does not keep what it reads.
    """
    try:
        return b"".join(reading) == wanted
    except Unavailable as changed:
        return not store.powers.steady_reads and changed.key == "object-changed"


def test_readers_never_see_half_an_object(store: ObjectStore, bucket: str) -> None:
    """Four writers and four readers on one key: every read is one whole version."""
    versions = [bytes([number]) * (100_000 + number) for number in range(8)]
    store.put(bucket, "a", versions[0])
    stop = threading.Event()

    def write(seed: int) -> None:
        dice = random.Random(seed)
        for _ in range(40 if store.powers.steady_reads else 10):
            store.put(bucket, "a", dice.choice(versions))
            if dice.random() < 0.2:
                store.delete(bucket, ["a"])

    def read() -> int:
        seen = 0
        while not stop.is_set():
            try:
                data = content(store, bucket, "a")
            except Missing:
                continue
            except Unavailable as changed:
                assert not store.powers.steady_reads
                assert changed.key == "object-changed"  # noqa: PT017 - as above
                continue
            assert data in versions
            seen += 1
        return seen

    with ThreadPoolExecutor(8) as pool:
        readers = [pool.submit(read) for _ in range(4)]
        try:
            for writer in [pool.submit(write, seed) for seed in range(4)]:
                writer.result()
        finally:
            stop.set()
        assert sum(reader.result() for reader in readers) > 0


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes_share_a_store(store: ObjectStore, bucket: str) -> None:
    """Three processes write the same keys at once, through a store carried across a fork."""
    store.put(bucket, "before", b"the fork")
    children = [_fork(partial(_write_some, store, bucket, seed)) for seed in range(2)]
    _write_some(store, bucket, 2)
    assert [_status(child) for child in children] == [0, 0]
    for item in store.walk(bucket):
        data = content(store, bucket, item.key)
        assert hashlib.md5(data, usedforsecurity=False).hexdigest() == item.etag
    assert content(store, bucket, "before") == b"the fork"
    won = [item.key for item in store.walk(bucket, "only-one/")]
    assert len(won) == 20
    counted = sum(int(content(store, bucket, f"won-by/{seed}")) for seed in range(3))
    assert counted == 20


def _write_some(store: ObjectStore, bucket: str, seed: int) -> None:
    dice = random.Random(seed)
    won = 0
    for turn in range(20):
        store.put(bucket, f"shared/{dice.randrange(10)}", dice.randbytes(5000))
        store.delete(bucket, [f"shared/{dice.randrange(10)}"])
        try:
            store.put(bucket, f"only-one/{turn}", b"%d" % seed, if_absent=True)
            won += 1
        except Refused:
            pass
    store.put(bucket, f"won-by/{seed}", b"%d" % won)


def _fork(run: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            run()
            status = 0
        except PlatformError as problem:
            os.write(2, f"{problem!r}: {problem}\n".encode())
        finally:
            os._exit(status)
    return child


def _status(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
