"""AWS Signature Version 4, against the example in Amazon's documentation."""

from __future__ import annotations

from moxing.framework.file._signature import EMPTY_SHA256, Keys, signed


def test_the_documented_example() -> None:
    keys = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1")
    headers = {
        "host": "examplebucket.s3.amazonaws.com",
        "range": "bytes=0-9",
        "x-amz-content-sha256": EMPTY_SHA256,
    }

    sent = signed("GET", "/test.txt", (), headers, keys, "20130524T000000Z")

    assert sent["authorization"] == (
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,"
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )


def test_a_list_with_parameters() -> None:
    keys = Keys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "us-east-1")
    headers = {"host": "examplebucket.s3.amazonaws.com", "x-amz-content-sha256": EMPTY_SHA256}

    sent = signed(
        "GET", "/", (("prefix", "J"), ("max-keys", "2")), headers, keys, "20130524T000000Z"
    )

    assert sent["authorization"].endswith(
        "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
    )


def test_keys_are_not_shown() -> None:
    assert "secret" not in repr(Keys("AKID", "secret", "r"))
