"""What every store promises of all that belongs to an object beside its content."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import cast

import pytest

from danlu.model.errors import Invalid, Missing, Refused
from danlu.ports.objects import HEADERS, Editing, ObjectStore, Tagging, Usage
from tests.contract.objects import STORES, content, names, new_bucket, opened

SAID = {
    "content-type": "text/plain; charset=utf-8",
    "cache-control": "max-age=60",
    "content-disposition": 'attachment; filename="a b.txt"',
    "content-encoding": "identity",
    "content-language": "zh-CN",
    "expires": "Thu, 01 Dec 2094 16:00:00 GMT",
}


@pytest.fixture(scope="module", params=STORES)
def store(request: pytest.FixtureRequest) -> Iterator[ObjectStore]:
    with opened(request.param) as made:
        yield made


@pytest.fixture
def bucket(store: ObjectStore) -> str:
    return new_bucket(store)


@pytest.fixture
def editing(store: ObjectStore) -> Editing:
    if not isinstance(store, Editing):
        pytest.skip("this store cannot append and rename")
    return store


@pytest.fixture
def tagging(store: ObjectStore) -> Tagging:
    if not isinstance(store, Tagging):
        pytest.skip("this store has no tags")
    return cast("Tagging", store)


# ---------------------------------------------------------------------- buckets


def test_a_bucket_knows_when_it_was_made(store: ObjectStore) -> None:
    before = time.time() * 1000
    bucket = new_bucket(store)
    info = store.bucket(bucket)
    assert info.name == bucket
    assert before - 1000 <= info.created_at <= time.time() * 1000 + 1000
    store.delete_bucket(bucket)
    for use in (store.bucket, store.usage):
        with pytest.raises(Missing) as missing:
            use(bucket)
        assert missing.value.key == "no-such-bucket"


def test_usage(store: ObjectStore, bucket: str) -> None:
    assert store.usage(bucket) == Usage(0, 0)
    store.put(bucket, "a", b"12345")
    store.put(bucket, "b/c", b"67")
    store.put(bucket, "b/", b"")
    assert store.usage(bucket) == Usage(3, 7)
    store.delete(bucket, ["a"])
    assert store.usage(bucket) == Usage(2, 2)


# ---------------------------------------------------------------------- headers and metadata


def test_headers_are_kept(store: ObjectStore, bucket: str) -> None:
    put = store.put(bucket, "a", b"x", headers=SAID, metadata={"m": "1"})
    assert put.headers == SAID
    assert store.head(bucket, "a") == put
    assert set(SAID) == set(HEADERS)
    assert store.put(bucket, "a", b"y").headers.keys() <= {"content-type"}


def test_a_header_that_is_not_kept_is_invalid(store: ObjectStore, bucket: str) -> None:
    for headers in ({"x-other": "1"}, {"Content-Type": "text/plain"}):
        with pytest.raises(Invalid) as refused:
            store.put(bucket, "a", b"x", headers=headers)
        assert refused.value.key == "object-header"
    assert not store.list(bucket).objects


@pytest.mark.parametrize("field", ["metadata", "headers"])
def test_too_much_is_invalid(store: ObjectStore, bucket: str, field: str) -> None:
    texts = {"content-type": "x" * 9000}
    with pytest.raises(Invalid) as refused:
        store.put(bucket, "a", b"x", **{field: texts})  # type: ignore[arg-type]  # one of the two
    assert refused.value.key == "field-too-long"
    assert field in refused.value.message()


def test_describe_replaces_what_is_said_and_not_the_content(
    store: ObjectStore, bucket: str
) -> None:
    """`PUT ?metadata` of OBS, which some servers take for an empty put."""
    first = store.put(bucket, "a", b"content", metadata={"old": "1"}, headers=SAID)
    second = store.describe(bucket, "a", metadata={"new": "2"}, headers={"content-type": "text/x"})
    assert second.metadata == {"new": "2"}
    assert second.headers == {"content-type": "text/x"}
    assert (second.etag, second.size) == (first.etag, 7)
    assert store.head(bucket, "a") == second
    assert content(store, bucket, "a") == b"content"
    assert store.describe(bucket, "a").metadata == {}
    with pytest.raises(Missing):
        store.describe(bucket, "nothing", metadata={"a": "b"})


def test_copy_keeps_or_replaces_what_is_said(store: ObjectStore, bucket: str) -> None:
    store.put(bucket, "a", b"content", metadata={"m": "1"}, headers=SAID)
    kept = store.copy(bucket, "a", bucket, "b")
    assert (kept.metadata, kept.headers) == ({"m": "1"}, SAID)
    new = store.copy(bucket, "a", bucket, "c", metadata={"n": "2"})
    assert new.metadata == {"n": "2"}
    assert new.headers.keys() <= {"content-type"}
    own = store.copy(bucket, "a", bucket, "a", headers={"content-type": "text/x"})
    assert (own.metadata, own.headers) == ({}, {"content-type": "text/x"})
    assert store.head(bucket, "a") == own
    for key in "abc":
        assert content(store, bucket, key) == b"content"


# ---------------------------------------------------------------------- append and rename


def test_append_makes_and_extends(store: ObjectStore, editing: Editing, bucket: str) -> None:
    made = editing.append(bucket, "log", b"one", 0, metadata={"m": "1"})
    assert (made.size, made.metadata) == (3, {"m": "1"})
    more = editing.append(bucket, "log", io.BytesIO(b"two" * 100_000), 3, metadata={"no": "2"})
    assert more.size == 300_003
    assert more.metadata == {"m": "1"}
    assert more.etag != made.etag
    assert store.head(bucket, "log") == more
    assert content(store, bucket, "log") == b"one" + b"two" * 100_000
    editing.append(bucket, "log", b"", 300_003)
    assert store.head(bucket, "log").size == 300_003


def test_append_keeps_tags(
    store: ObjectStore, editing: Editing, tagging: Tagging, bucket: str
) -> None:
    store.put(bucket, "log", b"one", headers=SAID)
    tagging.set_tags(bucket, "log", {"项目": "a b=c"})
    assert editing.append(bucket, "log", b"two", 3).headers == SAID
    assert tagging.tags(bucket, "log") == {"项目": "a b=c"}


class Changing(io.BytesIO):
    """Content during whose reading somebody else is faster."""

    def __init__(self, change: Callable[[], object]) -> None:
        super().__init__(b"more")
        self._change = change

    def read(self, size: int | None = -1, /) -> bytes:
        self._change()
        return super().read(size)


def test_of_two_that_append_at_once_one_is_refused(
    store: ObjectStore, editing: Editing, bucket: str
) -> None:
    """Whether there was something or nothing; nothing of either is lost that was taken."""
    store.put(bucket, "log", b"one")
    for key, position in (("log", 3), ("none", 0)):
        slow = Changing(partial(store.put, bucket, key, b"other"))
        with pytest.raises(Refused) as refused:
            editing.append(bucket, key, slow, position)
        assert refused.value.http == 412
        assert content(store, bucket, key) == b"other"


def test_append_elsewhere_than_at_the_end_is_refused(
    store: ObjectStore, editing: Editing, bucket: str
) -> None:
    editing.append(bucket, "log", b"12345", 0)
    for position in (0, 4, 6):
        with pytest.raises(Refused) as refused:
            editing.append(bucket, "log", b"x", position)
        assert (refused.value.key, refused.value.http) == ("object-position", 409)
    with pytest.raises(Missing) as missing:
        editing.append(bucket, "nothing", b"x", 3)
    assert missing.value.key == "no-such-object"
    with pytest.raises(Missing):
        editing.append("no-such-bucket", "log", b"x", 0)
    assert content(store, bucket, "log") == b"12345"


def test_rename_moves_all_that_belongs_to_an_object(
    store: ObjectStore, editing: Editing, bucket: str
) -> None:
    first = store.put(bucket, "a", b"content", metadata={"m": "1"}, headers=SAID)
    store.put(bucket, "b/c", b"to be replaced")
    moved = editing.rename(bucket, "a", "b/c")
    assert (moved.key, moved.etag, moved.metadata) == ("b/c", first.etag, {"m": "1"})
    assert moved.headers == SAID
    assert names(store.list(bucket)) == ["b/c"]
    assert content(store, bucket, "b/c") == b"content"
    assert editing.rename(bucket, "b/c", "b/c").etag == first.etag
    assert content(store, bucket, "b/c") == b"content"
    with pytest.raises(Missing):
        editing.rename(bucket, "a", "d")
    with pytest.raises(Invalid):
        editing.rename(bucket, "b/c", "")


# ---------------------------------------------------------------------- tags


def test_tags_of_objects(store: ObjectStore, tagging: Tagging, bucket: str) -> None:
    store.put(bucket, "a", b"x")
    assert tagging.tags(bucket, "a") == {}
    tagging.set_tags(bucket, "a", {"project": "丹炉", "empty": ""})
    assert tagging.tags(bucket, "a") == {"project": "丹炉", "empty": ""}
    store.copy(bucket, "a", bucket, "b")
    assert tagging.tags(bucket, "b") == {"project": "丹炉", "empty": ""}
    store.describe(bucket, "a", metadata={"m": "1"})
    assert tagging.tags(bucket, "a") == {"project": "丹炉", "empty": ""}
    tagging.set_tags(bucket, "b", {})
    assert tagging.tags(bucket, "b") == {}
    store.put(bucket, "a", b"y")
    assert tagging.tags(bucket, "a") == {}
    for use in (
        lambda: tagging.tags(bucket, "nothing"),
        lambda: tagging.set_tags(bucket, "nothing", {"a": "b"}),
    ):
        with pytest.raises(Missing) as missing:
            use()
        assert missing.value.key == "no-such-object"


def test_tags_of_buckets(store: ObjectStore, tagging: Tagging, bucket: str) -> None:
    assert tagging.tags(bucket) == {}
    tagging.set_tags(bucket, None, {"team": "炉", "k": "v"})
    assert tagging.tags(bucket) == {"team": "炉", "k": "v"}
    store.put(bucket, "a", b"x")
    assert tagging.tags(bucket, "a") == {}
    tagging.set_tags(bucket, None, {})
    assert tagging.tags(bucket) == {}
    tagging.set_tags(bucket, None, {"k": "v"})
    store.delete(bucket, ["a"])
    store.delete_bucket(bucket)
    for use in (lambda: tagging.tags(bucket), lambda: tagging.set_tags(bucket, None, {})):
        with pytest.raises(Missing):
            use()
    store.create_bucket(bucket)
    assert tagging.tags(bucket) == {}
