"""Objects and buckets through the gateway: whose they are, and what is told of them."""

from __future__ import annotations

import gc
import hashlib
import threading
import time
from email.utils import formatdate
from pathlib import Path

import pytest

from danlu.engines.memory_script import Script
from danlu.model.storage import access_key_of
from danlu.stores.folder.reading import Reading
from tests.faces.http.live import live
from tests.faces.obs import signer
from tests.faces.obs.conftest import PATIENCE_S, Gateway
from tests.faces.obs.test_bodies import connected


@pytest.fixture(scope="module")
def stranger(gateway: Gateway) -> signer.Key:
    """The key of somebody in another project."""
    return gateway.server.another("stranger")[1]


def test_another_projects_bucket_is_closed(gateway: Gateway, stranger: signer.Key) -> None:
    gateway.call("PUT", "shared", "private", b"content")
    upload = gateway.call("POST", "shared", "parts", query={"uploads": None}).text("UploadId")
    tries: list[tuple[str, str, dict[str, str | None]]] = [
        ("GET", "", {}),
        ("HEAD", "", {}),
        ("DELETE", "", {}),
        ("GET", "", {"list-type": "2"}),
        ("GET", "", {"versions": None}),
        ("GET", "", {"uploads": None}),
        ("GET", "", {"location": None}),
        ("GET", "", {"storageinfo": None}),
        ("POST", "", {"delete": None}),
        ("GET", "private", {}),
        ("HEAD", "private", {}),
        ("PUT", "private", {}),
        ("DELETE", "private", {}),
        ("GET", "private", {"acl": None}),
        ("PUT", "private", {"metadata": None}),
        ("PUT", "private", {"tagging": None}),
        ("POST", "private", {"append": None, "position": "7"}),
        ("POST", "private", {"rename": None, "name": "mine"}),
        ("POST", "private", {"uploads": None}),
        ("PUT", "parts", {"uploadId": upload, "partNumber": "1"}),
        ("POST", "parts", {"uploadId": upload}),
        ("DELETE", "parts", {"uploadId": upload}),
    ]
    for method, key, query in tries:
        answer = gateway.call(method, "shared", key, query=query, pair=stranger)
        assert answer.status == 403, (method, key, query)
        assert b"content" not in answer.body
    assert gateway.content("shared", "private") == b"content"
    assert gateway.call("GET", pair=stranger).text("Name") == ""
    answer = gateway.call("PUT", "shared", pair=stranger)
    assert (answer.status, answer.code) == (409, "BucketAlreadyExists")


def test_a_copy_opens_no_foreign_source(gateway: Gateway, stranger: signer.Key) -> None:
    gateway.call("PUT", "shared", "private", b"content")
    assert gateway.call("PUT", "strangers-own", pair=stranger).status == 200
    source = {"x-amz-copy-source": "/shared/private"}
    answer = gateway.call("PUT", "strangers-own", "stolen", headers=source, pair=stranger)
    assert answer.status == 403
    begun = gateway.call("POST", "strangers-own", "k", query={"uploads": None}, pair=stranger)
    query = {"uploadId": begun.text("UploadId"), "partNumber": "1"}
    answer = gateway.call("PUT", "strangers-own", "k", query=query, headers=source, pair=stranger)
    assert answer.status == 403
    assert gateway.call("GET", "strangers-own").status == 403
    names = gateway.call("GET", pair=stranger)
    assert names.body.count(b"<Bucket>") == 1
    dropped = {"uploadId": query["uploadId"]}
    gateway.call("DELETE", "strangers-own", "k", query=dropped, pair=stranger)
    assert gateway.call("DELETE", "strangers-own", pair=stranger).status == 204


def test_whose_a_bucket_is_outlives_the_server(tmp_path: Path) -> None:
    with live(tmp_path) as server:
        gateway = Gateway(server)
        pair = server.another("bob")[1]
        assert gateway.call("PUT", "of-bob", pair=pair).status == 200
        assert gateway.call("PUT", "of-admin").status == 200
    with live(tmp_path) as server:
        gateway = Gateway(server)
        assert gateway.call("HEAD", "of-bob", pair=pair).status == 200
        assert gateway.call("HEAD", "of-bob").status == 403
        assert gateway.call("HEAD", "of-admin", pair=pair).status == 403
        assert gateway.call("HEAD", "of-admin").status == 200


