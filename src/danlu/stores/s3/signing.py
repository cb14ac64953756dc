"""AWS Signature Version 4 for requests whose body is known."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Keys:
    """Who asks, and in which region. Without an access key nothing is signed."""

    access: str
    secret: str = field(repr=False)
    region: str = "us-east-1"
    token: str = field(default="", repr=False)


def path_of(bucket: str = "", key: str = "") -> str:
    """The path of a bucket or an object, in the one spelling that is also signed."""
    return f"/{bucket}" + (f"/{quote(key, safe='/-_.~')}" if key else "") if bucket else "/"


def query_of(query: Mapping[str, str]) -> str:
    """A query string in the order in which it is signed."""
    return "&".join(
        f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
        for name, value in sorted(query.items())
    )


def signed(
    keys: Keys,
    method: str,
    path: str,
    query: str,
    headers: Mapping[str, str],
    digest: str,
    at_s: float | None = None,
) -> dict[str, str]:
    """All headers of a request, with its signature. `digest` is the SHA-256 of the body."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at_s))
    sent = {**headers, "x-amz-date": stamp, "x-amz-content-sha256": digest}
    if not keys.access:
        return sent
    if keys.token:
        sent["x-amz-security-token"] = keys.token
    names = sorted(name for name in sent if name == "host" or name.startswith("x-amz-"))
    lines = "".join(f"{name}:{' '.join(sent[name].split())}\n" for name in names)
    canonical = "\n".join((method, path, query, lines, ";".join(names), digest))
    scope = f"{stamp[:8]}/{keys.region}/s3/aws4_request"
    whole = hashlib.sha256(canonical.encode()).hexdigest()
    key = f"AWS4{keys.secret}".encode()
    for part in (stamp[:8], keys.region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = f"{ALGORITHM}\n{stamp}\n{scope}\n{whole}"
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    sent["authorization"] = (
        f"{ALGORITHM} Credential={keys.access}/{scope},"
        f" SignedHeaders={';'.join(names)}, Signature={signature}"
    )
    return sent
