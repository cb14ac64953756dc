"""AWS Signature Version 4 for S3, as its documentation describes it. Pure: no I/O, no clock.

Source: Amazon S3 API reference, "Authenticating Requests (AWS Signature Version 4)".
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


class Keys(NamedTuple):
    """Who signs, and for which region."""

    access_key: str
    secret_key: str
    region: str

    def __repr__(self) -> str:
        return f"Keys({self.access_key}, …)"


def escaped(text: str, safe: str = "") -> str:
    """Percent-encoded, all but letters, digits and `-._~`."""
    return quote(text, safe=f"~{safe}")


def canonical_query(query: Sequence[tuple[str, str]]) -> str:
    """The parameters as they are signed, and as they are sent."""
    return "&".join(f"{name}={value}" for name, value in sorted(
        (escaped(name), escaped(value)) for name, value in query
    ))  # fmt: skip


def signed(
    method: str,
    path: str,
    query: Sequence[tuple[str, str]],
    headers: Mapping[str, str],
    keys: Keys,
    date: str,
) -> dict[str, str]:
    """`headers` (lower case; `host` and `x-amz-content-sha256` among them) with the signature.

    `path` is percent-encoded; `date` is UTC as `20260131T235959Z`.
    """
    sent = {**headers, "x-amz-date": date}
    names = ";".join(sorted(sent))
    lines = [method, path, canonical_query(query)]
    lines += [f"{name}:{' '.join(sent[name].split())}" for name in sorted(sent)]
    lines += ["", names, sent["x-amz-content-sha256"]]
    scope = f"{date[:8]}/{keys.region}/s3/aws4_request"
    hashed = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashed}"
    key = f"AWS4{keys.secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    sent["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={keys.access_key}/{scope},"
        f"SignedHeaders={names},Signature={signature}"
    )
    return sent