def test_ranges(gateway: Gateway, bucket: str) -> None:
    body = bytes(range(100))
    gateway.call("PUT", bucket, "k", body)
    for text, wanted in (
        ("bytes=0-9", body[:10]),
        ("bytes=90-", body[90:]),
        ("bytes=-5", body[-5:]),
        ("bytes=-500", body),
        ("bytes=99-5000", body[99:]),
    ):
        answer = gateway.call("GET", bucket, "k", headers={"Range": text})
        assert (answer.status, answer.body) == (206, wanted)
        assert answer.headers["content-range"].endswith("/100")
        assert gateway.call("HEAD", bucket, "k", headers={"Range": text}).status == 206
    for text in ("bytes=0-9,20-29", "lines=1-2", "bytes=9-1", "bytes=-", "x"):
        answer = gateway.call("GET", bucket, "k", headers={"Range": text})
        assert (answer.status, answer.body) == (200, body)
    for text in ("bytes=100-", "bytes=500-600", "bytes=-0"):
        answer = gateway.call("GET", bucket, "k", headers={"Range": text})
        assert (answer.status, answer.headers["content-range"]) == (416, "bytes */100")
    old = {"Range": "bytes=0-9", "If-Range": '"other"'}
    assert gateway.call("GET", bucket, "k", headers=old).body == body


def test_conditions_of_readers(gateway: Gateway, bucket: str) -> None:
    etag = gateway.call("PUT", bucket, "k", b"x").headers["etag"]
    past, future = formatdate(1, usegmt=True), formatdate(time.time() + 3600, usegmt=True)
    for headers, status in (
        ({"If-Match": etag}, 200),
        ({"If-Match": "*"}, 200),
        ({"If-Match": f'"other", {etag}'}, 200),
        ({"If-Match": '"other"'}, 412),
        ({"If-None-Match": etag}, 304),
        ({"If-None-Match": "*"}, 304),
        ({"If-None-Match": '"other"'}, 200),
        ({"If-Modified-Since": past}, 200),
        ({"If-Modified-Since": future}, 304),
        ({"If-Unmodified-Since": past}, 412),
        ({"If-Unmodified-Since": future}, 200),
        ({"If-Match": etag, "If-Unmodified-Since": past}, 200),
        ({"If-None-Match": '"other"', "If-Modified-Since": future}, 200),
        ({"If-Modified-Since": "no date"}, 200),
    ):
        for method in ("GET", "HEAD"):
            answer = gateway.call(method, bucket, "k", headers=headers)
            assert answer.status == status, (headers, method)
            if status == 304:
                assert (answer.body, answer.headers["etag"]) == (b"", etag)


def test_changing_metadata_never_touches_the_content(gateway: Gateway, bucket: str) -> None:
    """What another server of this protocol did was to store an empty object in its place."""
    first = {"x-amz-meta-a": "1", "x-amz-meta-b": "2", "Content-Type": "text/x"}
    gateway.call("PUT", bucket, "k", b"content", headers=first)
    for body in (b"", b"<xml/>", b"x" * 5000):
        more = {"x-amz-meta-a": "3"}
        answer = gateway.call("PUT", bucket, "k", body, query={"metadata": None}, headers=more)
        assert answer.status == 200
        assert gateway.content(bucket, "k") == b"content"
    found = gateway.call("HEAD", bucket, "k").headers
    assert (found["x-amz-meta-a"], found["x-amz-meta-b"]) == ("3", "2")
    assert found["content-type"] == "text/x"
    only = {"x-amz-meta-c": "4", "x-amz-metadata-directive": "REPLACE"}
    gateway.call("PUT", bucket, "k", query={"metadata": None}, headers=only)
    found = gateway.call("HEAD", bucket, "k").headers
    assert (found.get("x-amz-meta-a"), found["x-amz-meta-c"]) == (None, "4")
    wrong = {"x-amz-metadata-directive": "DELETE"}
    answer = gateway.call("PUT", bucket, "k", query={"metadata": None}, headers=wrong)
    assert answer.status == 400
    assert gateway.call("PUT", bucket, "none", query={"metadata": None}).status == 404


def test_metadata_that_no_header_can_hold_is_shown_encoded(gateway: Gateway, bucket: str) -> None:
    """Other ways into the store are not bound to what a header may be."""
    objects = gateway.server.running.platform.objects
    objects.put(bucket, "odd", b"x", metadata={"a b": "c\r\nSet-Cookie: x=1", "é": "ü"})
    found = gateway.call("GET", bucket, "odd").headers
    assert "set-cookie" not in found
    assert found["x-amz-meta-a%20b"] == "c%0D%0ASet-Cookie: x=1"
    named = gateway.call(
        "GET", bucket, "odd", query={"response-content-disposition": "x\r\nSet-Cookie: x=1"}
    )
    assert named.status == 400


