"""SDK-HMAC-SHA256, the signature of Huawei Cloud's API gateway."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Iterable, Mapping

ALGORITHM = "SDK-HMAC-SHA256"
EMPTY = hashlib.sha256().hexdigest()
UNSIGNED = "UNSIGNED-PAYLOAD"

_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

Query = Iterable[tuple[str, str]]


def quote(text: str) -> str:
    """Percent-encode everything but RFC 3986's unreserved characters."""
    if text.isascii() and text.isalnum():
        return text
    return "".join(chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in text.encode())


def query_string(query: Query) -> str:
    """A query as it is signed, which is also how it is sent."""
    return "&".join(f"{quote(key)}={quote(value)}" for key, value in sorted(query))


def stamp(seconds: float | None = None) -> str:
    """X-Sdk-Date for an instant in seconds since 1970; None = now."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(seconds))


def authorization(
    key: tuple[str, str],
    method: str,
    path: str,
    query: Query,
    headers: Mapping[str, str],
    body: bytes = b"",
) -> str:
    """The Authorization header that signs a request.

    `key` is the access key and its secret; `path` is decoded, `headers` are all that is signed
    and hold host and x-sdk-date. An x-sdk-content-sha256 among them stands for the body's hash.
    """
    access_key, secret_key = key
    folded = {name.lower(): value.strip() for name, value in headers.items()}
    names = sorted(folded)
    where = "/".join(quote(part) for part in path.split("/"))
    canonical = "\n".join(
        [
            method.upper(),
            where if where.endswith("/") else f"{where}/",
            query_string(query),
            *(f"{name}:{folded[name]}" for name in names),
            "",
            ";".join(names),
            folded.get("x-sdk-content-sha256") or _hash(body),
        ]
    )
    to_sign = f"{ALGORITHM}\n{folded['x-sdk-date']}\n{_hash(canonical.encode())}"
    signature = hmac.digest(secret_key.encode(), to_sign.encode(), "sha256").hex()
    return (
        f"{ALGORITHM} Access={access_key}, SignedHeaders={';'.join(names)}, Signature={signature}"
    )


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest() if data else EMPTY
