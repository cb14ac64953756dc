"""What a request may look like: hostile XML, malformed requests, and what is not implemented."""

from __future__ import annotations

import random
import socket

import pytest

from danlu.faces.obs.routes import operations
from tests.faces.obs import signer
from tests.faces.obs.conftest import PATIENCE_S, Gateway

BOMB = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 10))
DELETE = "<Delete><Object><Key>{}</Key></Object></Delete>"

HOSTILE: list[bytes] = [
    b"",
    b" ",
    b"\x00",
    b"x",
    b"<",
    b"<a",
    b"<a>",
    b"</a>",
    b"<a></b>",
    b"<a/><b/>",
    b"<a b='1' b='2'/>",
    b"\xff\xfe<\x00a\x00/\x00>\x00",
    b"\xef\xbb\xbf<a/>",
    b"<a>\xff</a>",
    b"<a>\x00</a>",
    b"<a>&#0;</a>",
    b"<a>&#x110000;</a>",
    b"<a>&nbsp;</a>",
    b"<x:a/>",
    b"<a xmlns:x=''/>",
    b"<!DOCTYPE a><a/>",
    b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
    b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
    b'<!DOCTYPE a [<!ENTITY % x SYSTEM "http://127.0.0.1:1/x"> %x;]><a/>',
    f'<!DOCTYPE a [<!ENTITY a0 "ha">{BOMB}]><a>&a9;</a>'.encode(),
    f'<!DOCTYPE a [<!ENTITY a "{"x" * 50_000}">]><a>{"&a;" * 1000}</a>'.encode(),
    b"<?xml-stylesheet href='x'?><a/>",
    b"<?php echo 1 ?>",
    b'<?xml version="1.0" encoding="utf-7"?><a/>',
    b'<?xml version="9.9"?><a/>',
    b"<a>" * 100_000,
    b"<a>" * 50 + b"</a>" * 50,
    b"<a>" + b"<b/>" * 200_000 + b"</a>",
    b"<a>" + b"x" * 100_000 + b"</a>",
    b"<a " + b"b" * 100_000 + b"='1'/>",
    b"<" + b"a" * 100_000 + b"/>",
    b"<a><![CDATA[" + b"]]>]]>" * 10,
    b"<!-- " + b"-" * 100_000 + b"<a/>",
    b"<Delete></Delete>",
    b"<Delete><Object></Object></Delete>",
    b"<Delete><Object/><Object/></Delete>",
    b"<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>",
    b"<Delete><Object><Key>a</Key><VersionId>1</VersionId></Object></Delete>",
    b"<Delete>" + b"<Object><Key>a</Key></Object>" * 1001 + b"</Delete>",
    b"<Delete><EncodingType>zip</EncodingType><Object><Key>a</Key></Object></Delete>",
    DELETE.format("x" * 2000).encode(),
    b"<CompleteMultipartUpload/>",
    b"<CompleteMultipartUpload><Part/></CompleteMultipartUpload>",
    b"<CompleteMultipartUpload><Part><PartNumber>-1</PartNumber></Part></CompleteMultipartUpload>",
    (
        b"<CompleteMultipartUpload><Part><PartNumber>99999999999999999999</PartNumber><ETag>x</ETag>"
        b"</Part></CompleteMultipartUpload>"
    ),
    "<CompleteMultipartUpload><Part><PartNumber>１</PartNumber></Part></CompleteMultipartUpload>".encode(),
    b"<Tagging><TagSet><Tag/></TagSet></Tagging>",
    b"<Tagging><TagSet><Tag><Key>a</Key></Tag><Tag><Key>a</Key></Tag></TagSet></Tagging>",
    b"<Tagging><TagSet>" + b"<Tag><Key>a</Key></Tag>" * 50 + b"</TagSet></Tagging>",
    b"<VersioningConfiguration><Status>Maybe</Status></VersioningConfiguration>",
    b"<Quota><StorageQuota>-1</StorageQuota></Quota>",
    b"<Quota><StorageQuota>1e9</StorageQuota></Quota>",
    (
        b"<CreateBucketConfiguration><LocationConstraint>mars</LocationConstraint>"
        b"</CreateBucketConfiguration>"
    ),
    (
        b"<AccessControlPolicy><AccessControlList><Grant><Grantee><URI>http://acs.amazonaws.com/groups"
        b"/global/AllUsers</URI></Grantee><Permission>READ</Permission></Grant></AccessControlList>"
        b"</AccessControlPolicy>"
    ),
]

