"""Who gets in, and that nothing of what was signed can be changed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping

import pytest

from danlu.faces.http.headers import Headers
from danlu.faces.obs import sign_v2, sign_v4
from danlu.faces.obs.query import Query
from danlu.model.errors import Denied
from danlu.wire.obs import AMZ
from tests.faces.obs import signer
from tests.faces.obs.conftest import Answer, Gateway

EXAMPLE = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
EMPTY = hashlib.sha256(b"").hexdigest()


def raw(headers: Mapping[str, str]) -> Headers:
    return Headers((name.lower().encode(), value.encode()) for name, value in headers.items())


def test_the_published_example_of_v2() -> None:
    """Amazon S3's guide, "Signing and authenticating REST requests", the object GET."""
    headers = raw({"Host": "x", "Date": "Tue, 27 Mar 2007 19:36:42 +0000"})
    sent = sign_v2.Sent("GET", "/awsexamplebucket1/photos/puppy.jpg", Query(b""), headers)
    text = next(sign_v2.strings_to_sign(sent, AMZ))
    assert sign_v2.signature(text, EXAMPLE) == "qgk2+6Sv9/oM7G3qLEjTH1a1l1g="


def test_the_published_example_of_v4() -> None:
    """Amazon S3's API reference, "Signature calculations: single chunk", the GET with a range."""
    headers = raw(
        {
            "Host": "examplebucket.s3.amazonaws.com",
            "Range": "bytes=0-9",
            "x-amz-content-sha256": EMPTY,
            "x-amz-date": "20130524T000000Z",
        }
    )
    sent = sign_v4.Sent("GET", b"/test.txt", Query(b""), headers)
    names = ("host", "range", "x-amz-content-sha256", "x-amz-date")
    canonical = next(sign_v4.canonical_requests(sent, names, EMPTY))
    scope = "20130524/us-east-1/s3/aws4_request"
    text = sign_v4.string_to_sign(canonical, "20130524T000000Z", scope)
    key = sign_v4.signing_key(EXAMPLE, "20130524", "us-east-1", "s3")
    expected = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    assert sign_v4.sign(key, text) == expected


def test_the_published_example_of_signed_chunks() -> None:
    """The same, "multiple chunks": 65,536 and 1,024 times the letter a."""
    key = sign_v4.signing_key(EXAMPLE, "20130524", "us-east-1", "s3")
    scope = "20130524/us-east-1/s3/aws4_request"
    seed = "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
    signatures = (
        "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
        "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
        "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
    )
    chunks = sign_v4.ChunkSigner(key, "20130524T000000Z", scope, seed)
    for size, signature in zip((65_536, 1024, 0), signatures, strict=True):
        chunks.check_chunk(hashlib.sha256(b"a" * size).hexdigest(), signature)
    again = sign_v4.ChunkSigner(key, "20130524T000000Z", scope, seed)
    with pytest.raises(Denied):
        again.check_chunk(hashlib.sha256(b"b").hexdigest(), signatures[0])


# ---------------------------------------------------------------- every part is covered

PUT = ("PUT", "/shared/signed", {"tagging": None}, {"Content-Type": "application/xml"})
BODY = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"

Sign = Callable[[Gateway, str, str, signer.Query, Mapping[str, str]], tuple[str, dict[str, str]]]


