"""Signatures, against the official signer."""

from __future__ import annotations

import json
import subprocess

import pytest

from danlu.faces.cli.signing import authorization, quote, stamp
from tests.services import sdk_python

KEY = ("AKEXAMPLE", "secret with 中文")

REQUESTS: list[tuple[str, str, list[tuple[str, str]], dict[str, str], str]] = [
    ("GET", "/danlu/v1/p/jobs", [], {}, ""),
    ("GET", "/", [("b", "2"), ("a", "1"), ("a", "0"), ("empty", "")], {}, ""),
    ("POST", "/v2/p/training-jobs", [], {"Content-Type": "application/json"}, '{"名": "值"}'),
    ("DELETE", "/danlu/v1/p/jobs/a b~c/ü/", [("q", "a+b&c=d/é ~")], {"X-Extra": " padded "}, ""),
    ("PUT", "/x", [("中", "文")], {"Content-Type": "application/x-tar"}, "payload"),
]

ORACLE = """
import json, sys
from huaweicloudsdkcore.sdk_request import SdkRequest
from huaweicloudsdkcore.signer.signer import Signer
class Credentials:
    ak, sk = sys.argv[1:3]
for method, path, query, headers, body in json.load(sys.stdin):
    headers = {"Host": "127.0.0.1:8778", "X-Sdk-Date": "20260131T235959Z", **headers}
    request = SdkRequest(method=method, schema="http", host="127.0.0.1:8778", resource_path=path,
                         query_params=[tuple(q) for q in query], header_params=headers, body=body)
    print(Signer(Credentials).sign(request).header_params["Authorization"])
"""


def ours(method: str, path: str, query: list[tuple[str, str]], headers: dict[str, str]) -> str:
    return authorization(KEY, method, path, query, headers)


@pytest.mark.clients
@pytest.mark.parametrize("version", ["3.1.206", "3.1.219"])
def test_the_official_signer_signs_alike(version: str) -> None:
    done = subprocess.run(
        [str(sdk_python(version)), "-c", ORACLE, *KEY],
        input=json.dumps(REQUESTS),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    own = []
    for method, path, query, headers, body in REQUESTS:
        signed = {"Host": "127.0.0.1:8778", "X-Sdk-Date": "20260131T235959Z", **headers}
        if headers.get("Content-Type", "application/json") != "application/json":
            signed["X-Sdk-Content-Sha256"] = "UNSIGNED-PAYLOAD"
        own.append(authorization(KEY, method, path, query, signed, body.encode()))
    assert own == done.stdout.splitlines()


def test_a_known_signature() -> None:
    headers = {"host": "127.0.0.1:8778", "x-sdk-date": "20260131T235959Z"}
    assert ours("GET", "/danlu/v1/p/jobs", [], headers) == (
        "SDK-HMAC-SHA256 Access=AKEXAMPLE, SignedHeaders=host;x-sdk-date, Signature="
        "168003492f2b7c3aecc832828414eed0366b1dc1bbc8a13e888957ef0c560420"
    )


def test_quoting_keeps_unreserved_characters_only() -> None:
    assert quote("aZ09-._~") == "aZ09-._~"
    assert quote("a/b c+é") == "a%2Fb%20c%2B%C3%A9"


def test_a_stamp_is_utc() -> None:
    assert stamp(0) == "19700101T000000Z"
    assert stamp(1_769_903_999) == "20260131T235959Z"
