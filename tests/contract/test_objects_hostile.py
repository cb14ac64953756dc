"""Every hostile key on every store: refused with a reason, or stored as nothing but itself."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.model.errors import Invalid, Missing, Refused
from danlu.ports.objects import Multipart, ObjectStore
from danlu.stores.folder import FolderStore
from tests.contract.hostile_keys import HOSTILE
from tests.contract.objects import STORES, content, in_memory, names, new_bucket, opened


@pytest.fixture(scope="module", params=STORES)
def store(request: pytest.FixtureRequest) -> Iterator[ObjectStore]:
    with opened(request.param) as made:
        yield made


def test_the_corpus_is_large() -> None:
    assert len(HOSTILE) >= 600
    assert all(1 <= len(key.encode()) <= 1024 for key in HOSTILE)


def test_each_is_refused_or_stored_as_itself(store: ObjectStore) -> None:
    """A store of paths sees a part of them: its server is asked over the network."""
    bucket, other = new_bucket(store), new_bucket(store)
    store.put(other, "kept", b"kept")
    stored = 0
    for number, key in enumerate(
        HOSTILE if store.powers.any_key else HOSTILE[:: len(HOSTILE) // 200]
    ):
        mine = b"%d" % number
        try:
            store.put(bucket, key, mine)
        except (Invalid, Refused):
            assert not store.powers.any_key
            with contextlib.suppress(Invalid, Missing):
                assert content(store, bucket, key) != mine
            continue
        stored += 1
        assert content(store, bucket, key) == mine
        assert key in names(store.list(bucket, key))
        store.delete(bucket, [key])
        with pytest.raises(Missing):
            store.head(bucket, key)
    assert stored
    assert not store.list(bucket).objects
    assert names(store.list(other)) == ["kept"]
    assert content(store, other, "kept") == b"kept"


def test_nothing_outside_the_root_and_no_name_from_a_key() -> None:
    """The folder store: all of them at once, by put, upload, copy, append and rename."""
    with in_memory() as place:
        root = place / "deep" / "objects"
        store = FolderStore(root)
        store.create_bucket("danlu")
        assert isinstance(store, Multipart)
        before = _outside(place, root)
        for key in HOSTILE:
            upload = store.create_upload("danlu", key).id
            part = store.put_part("danlu", key, upload, 1, key.encode())
            store.complete_upload("danlu", key, upload, [(1, part.etag)])
            store.append("danlu", key, b"+", len(key.encode()))
        assert names(store.list("danlu", limit=2000)) == HOSTILE
        for key in HOSTILE[::7]:
            assert content(store, "danlu", key) == key.encode() + b"+"
            store.rename("danlu", key, f"{key[:300]}~")
        assert _outside(place, root) == before
        for path in (root / "danlu" / "blobs").rglob("*"):
            assert set(path.name) <= set("0123456789abcdef")
        assert len(list(root.iterdir())) == 1
        store.close()


def _outside(place: Path, root: Path) -> set[Path]:
    return {path for path in place.rglob("*") if root not in path.parents}