DOORS: list[tuple[str, str, str, dict[str, str | None]]] = [
    ("POST", "shared", "", {"delete": None}),
    ("POST", "shared", "hostile", {"uploadId": "none"}),
    ("PUT", "shared", "hostile", {"tagging": None}),
    ("PUT", "shared", "", {"tagging": None}),
    ("PUT", "shared", "", {"versioning": None}),
    ("PUT", "shared", "", {"quota": None}),
    ("PUT", "shared", "", {"acl": None}),
    ("PUT", "hostile-location", "", {}),
]


@pytest.mark.parametrize(("method", "bucket", "key", "query"), DOORS, ids=str)
def test_hostile_xml_is_refused_at_every_door(
    gateway: Gateway, method: str, bucket: str, key: str, query: dict[str, str | None]
) -> None:
    """The corpus: documents that are broken, that grow, that reach out, and that mean nonsense."""
    assert len(HOSTILE) >= 50
    gateway.call("PUT", "shared", "hostile", b"content")
    empty_is_fine = (bucket == "hostile-location") or "acl" in query
    for body in HOSTILE:
        answer = gateway.call(method, bucket, key, body, query=query)
        if not body and empty_is_fine:
            continue
        tolerated = [b"<Delete><Object", b"\xef\xbb\xbf"] if "delete" in query else []
        if answer.status == 200:
            # A batch is answered as a whole; what is wrong with a key stands beside it.
            assert any(body.startswith(one) for one in tolerated), body[:80]
            assert b"<Error>" in answer.body
            continue
        assert 400 <= answer.status < 500 or answer.status == 501, (answer.status, body[:80])
        assert answer.code, body[:80]
        assert b"root:" not in answer.body
    assert gateway.content("shared", "hostile") == b"content"


def test_an_unknown_sub_resource_is_never_taken_for_none(gateway: Gateway) -> None:
    """A `?torrent` that is ignored would store an empty object, or hand out the content."""
    gateway.call("PUT", "shared", "kept", b"content")
    names = [
        "torrent",
        "select",
        "restore",
        "retention",
        "legal-hold",
        "x-image-process",
        "nonsense",
    ]
    names += ["modify", "truncate", "fetch", "inventory", "attributes", "renameObject"]
    for name in names:
        for method in ("GET", "PUT", "POST", "DELETE"):
            answer = gateway.call(method, "shared", "kept", query={name: None})
            assert (answer.status, answer.code) == (501, "NotImplemented"), (method, name)
            assert name in answer.text("Message")
        assert gateway.call("HEAD", "shared", "kept", query={name: "1"}).status == 501
    for name in ("intelligent-tiering", "analytics", "metrics", "customdomain", "obsalias"):
        for method in ("GET", "PUT", "DELETE", "POST"):
            assert gateway.call(method, "shared", query={name: None}).status == 501
    for name in ("cors", "lifecycle", "policy", "website", "encryption", "replication", "logging"):
        assert gateway.call("PUT", "shared", body=b"<x/>", query={name: None}).status == 501
    assert gateway.content("shared", "kept") == b"content"


@pytest.mark.parametrize(
    "header",
    [
        ("x-amz-server-side-encryption", "AES256"),
        ("x-amz-server-side-encryption-customer-key", "x"),
        ("x-amz-acl", "public-read"),
        ("x-amz-grant-read", "id=x"),
        ("x-amz-object-lock-mode", "GOVERNANCE"),
        ("x-amz-website-redirect-location", "/x"),
        ("x-amz-storage-class", "GLACIER"),
        ("x-amz-write-offset-bytes", "5"),
        ("If-None-Match", '"etag"'),
    ],
)
def test_a_header_that_would_not_be_carried_out_is_refused(
    gateway: Gateway, header: tuple[str, str]
) -> None:
    answer = gateway.call("PUT", "shared", "plain", b"x", headers=dict([header]))
    assert (answer.status, answer.code) == (501, "NotImplemented")
    assert gateway.content("shared", "plain") is None


