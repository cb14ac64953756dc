"""What every ObjectStore promises of listings, against their definition."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from danlu.ports.objects import ObjectStore
from tests.contract.objects import STORES, names, new_bucket, opened, stored

dense_keys = st.text("ab/é\0", min_size=1, max_size=6)


@pytest.fixture(scope="module", params=STORES)
def store(request: pytest.FixtureRequest) -> Iterator[ObjectStore]:
    with opened(request.param) as made:
        if not made.powers.any_key or not made.powers.ordered:
            pytest.skip("listings of paths have an order of their own")
        yield made


def entries(all_keys: set[str], prefix: str, delimiter: str, after: str) -> list[tuple[bytes, str]]:
    """What a listing holds, by its definition: (entry, what kind), in order."""
    found: set[tuple[bytes, str]] = set()
    for key in all_keys:
        if key.startswith(prefix):
            at = key.find(delimiter, len(prefix)) if delimiter else -1
            found.add(
                (key.encode(), "key") if at < 0 else (key[: at + len(delimiter)].encode(), "prefix")
            )
    return sorted(entry for entry in found if entry[0] > after.encode())


def check_listing(
    store: ObjectStore,
    bucket: str,
    all_keys: set[str],
    *,
    prefix: str,
    delimiter: str,
    after: str,
    limit: int,
) -> None:
    expected = entries(all_keys, prefix, delimiter, after)
    page = store.list(bucket, prefix, delimiter=delimiter, after=after, limit=limit)
    got = [(key.encode(), "key") for key in names(page)]
    got += [(folded.encode(), "prefix") for folded in page.prefixes]
    assert sorted(got) == expected[:limit]
    more = len(expected) > limit > 0
    assert page.next == (expected[limit - 1][0].decode() if more else None)


@stored
@given(
    all_keys=st.sets(dense_keys, max_size=15),
    prefix=st.text("ab/é", max_size=2),
    delimiter=st.sampled_from(["", "/", "b", "a/", "é"]),
    after=st.one_of(st.just(""), dense_keys),
    limit=st.integers(0, 6),
)
def test_a_page_is_what_its_definition_says(
    store: ObjectStore, all_keys: set[str], prefix: str, delimiter: str, after: str, limit: int
) -> None:
    bucket = new_bucket(store)
    for key in all_keys:
        store.put(bucket, key, b"")
    check_listing(
        store, bucket, all_keys, prefix=prefix, delimiter=delimiter, after=after, limit=limit
    )


MANY = 10_000


@pytest.fixture(scope="module")
def many(store: ObjectStore) -> tuple[str, set[str]]:
    """A bucket with 10,000 keys: few and many of them below one prefix."""
    bucket = new_bucket(store)
    dice = random.Random(7)
    found: set[str] = set()
    while len(found) < MANY:
        depth = dice.randint(1, 4)
        parts = [f"{dice.choice('abc')}{int(dice.paretovariate(0.7))}" for _ in range(depth)]
        found.add(dice.choice(["", "/", "data/"]) + "/".join(parts)[:80])
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: store.put(bucket, key, b""), sorted(found)))
    return bucket, found


@settings(stored, max_examples=80)
@given(data=st.data())
def test_pages_of_ten_thousand_keys(
    store: ObjectStore, many: tuple[str, set[str]], data: st.DataObject
) -> None:
    bucket, all_keys = many
    some = st.sampled_from(sorted(all_keys))
    cut = some.flatmap(lambda key: st.integers(0, len(key)).map(lambda at: key[:at]))
    check_listing(
        store,
        bucket,
        all_keys,
        prefix=data.draw(st.one_of(st.just(""), st.just("data/"), cut)),
        delimiter=data.draw(st.sampled_from(["", "/", "1"])),
        after=data.draw(st.one_of(st.just(""), some, cut)),
        limit=data.draw(st.integers(1, 1500)),
    )


@pytest.mark.parametrize("delimiter", ["", "/"])
@pytest.mark.parametrize("limit", [7, 1000])
def test_paging_sees_everything_once(
    store: ObjectStore, many: tuple[str, set[str]], delimiter: str, limit: int
) -> None:
    bucket, all_keys = many
    got: list[bytes] = []
    after: str | None = ""
    while after is not None:
        page = store.list(bucket, "data/", delimiter=delimiter, after=after, limit=limit)
        got += sorted(name.encode() for name in [*names(page), *page.prefixes])
        after = page.next
    assert got == [entry for entry, _ in entries(all_keys, "data/", delimiter, "")]


def test_walk_sees_every_object_below_a_prefix(
    store: ObjectStore, many: tuple[str, set[str]]
) -> None:
    bucket, all_keys = many
    walked = [item.key for item in store.walk(bucket, "data/a")]
    assert walked == sorted((key for key in all_keys if key.startswith("data/a")), key=str.encode)
