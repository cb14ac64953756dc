"""What every store with uploads in parts promises of them."""

from __future__ import annotations

import hashlib
import io
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import pytest

from danlu.model.errors import Invalid, Missing, Refused
from danlu.ports.objects import Multipart, ObjectStore, Part
from tests.contract.objects import (
    ODD_KEYS,
    STORES,
    Directories,
    content,
    in_memory,
    names,
    new_bucket,
    opened,
    storable,
)

PART = 5 << 20
"""The smallest part that S3 takes before the last one."""


class Store(ObjectStore, Multipart, Protocol):
    """A store with uploads."""


@pytest.fixture(scope="module", params=[*STORES, "plain"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "plain":
        with in_memory() as path:
            yield Directories(path)
        return
    with opened(request.param) as made:
        if not isinstance(made, Multipart):
            pytest.skip("this store has no uploads in parts")
        yield made


@pytest.fixture
def bucket(store: Store) -> str:
    return new_bucket(store)


def data(seed: int, size: int = PART) -> bytes:
    return random.Random(seed).randbytes(size)


def md5(content: bytes) -> str:
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def etag_of(parts: list[bytes]) -> str:
    digests = b"".join(hashlib.md5(part, usedforsecurity=False).digest() for part in parts)
    return f"{md5(digests)}-{len(parts)}"


def pairs(*parts: Part) -> list[tuple[int, str]]:
    return [(part.number, part.etag) for part in parts]


def test_parts_become_one_object(store: Store, bucket: str) -> None:
    pieces = [data(1), data(2, PART + 1), data(3, 17)]
    upload = store.create_upload(
        bucket,
        "文/a",
        metadata={"mode": "755", "文": "火\n"},
        headers={"content-type": "text/x", "cache-control": "no-store"},
    )
    assert (upload.bucket, upload.key) == (bucket, "文/a")
    stored = {
        number: store.put_part(bucket, "文/a", upload.id, number, source)
        for number, source in ((7, io.BytesIO(pieces[2])), (1, pieces[0]), (3, pieces[1]))
    }
    assert stored[3].etag == md5(pieces[1])
    assert stored[3].size == PART + 1
    with pytest.raises(Missing):
        store.head(bucket, "文/a")
    assert not store.list(bucket).objects
    info = store.complete_upload(bucket, "文/a", upload.id, pairs(stored[1], stored[3], stored[7]))
    assert info.size == sum(map(len, pieces))
    if store.powers.describes:
        assert info.etag == etag_of(pieces)
        assert info.metadata == {"mode": "755", "文": "火\n"}
        assert info.headers == {"content-type": "text/x", "cache-control": "no-store"}
    assert info == store.head(bucket, "文/a")
    assert content(store, bucket, "文/a") == b"".join(pieces)
    assert info.sha256 in {"", hashlib.sha256(b"".join(pieces)).hexdigest()}
    assert not store.uploads(bucket).uploads


def test_a_part_sent_again_replaces_the_first_and_unnamed_parts_are_dropped(
    store: Store, bucket: str
) -> None:
    upload = store.create_upload(bucket, "a").id
    store.put_part(bucket, "a", upload, 1, b"wrong")
    first = store.put_part(bucket, "a", upload, 1, b"right")
    store.put_part(bucket, "a", upload, 2, b"never named")
    assert first.etag == md5(b"right")
    assert first.etag in {part.etag for part in store.parts(bucket, "a", upload).parts}
    store.complete_upload(bucket, "a", upload, pairs(first))
    assert content(store, bucket, "a") == b"right"
    if store.powers.describes:
        assert store.head(bucket, "a").etag == etag_of([b"right"])


def test_an_empty_part_makes_an_empty_object(store: Store, bucket: str) -> None:
    upload = store.create_upload(bucket, "a").id
    part = store.put_part(bucket, "a", upload, 1, b"")
    store.complete_upload(bucket, "a", upload, pairs(part))
    assert content(store, bucket, "a") == b""


def test_completing_again_is_no_error_while_its_object_is_there(store: Store, bucket: str) -> None:
    """A client whose answer got lost asks again (reliability row 36)."""
    upload = store.create_upload(bucket, "a").id
    part = store.put_part(bucket, "a", upload, 1, b"x")
    first = store.complete_upload(bucket, "a", upload, pairs(part))
    assert store.complete_upload(bucket, "a", upload, pairs(part)).etag == first.etag
    store.put(bucket, "a", b"somebody else's")
    with pytest.raises(Missing) as missing:
        store.complete_upload(bucket, "a", upload, pairs(part))
    assert missing.value.key == "no-such-upload"
    assert content(store, bucket, "a") == b"somebody else's"


@pytest.mark.parametrize("wanted", ["etag", "number", "order", "twice", "none"])
def test_what_cannot_be_completed_is_invalid_and_the_upload_stays(
    store: Store, bucket: str, wanted: str
) -> None:
    upload = store.create_upload(bucket, "a").id
    one = store.put_part(bucket, "a", upload, 1, data(1))
    two = store.put_part(bucket, "a", upload, 2, b"2")
    parts = {
        "etag": [(1, "0" * 32), (2, two.etag)],
        "number": [(1, one.etag), (3, two.etag)],
        "order": [(2, two.etag), (1, one.etag)],
        "twice": [(1, one.etag), (1, one.etag)],
        "none": [],
    }[wanted]
    with pytest.raises(Invalid) as refused:
        store.complete_upload(bucket, "a", upload, parts)
    assert refused.value.key in {"upload-part", "upload-order", "upload-empty"}
    store.complete_upload(bucket, "a", upload, pairs(one, two))
    assert content(store, bucket, "a") == data(1) + b"2"


@pytest.mark.parametrize("number", [0, -1, 10_001])
def test_a_bad_part_number_is_invalid(store: Store, bucket: str, number: int) -> None:
    upload = store.create_upload(bucket, "a").id
    with pytest.raises(Invalid) as refused:
        store.put_part(bucket, "a", upload, number, b"x")
    assert refused.value.key == "upload-part-number"
    assert not store.parts(bucket, "a", upload).parts


def test_completing_under_a_condition(store: Store, bucket: str) -> None:
    old = store.put(bucket, "a", b"old")
    upload = store.create_upload(bucket, "a").id
    part = store.put_part(bucket, "a", upload, 1, b"new")
    with pytest.raises(Refused) as refused:
        store.complete_upload(bucket, "a", upload, pairs(part), if_absent=True)
    assert (refused.value.key, refused.value.http) == ("object-condition", 412)
    assert content(store, bucket, "a") == b"old"
    store.complete_upload(bucket, "a", upload, pairs(part), if_etag=old.etag)
    assert content(store, bucket, "a") == b"new"


def test_an_aborted_upload_is_gone(store: Store, bucket: str) -> None:
    upload = store.create_upload(bucket, "a").id
    part = store.put_part(bucket, "a", upload, 1, b"x")
    store.abort_upload(bucket, "a", upload)
    for use in (
        lambda: store.put_part(bucket, "a", upload, 2, b"y"),
        lambda: store.parts(bucket, "a", upload),
        lambda: store.complete_upload(bucket, "a", upload, pairs(part)),
        lambda: store.abort_upload(bucket, "a", upload),
    ):
        with pytest.raises(Missing) as missing:
            use()
        assert missing.value.key == "no-such-upload"
    assert not store.uploads(bucket).uploads


def test_an_upload_is_known_by_its_key_too(store: Store, bucket: str) -> None:
    upload = store.create_upload(bucket, "a").id
    other = new_bucket(store)
    for place, key, name in (
        (bucket, "b", upload),
        (other, "a", upload),
        (bucket, "a", "0" * 32),
        (bucket, "a", "../../etc/passwd"),
    ):
        with pytest.raises(Missing):
            store.put_part(place, key, name, 1, b"x")
        with pytest.raises(Missing):
            store.parts(place, key, name)
    with pytest.raises(Missing) as missing:
        store.create_upload("no-such-bucket", "a")
    assert missing.value.key == "no-such-bucket"
    store.abort_upload(bucket, "a", upload)


def test_a_part_is_copied_from_a_range(store: Store, bucket: str) -> None:
    other = new_bucket(store)
    whole = data(4, PART + 1000)
    store.put(other, "源", whole)
    upload = store.create_upload(bucket, "a").id
    parts = [
        store.copy_part(bucket, "a", upload, 1, other, "源", 500, PART),
        store.copy_part(bucket, "a", upload, 2, other, "源"),
    ]
    assert parts[0].etag == md5(whole[500 : 500 + PART])
    store.complete_upload(bucket, "a", upload, pairs(*parts))
    assert content(store, bucket, "a") == whole[500 : 500 + PART] + whole
    with pytest.raises(Missing):
        store.copy_part(bucket, "a", store.create_upload(bucket, "a").id, 1, other, "none")


def test_parts_are_listed_in_pages(store: Store, bucket: str) -> None:
    upload = store.create_upload(bucket, "a").id
    for number in (9, 2, 5, 1, 10_000):
        store.put_part(bucket, "a", upload, number, b"%d" % number)
    first = store.parts(bucket, "a", upload, limit=2)
    assert [part.number for part in first.parts] == [1, 2]
    assert first.next == 2
    rest = store.parts(bucket, "a", upload, after=2)
    assert [(part.number, part.size, part.etag) for part in rest.parts] == [
        (number, len(str(number)), md5(b"%d" % number)) for number in (5, 9, 10_000)
    ]
    assert rest.next is None
    assert store.parts(bucket, "a", upload, after=10_000).parts == []
    store.abort_upload(bucket, "a", upload)


def test_uploads_are_listed_in_order_folded_and_in_pages(store: Store, bucket: str) -> None:
    wanted = ["b/1", "a", "c", "b/2", "a", "文", "b/0", "b/1"]
    ids = [(key, store.create_upload(bucket, key).id) for key in wanted]
    ordered = sorted(key for key, _ in ids)
    assert [upload.key for upload in store.uploads(bucket).uploads] == ordered
    seen: list[tuple[str, str]] = []
    after: tuple[str, str] | None = ("", "")
    while after is not None:
        page = store.uploads(bucket, after=after, limit=3)
        assert len(page.uploads) <= 3
        seen.extend((upload.key, upload.id) for upload in page.uploads)
        after = page.next
    assert sorted(seen) == sorted(ids)
    assert [upload.key for upload in store.uploads(bucket, "b/").uploads] == [
        key for key in ordered if key.startswith("b/")
    ]
    folded = store.uploads(bucket, delimiter="/")
    assert [upload.key for upload in folded.uploads] == ["a", "a", "c", "文"]
    assert list(folded.prefixes) == ["b/"]
    behind = store.uploads(bucket, after=("a", ""))
    assert [upload.key for upload in behind.uploads] == ordered[2:]


def test_uploads_are_folded_in_pages(store: Store, bucket: str) -> None:
    for key in ("a/1", "a/2", "b", "c/1", "c/2"):
        store.create_upload(bucket, key)
    seen: list[str] = []
    after: tuple[str, str] | None = ("", "")
    while after is not None:
        page = store.uploads(bucket, delimiter="/", after=after, limit=1)
        seen.extend([upload.key for upload in page.uploads] or list(page.prefixes))
        after = page.next
    assert seen == ["a/", "b", "c/"]


def test_uploads_to_odd_keys(store: Store, bucket: str) -> None:
    keys = storable(store, ODD_KEYS)
    for number, key in enumerate(keys):
        upload = store.create_upload(bucket, key).id
        part = store.put_part(bucket, key, upload, 1, b"%d" % number)
        store.complete_upload(bucket, key, upload, pairs(part))
    assert sorted(names(store.list(bucket))) == sorted(keys)
    for number, key in enumerate(keys):
        assert content(store, bucket, key) == b"%d" % number


def test_a_source_that_fails_leaves_the_part_before(store: Store, bucket: str) -> None:
    upload = store.create_upload(bucket, "a").id
    part = store.put_part(bucket, "a", upload, 1, b"old")

    class Fails(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise ConnectionResetError("the client went away")

    with pytest.raises(ConnectionResetError):
        store.put_part(bucket, "a", upload, 1, Fails())
    store.complete_upload(bucket, "a", upload, pairs(part))
    assert content(store, bucket, "a") == b"old"


def test_parts_come_from_several_writers_at_once(store: Store, bucket: str) -> None:
    pieces = [data(number) for number in range(6)]
    upload = store.create_upload(bucket, "a").id
    with ThreadPoolExecutor(4) as pool:
        parts = list(
            pool.map(
                lambda item: store.put_part(bucket, "a", upload, item[0], item[1]),
                enumerate(pieces, 1),
            )
        )
    store.complete_upload(bucket, "a", upload, pairs(*parts))
    assert content(store, bucket, "a") == b"".join(pieces)


def test_a_bucket_with_nothing_but_uploads_can_be_deleted(store: Store, bucket: str) -> None:
    if isinstance(store, Directories):
        pytest.skip("a registered directory is not deleted")
    upload = store.create_upload(bucket, "a").id
    store.put_part(bucket, "a", upload, 1, b"x")
    store.delete_bucket(bucket)
    assert store.create_bucket(bucket)
    assert not store.uploads(bucket).uploads