NAMES = [*sorted({place[2] for place, _ in operations}), "partNumber", "versionId", "max-keys"]
NAMES += ["prefix", "marker", "delimiter", "encoding-type", "list-type", "continuation-token"]
NAMES += ["position", "name"]
VALUES = ["", "0", "-1", "1", "url", "2", "9" * 30, "\x00", "é", "%", "/", "null", "x" * 2000]
HEADERS = ["Range", "If-Match", "If-None-Match", "If-Modified-Since", "Content-MD5"]
HEADERS += ["x-amz-copy-source", "x-amz-copy-source-range", "x-amz-meta-a", "x-amz-tagging"]
HEADERS += ["x-amz-metadata-directive", "x-amz-checksum-crc32", "x-amz-decoded-content-length"]
TEXTS = ["", "x", "*", "bytes=5-1", "bytes=-0", "bytes=99999999999999999-", "/a", "/shared/none"]
TEXTS += ["a" * 4000, "é", "0", "REPLACE", "Thu, 99 Foo", "AAAA", '"x", "y"', "a=b&a=b"]
KEYS = ["", "kept", "none", "a//b", "../x", "x" * 1100, "\x01\x7f", "ü" * 600, "a%2fb"]


def test_malformed_requests_are_the_clients_fault(gateway: Gateway) -> None:
    """Signed as they are, so that they get as far as they can."""
    dice = random.Random(7)
    for _ in range(600):
        method = dice.choice(["GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH"])
        bucket = dice.choice(["", "shared", "no-such-bucket", "UPPER", "a", "..", "shared/"])
        key = dice.choice(KEYS) if bucket else ""
        query: dict[str, str | None] = {
            dice.choice(NAMES): dice.choice([None, *VALUES]) for _ in range(dice.randrange(4))
        }
        sent = {dice.choice(HEADERS): dice.choice(TEXTS) for _ in range(dice.randrange(3))}
        body = dice.choice([b"", b"x", b"<a/>", b"x" * 5000])
        found = gateway.call(method, bucket, key, body, query=query, headers=sent)
        assert found.status < 500 or found.status == 501, (method, bucket, key, query, sent)


def test_a_key_that_is_not_utf_8_is_refused(gateway: Gateway) -> None:
    path = "/shared/%ff%fe"
    v4 = signer.V4(gateway.key)
    digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    for method in ("GET", "PUT", "HEAD", "DELETE"):
        answer = gateway.send(
            method, path, v4.headers(method, path, {}, {"Host": gateway.host}, digest)
        )
        assert answer.status == 400


def test_keys_are_what_they_are(gateway: Gateway, bucket: str) -> None:
    """(rule 9) No key is a path; each is a name of its own."""
    keys = [
        "a",
        "a/",
        "a//b",
        "../x",
        "/lead",
        "./.",
        "a b+c",
        "%41",
        "A",
        "é",
        "e\u0301",
        "😀",
        "\n\t",
    ]
    keys += ["?x=1", "#", "x" * 1024, "con", "a\\b", "&<>\"'", "ü" * 512]
    for key in keys:
        assert gateway.call("PUT", bucket, key, key.encode()).status == 200, key
    for key in keys:
        assert gateway.call("GET", bucket, key).body == key.encode()
    listed = gateway.server.running.platform.objects.walk(bucket)
    assert sorted(info.key for info in listed) == sorted(keys)


RAW = [
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET /shared HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: {host}\r\nAuthorization: AWS a:b\r\nAuthorization: AWS a:b\r\n\r\n",
    b"GET http://{host}/shared HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"GET /shared?a=1&a=2 HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"GET /shared?" + b"a&" * 300 + b" HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"GET /%zz HTTP/1.1\r\nHost: {host}\r\n\r\n",
    b"PUT /shared/x HTTP/1.1\r\nHost: {host}\r\nContent-Length: x\r\n\r\n",
    b"PUT /x/x HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"\x16\x03\x01\x00\xff\x01\x00",
]


@pytest.mark.parametrize("sent", RAW)
def test_raw_nonsense_gets_a_refusal_or_no_answer(gateway: Gateway, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", gateway.port), PATIENCE_S) as door:
        door.sendall(sent.replace(b"{host}", gateway.host.encode()))
        door.shutdown(socket.SHUT_WR)
        said = b""
        while piece := door.recv(65_536):
            said += piece
    assert not said or said.split(b" ")[1][:1] == b"4"


def test_messages_are_in_the_readers_language(gateway: Gateway) -> None:
    answer = gateway.call("GET", "shared", "none", headers={"Accept-Language": "zh-CN"})
    assert "没有对象" in answer.text("Message")
    assert answer.text("Cause") == "no-such-object"
    assert answer.headers["x-amz-request-id"] == answer.text("RequestId")