def test_a_batch_tells_what_it_could_not_delete(gateway: Gateway, bucket: str) -> None:
    for key in ("a", "b"):
        gateway.call("PUT", bucket, key, b"x")
    listed = "".join(f"<Object><Key>{key}</Key></Object>" for key in ("a", "none", "x" * 1100))
    body = f"<Delete>{listed}</Delete>".encode()
    answer = gateway.call("POST", bucket, body=body, query={"delete": None})
    assert (answer.status, answer.body.count(b"<Deleted>")) == (200, 2)
    assert answer.body.count(b"<Error>") == 1
    assert b"KeyTooLongError" in answer.body
    quiet = b"<Delete><Quiet>true</Quiet><Object><Key>b</Key></Object></Delete>"
    answer = gateway.call("POST", bucket, body=quiet, query={"delete": None})
    assert b"<Deleted>" not in answer.body
    assert gateway.call("DELETE", bucket).status == 204


def test_a_page_ends_where_the_next_begins(gateway: Gateway, bucket: str) -> None:
    keys = sorted(f"{folder}/{name}" for folder in "abc" for name in ("1", "2", "ü &"))
    for key in keys:
        gateway.call("PUT", bucket, key, b"x")
    for form in ({"list-type": "2"}, {}, {"versions": None}):
        for limit in range(1, 11):
            seen, after, token = 0, "", ""
            for _ in range(20):
                query: dict[str, str | None] = {**form, "max-keys": str(limit)}
                place = "key-marker" if "versions" in form else "marker"
                query |= {"continuation-token": token} if token else {}
                query |= {place: after} if after and "list-type" not in form else {}
                answer = gateway.call("GET", bucket, query=query)
                seen += answer.body.count(b"<Key>")
                token = answer.text("NextContinuationToken")
                after = answer.text("NextMarker") or answer.text("NextKeyMarker")
                if answer.text("IsTruncated") == "false":
                    break
            assert seen == len(keys), (form, limit)
    folded = gateway.call("GET", bucket, query={"delimiter": "/", "max-keys": "2"})
    assert folded.body.count(b"<CommonPrefixes>") == 2
    assert folded.text("NextMarker") == "b/"
    none = gateway.call("GET", bucket, query={"max-keys": "0"})
    assert (none.body.count(b"<Key>"), none.text("IsTruncated")) == (0, "false")
    wrong = gateway.call("GET", bucket, query={"list-type": "2", "continuation-token": "!"})
    assert (wrong.status, wrong.code) == (400, "InvalidArgument")


def test_a_reader_gets_one_version_whole(gateway: Gateway, bucket: str) -> None:
    """Length, ETag and content belong together, though the object is replaced meanwhile."""
    ended = threading.Event()

    def replace() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            gateway.call("PUT", bucket, "k", bytes([number % 251]) * (number % 977 + 1))

    gateway.call("PUT", bucket, "k", b"x")
    writer = threading.Thread(target=replace)
    writer.start()
    try:
        for _ in range(150):
            answer = gateway.call("GET", bucket, "k")
            assert answer.status in (200, 503)
            if answer.status == 200:
                digest = hashlib.md5(answer.body, usedforsecurity=False).hexdigest()
                assert answer.headers["etag"] == f'"{digest}"'
    finally:
        ended.set()
        writer.join()


def test_a_reader_that_has_gone_leaves_nothing_open(gateway: Gateway, bucket: str) -> None:
    gateway.server.running.platform.objects.put(bucket, "large", bytes(64 << 20))
    path = signer.path_of(bucket, "large")
    signed = signer.v2_signed(gateway.key, "GET", path, {}, {"Host": gateway.host})
    head = "\r\n".join([f"GET {path} HTTP/1.1", *(f"{n}: {v}" for n, v in signed.items()), "\r\n"])
    for _ in range(5):
        with connected(gateway) as door:
            door.sendall(head.encode())
            assert door.recv(1000).startswith(b"HTTP/1.1 200")

    def still_open() -> int:
        gc.collect()
        return sum(isinstance(one, Reading) and one._descriptor >= 0 for one in gc.get_objects())

    ends = time.monotonic() + PATIENCE_S
    while still_open():
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_an_attempts_key_opens_the_storage_while_it_lives(tmp_path: Path) -> None:
    with live(tmp_path) as server:
        gateway = Gateway(server)
        server.script("endless", Script(duration_s=None))
        job = server.submit("endless")
        server.until(job, "running")
        found = server.running.platform.records.access_key(access_key_of(job, 1))
        assert found is not None
        pair = (found.access_key, found.secret.reveal())
        assert gateway.call("PUT", "danlu", "from-job", b"x", pair=pair).status == 200
        server.clear()
        server.until(job, "cancelled", "succeeded", "failed")
        ends = time.monotonic() + PATIENCE_S
        while gateway.call("GET", "danlu", "from-job", pair=pair).status != 403:
            assert time.monotonic() < ends, "the key lives on"
            time.sleep(0.2)
        assert gateway.call("GET", "danlu", "from-job").body == b"x"
