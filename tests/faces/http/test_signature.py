"""The signature's arithmetic, against the official signer and against everything that is not it."""

from __future__ import annotations

import hashlib
import json
import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from danlu.faces.http import signature
from danlu.faces.http.headers import Headers
from danlu.faces.http.signature import Sent
from danlu.model.errors import Denied
from tests.faces.http import signing
from tests.services import ROOT, sdk_python

KEY = ("AKEXAMPLE", "a secret with spaces / and +")
NOW = 1_790_000_000_000

REQUESTS: list[dict[str, Any]] = [
    {"method": "GET", "path": "/v2/p/training-jobs/id", "query": [], "headers": {}, "body": ""},
    {"method": "GET", "path": "/v2/p/training-jobs/a%2Fb", "query": [], "headers": {}, "body": ""},
    {"method": "GET", "path": "/v2/p/x/", "query": [], "headers": {}, "body": ""},
    {"method": "GET", "path": "/v2/p/%E4%B8%AD%20~-._", "query": [], "headers": {}, "body": ""},
    {
        "method": "GET",
        "path": "/v2/p/logs",
        "query": [["order", "asc"], ["base_line", ""], ["x", "a b+c&d=e/中~"], ["lines", 5]],
        "headers": {"X-Language": "zh-cn"},
        "body": "",
    },
    {
        "method": "POST",
        "path": "/v2/p/training-jobs",
        "query": [],
        "headers": {"Content-Type": "application/json;charset=UTF-8", "X-Project-Id": "p"},
        "body": '{"name": "中文"}',
    },
    {
        "method": "PUT",
        "path": "/v2/p/training-jobs/x",
        "query": [["a", True]],
        "headers": {"Content-Type": "application/json", "X-Security-Token": " padded "},
        "body": "{}",
    },
    {
        "method": "DELETE",
        "path": "/v2/p/training-jobs/x",
        "query": [],
        "headers": {"User-Agent": "huaweicloud-usdk-python/3.0; 中", "x_under": "score"},
        "body": "",
    },
    {
        "method": "GET",
        "path": "/v2/p/tasks/worker-0/logs/url",
        "query": [],
        "headers": {"Content-Type": "text/plain"},
        "body": "",
    },
]