def by_v2(
    gateway: Gateway, method: str, path: str, query: signer.Query, headers: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    sent = {**headers, "x-amz-meta-a": "1"}
    return signer.target(path, query), signer.v2_signed(gateway.key, method, path, query, sent)


def by_obs(
    gateway: Gateway, method: str, path: str, query: signer.Query, headers: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    sent = {**headers, "x-obs-meta-a": "1"}
    signed = signer.v2_signed(gateway.key, method, path, query, sent, "OBS")
    return signer.target(path, query), signed


def by_v4(
    gateway: Gateway, method: str, path: str, query: signer.Query, headers: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    sent = {**headers, "Host": gateway.host, "x-amz-meta-a": "1"}
    digest = hashlib.sha256(BODY).hexdigest()
    signed = signer.V4(gateway.key).headers(method, path, query, sent, digest)
    return signer.target(path, query), signed


def by_v2_url(
    gateway: Gateway, method: str, path: str, query: signer.Query, headers: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    expires = str(int(time.time()) + 60)
    signature = signer.v2(gateway.key, method, path, query, headers, expires=expires)
    named = {"AWSAccessKeyId": gateway.key[0], "Expires": expires, "Signature": signature}
    return signer.target(path, {**query, **named}), dict(headers)


def by_obs_url(
    gateway: Gateway, method: str, path: str, query: signer.Query, headers: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    expires = str(int(time.time()) + 60)
    signature = signer.v2(gateway.key, method, path, query, headers, kind="OBS", expires=expires)
    named = {"AccessKeyId": gateway.key[0], "Expires": expires, "Signature": signature}
    return signer.target(path, {**query, **named}), dict(headers)


def by_v4_url(
    gateway: Gateway, method: str, path: str, query: signer.Query, headers: Mapping[str, str]
) -> tuple[str, dict[str, str]]:
    return signer.V4(gateway.key).url(method, path, query, gateway.host), dict(headers)


WAYS = [by_v2, by_obs, by_v4, by_v2_url, by_obs_url, by_v4_url]


@pytest.fixture
def signed_object(gateway: Gateway) -> None:
    assert gateway.call("PUT", "shared", "signed", b"content").status == 200


@pytest.mark.parametrize("sign", WAYS)
def test_a_signed_request_is_done(gateway: Gateway, signed_object: None, sign: Sign) -> None:
    method, path, query, headers = PUT
    target, sent = sign(gateway, method, path, query, headers)
    answer = gateway.send(method, target, sent, BODY)
    assert answer.status == 200, answer.body


def changed(text: str) -> str:
    """The same with its last letter or digit changed."""
    return text[:-1] + ("A" if text[-1] != "A" else "B")


def mutations(
    method: str, target: str, headers: Mapping[str, str]
) -> list[tuple[str, str, dict[str, str]]]:
    """The request with one part changed, each."""
    path, _, query = target.partition("?")
    found = [
        ("DELETE", target, dict(headers)),
        (method, target.replace("signed", "signee"), dict(headers)),
        (method, target.replace("tagging", "acl"), dict(headers)),
        (method, target.replace("tagging", "tagging&versionId=null"), dict(headers)),
        (method, target, {**headers, "x-amz-copy-source": "/shared/signed"}),
        (method, target, {**headers, "x-obs-copy-source": "/shared/signed"}),
        (method, path, dict(headers)) if "ignature" not in query else (method, path, {}),
    ]
    for name in headers:
        if name.lower() not in ("host", "content-type"):
            found.append((method, target, {**headers, name: changed(headers[name])}))
            found.append((method, target, {n: v for n, v in headers.items() if n != name}))
    for name in ("Signature", "KeyId", "Credential", "Expires", "X-Amz-Date"):
        for part in query.split("&"):
            if part.partition("=")[0].endswith(name):
                found.append((method, target.replace(part, changed(part)), dict(headers)))
                found.append((method, target.replace(part, ""), dict(headers)))
    return found


@pytest.mark.parametrize("sign", WAYS)
def test_no_part_of_it_can_be_changed(gateway: Gateway, signed_object: None, sign: Sign) -> None:
    method, path, query, headers = PUT
    target, sent = sign(gateway, method, path, query, headers)
    for other_method, other_target, other in mutations(method, target, sent):
        answer = gateway.send(other_method, other_target, other, BODY)
        assert answer.status in (400, 403), (other_method, other_target, other, answer.body)
    assert gateway.content("shared", "signed") == b"content"


def test_a_signature_that_does_not_match_says_what_had_to_be_signed(gateway: Gateway) -> None:
    wrong = (gateway.key[0], "wrong")
    answer = gateway.call("GET", "shared", pair=wrong)
    assert (answer.status, answer.code) == (403, "SignatureDoesNotMatch")
    assert answer.text("StringToSign").startswith("AWS4-HMAC-SHA256\n")
    assert answer.text("CanonicalRequest").startswith("GET\n/shared\n")
    sent = signer.v2_signed(wrong, "GET", "/shared", {}, {})
    answer = gateway.send("GET", "/shared", sent)
    assert answer.text("StringToSign") == f"GET\n\n\n{sent['Date']}\n/shared"
    assert gateway.key[1].encode() not in answer.body


def denied(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.code


def test_who_is_not_known_is_told_so(gateway: Gateway) -> None:
    assert denied(gateway.send("GET", "/shared", {})) == (403, "AccessDenied")
    answer = gateway.call("GET", "shared", pair=("nobody", "x"))
    assert denied(answer) == (403, "InvalidAccessKeyId")
    for value in ("Basic eA==", "AWS", "AWS x", "AWS4-HMAC-SHA256 x", "OBS :", "SDK-HMAC-SHA256 x"):
        assert gateway.send("GET", "/shared", {"Authorization": value}).status in (400, 403)


@pytest.mark.parametrize("skew_s", [-1000, 1000])
def test_a_clock_that_is_wrong(gateway: Gateway, skew_s: int) -> None:
    v4 = signer.V4(gateway.key, skew_s=skew_s)
    headers = v4.headers("GET", "/shared", {}, {"Host": gateway.host}, EMPTY)
    answer = gateway.send("GET", "/shared", headers)
    assert denied(answer) == (403, "RequestTimeTooSkewed")
    assert answer.text("ServerTime")


def test_a_signed_url_ends(gateway: Gateway) -> None:
    url = signer.V4(gateway.key, skew_s=-120).url("GET", "/shared", {}, gateway.host)
    assert denied(gateway.send("GET", url, {})) == (403, "AccessDenied")
    old = str(int(time.time()) - 5)
    signature = signer.v2(gateway.key, "GET", "/shared", {}, {}, expires=old)
    named = {"AWSAccessKeyId": gateway.key[0], "Expires": old, "Signature": signature}
    assert gateway.send("GET", signer.target("/shared", named), {}).status == 403


def test_a_host_that_is_not_ours_is_refused(gateway: Gateway) -> None:
    for host in ("evil.example", "shared.evil.example", "localhost.evil.example", ""):
        answer = gateway.send("HEAD", "/?apiversion", {"Host": host})
        assert answer.status in (400, 403), host


def test_huaweis_sdk_is_told_that_its_own_signature_is_taken(gateway: Gateway) -> None:
    """Unsigned, and the same whether there is such a bucket: nothing is told of buckets."""
    for host in (gateway.host, "shared.localhost", "no-such-bucket.localhost"):
        answer = gateway.send("HEAD", "/?apiversion", {"Host": host})
        assert (answer.status, answer.headers["x-obs-api"]) == (200, "3.0")


def test_a_bucket_in_the_hosts_name(gateway: Gateway) -> None:
    host = f"shared.localhost:{gateway.port}"
    assert gateway.call("PUT", "shared", "by path/ü", b"x").status == 200
    path = signer.path_of(key="by path/ü")
    headers = signer.V4(gateway.key).headers("GET", path, {}, {"Host": host}, EMPTY)
    assert gateway.send("GET", path, headers).body == b"x"
    signed = signer.v2_signed(gateway.key, "GET", f"/shared{path}", {}, {}, "OBS")
    assert gateway.send("GET", path, {**signed, "Host": host}).body == b"x"
