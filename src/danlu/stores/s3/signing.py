"""AWS Signature Version 4 for requests whose body is known."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from danlu.model.sign_v4 import (
    ALGORITHM,
    quote,
    quote_path,
    scope_of,
    sign,
    signing_key,
    string_to_sign,
)


@dataclass(frozen=True, slots=True)
class Keys:
    """Who asks, and in which region. Without an access key nothing is signed."""

    access: str
    secret: str = field(repr=False)
    region: str = "us-east-1"
    token: str = field(default="", repr=False)


def path_of(bucket: str = "", key: str = "") -> str:
    """The path of a bucket or an object, in the one spelling that is also signed."""
    return f"/{bucket}" + (f"/{quote_path(key)}" if key else "") if bucket else "/"


def query_of(query: Mapping[str, str]) -> str:
    """A query string in the order in which it is signed."""
    return "&".join(f"{quote(name)}={quote(value)}" for name, value in sorted(query.items()))


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
    scope = scope_of(stamp[:8], keys.region)
    key = signing_key(keys.secret, stamp[:8], keys.region)
    signature = sign(key, string_to_sign(canonical, stamp, scope))
    sent["authorization"] = (
        f"{ALGORITHM} Credential={keys.access}/{scope},"
        f" SignedHeaders={';'.join(names)}, Signature={signature}"
    )
    return sent