def official(version: str) -> list[dict[str, Any]]:
    """The requests, signed by the SDK."""
    asked = [
        {**request, "host": "127.0.0.1:8778", "ak": KEY[0], "sk": KEY[1]} for request in REQUESTS
    ]
    done = subprocess.run(
        [str(sdk_python(version)), str(ROOT / "tests" / "clients" / "drivers" / "signer.py")],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def as_sent(request: dict[str, Any], answer: dict[str, Any]) -> tuple[Sent, str]:
    """The request as it arrives, and its Authorization."""
    path, _, query = answer["uri"].partition("?")
    headers = {name.lower(): str(value) for name, value in answer["headers"].items()}
    authorization = headers.pop("authorization")
    # The SDK hands texts whose characters are the bytes that are sent.
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    body = request["body"].encode()
    body_hash = hashlib.sha256(body).hexdigest() if body else ""
    return (
        Sent(request["method"], path.encode(), query.encode(), Headers(raw), body_hash),
        authorization,
    )


@pytest.mark.clients
@pytest.mark.parametrize("version", ["3.1.206", "3.1.219"])
def test_what_the_official_signer_signs_is_verified(version: str) -> None:
    for request, answer in zip(REQUESTS, official(version), strict=True):
        sent, authorization = as_sent(request, answer)
        read = signature.read_authorization(authorization)
        signature.verify(sent, read, KEY[1], unsigned_allowed=False)
        with pytest.raises(Denied, match="does not match"):
            signature.verify(sent, read, KEY[1] + "x", unsigned_allowed=False)


def request(method: str = "GET", target: str = "/v2/p/x?a=1", body: bytes = b"") -> Sent:
    """A signed request; its Authorization is among the headers."""
    headers = {"Host": "h:1", "X-Sdk-Date": "20260921T140640Z"}
    sent = signing.signed(KEY, method, target, headers, body)
    path, _, query = target.partition("?")
    raw = [(name.lower().encode(), value.encode()) for name, value in sent.items()]
    body_hash = hashlib.sha256(body).hexdigest() if body else ""
    return Sent(method, path.encode(), query.encode(), Headers(raw), body_hash)


def check(sent: Sent) -> None:
    read = signature.read_authorization(sent.headers.get("authorization") or "")
    signature.verify(sent, read, KEY[1], unsigned_allowed=False)


def test_an_escaped_slash_signs_like_a_plain_one() -> None:
    check(request(target="/v2/p/a%2Fb"))
    assert signature.canonical_path(b"/a%2Fb") == signature.canonical_path(b"/a/b/") == "/a/b/"


@pytest.mark.parametrize(
    ("query", "canonical"),
    [
        (b"", ""),
        (b"b=2&a=1", "a=1&b=2"),
        (b"base_line=", "base_line="),
        (b"flag", "flag="),
        (b"a=%7E%20%2B", "a=~%20%2B"),
        (b"a=1+2", "a=1%202"),
        (b"a=2&a=1", "a=1&a=2"),
        (b"&&a=1&", "a=1"),
    ],
)
def test_a_query_is_sorted_and_encoded_anew(query: bytes, canonical: str) -> None:
    assert signature.canonical_query(query) == canonical


@given(st.text(st.characters(codec="utf-8"), max_size=20), st.binary(max_size=50))
def test_any_path_and_body_verifies_when_signed(text: str, body: bytes) -> None:
    encoded = "".join(f"%{byte:02X}" for byte in text.encode())
    check(request("POST", f"/v2/{encoded}?q={encoded}", body))


def credential(access: str = "a", names: str = "host;x-sdk-date", digits: str = "0" * 64) -> str:
    return f"SDK-HMAC-SHA256 Access={access}, SignedHeaders={names}, Signature={digits}"


@pytest.mark.parametrize(
    ("header", "key"),
    [
        ("", "algorithm-unsupported"),
        ("Basic dTpw", "algorithm-unsupported"),
        ("Bearer abc", "algorithm-unsupported"),
        (credential().replace("SHA256", "SM3"), "algorithm-unsupported"),
        ("V11-HMAC-SHA256 Credential=a, SignedHeaders=b, Signature=c", "algorithm-unsupported"),
        ("SDK-ECDSA-P256-SHA256 Access=a", "algorithm-unsupported"),
        ("AWS4-HMAC-SHA256 Credential=a", "algorithm-unsupported"),
        (credential().lower(), "algorithm-unsupported"),
        ("SDK-HMAC-SHA256", "signature-malformed"),
        ("SDK-HMAC-SHA256 Access=a", "signature-malformed"),
        (credential(digits="0" * 63), "signature-malformed"),
        (credential(digits="A" * 64), "signature-malformed"),
        (credential(names="host"), "signature-header-missing"),
        (credential(names="x-sdk-date"), "signature-header-missing"),
        (credential(names="host;x-sdk-date;host"), "signature-malformed"),
        (credential(access="a" * 9000), "signature-malformed"),
    ],
)
def test_an_authorization_that_cannot_be_read_says_why(header: str, key: str) -> None:
    with pytest.raises(Denied) as caught:
        signature.read_authorization(header)
    assert caught.value.key == key
    assert caught.value.http == 401


@pytest.mark.parametrize(
    ("off_s", "fine"), [(0, True), (899, True), (-899, True), (901, False), (-901, False)]
)
def test_the_clocks_may_differ_by_a_quarter_of_an_hour(off_s: int, *, fine: bool) -> None:
    at = signature.check_date("20260921T141320Z", NOW)
    value = "20260921T141320Z"
    if fine:
        assert signature.check_date(value, at + off_s * 1000) == at
    else:
        with pytest.raises(Denied) as caught:
            signature.check_date(value, at + off_s * 1000)
        assert caught.value.params["off_s"] == 901


@pytest.mark.parametrize(
    "value", ["", "now", "20260921T141320", "2026-09-21T14:13:20Z", "20261321T141320Z", "٢" * 16]
)
def test_a_date_that_is_none_is_refused(value: str) -> None:
    with pytest.raises(Denied) as caught:
        signature.check_date(value, NOW)
    assert caught.value.key == "signature-malformed"


def test_the_signed_hash_must_be_the_bodys() -> None:
    other = hashlib.sha256(b"other").hexdigest()
    headers = {"Host": "h", "X-Sdk-Date": "20260921T140640Z", "X-Sdk-Content-Sha256": other}
    sent = signing.signed(KEY, "POST", "/x", headers, b"body")
    raw = [(name.lower().encode(), value.encode()) for name, value in sent.items()]
    found = hashlib.sha256(b"body").hexdigest()
    with pytest.raises(Denied) as caught:
        check(Sent("POST", b"/x", b"", Headers(raw), found))
    assert caught.value.key == "signature-body"


def test_an_unsigned_body_is_taken_only_where_the_route_says_so() -> None:
    headers = {"Host": "h", "X-Sdk-Date": "20260921T140640Z"}
    headers["X-Sdk-Content-Sha256"] = "UNSIGNED-PAYLOAD"
    signed = signing.signed(KEY, "POST", "/x", headers, b"body")
    raw = [(name.lower().encode(), value.encode()) for name, value in signed.items()]
    sent = Sent("POST", b"/x", b"", Headers(raw), hashlib.sha256(b"body").hexdigest())
    read = signature.read_authorization(signed["Authorization"])
    signature.verify(sent, read, KEY[1], unsigned_allowed=True)
    with pytest.raises(Denied) as caught:
        signature.verify(sent, read, KEY[1], unsigned_allowed=False)
    assert caught.value.key == "signature-body"


def test_a_body_that_is_not_read_yet_must_come_with_its_hash() -> None:
    sent = request("POST", "/x", b"body")
    later = Sent(sent.method, sent.raw_path, sent.query, sent.headers, None)
    with pytest.raises(Denied) as caught:
        check(later)
    assert caught.value.key == "signature-header-missing"
