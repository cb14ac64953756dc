"""AWS Signature Version 4, as S3 and OBS take it: in headers, and in a URL."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping, Sequence

ALGORITHM = "AWS4-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
MOST_EXPIRES_S = 7 * 24 * 3600
"""A signed URL is good for a week at most."""

_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_QUOTED = [chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in range(256)]
_IN_PATH = [*_QUOTED[: ord("/")], "/", *_QUOTED[ord("/") + 1 :]]


def quote(text: str) -> str:
    """Percent-encoded, all but RFC 3986's unreserved characters."""
    return "".join([_QUOTED[byte] for byte in text.encode()])


def quote_path(text: str) -> str:
    """The same, but for slashes."""
    return "".join([_IN_PATH[byte] for byte in text.encode()])


def query_string(query: Sequence[tuple[str, str]]) -> str:
    """A query as it is signed, which is also how it is sent."""
    return "&".join(sorted(f"{quote(name)}={quote(value)}" for name, value in query))


class Signer:
    """Signs for one key pair and region. Safe to use from several threads."""

    def __init__(self, access_key: str, secret_key: str, token: str = "", region: str = "") -> None:
        self._access_key = access_key
        self._secret = secret_key
        self._token = token
        self._region = region or "us-east-1"
        self._day = ("", b"")

    def headers(
        self,
        method: str,
        host: str,
        path: str,
        query: str,
        more: Mapping[str, str],
        at: float | None = None,
    ) -> list[tuple[str, str]]:
        """Every header that the request needs beside Host. `path` and `query` are encoded; the
        names in `more` are in lower case. The body itself is not signed: its digest is compared.
        """
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))
        signed = {"host": host, "x-amz-content-sha256": UNSIGNED, "x-amz-date": stamp}
        if self._token:
            signed["x-amz-security-token"] = self._token
        signed.update((name, value) for name, value in more.items() if name.startswith("x-amz-"))
        names = sorted(signed)
        lines = "".join([f"{name}:{signed[name]}\n" for name in names])
        listed = ";".join(names)
        canonical = f"{method}\n{path}\n{query}\n{lines}\n{listed}\n{UNSIGNED}"
        scope, signature = self._signature(stamp, canonical)
        del signed["host"]
        authorization = (
            f"{ALGORITHM} Credential={self._access_key}/{scope}, SignedHeaders={listed}, "
            f"Signature={signature}"
        )
        return [*{**more, **signed}.items(), ("Authorization", authorization)]

    def presigned(
        self, method: str, host: str, path: str, expires_s: int, at: float | None = None
    ) -> str:
        """The query that lets whoever has it send this request for so many seconds."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))
        scope = f"{stamp[:8]}/{self._region}/s3/aws4_request"
        query = [
            ("X-Amz-Algorithm", ALGORITHM),
            ("X-Amz-Credential", f"{self._access_key}/{scope}"),
            ("X-Amz-Date", stamp),
            ("X-Amz-Expires", str(expires_s)),
            ("X-Amz-SignedHeaders", "host"),
        ]
        if self._token:
            query.append(("X-Amz-Security-Token", self._token))
        text = query_string(query)
        canonical = f"{method}\n{path}\n{text}\nhost:{host}\n\nhost\n{UNSIGNED}"
        return f"{text}&X-Amz-Signature={self._signature(stamp, canonical)[1]}"

    def _signature(self, stamp: str, canonical: str) -> tuple[str, str]:
        date = stamp[:8]
        scope = f"{date}/{self._region}/s3/aws4_request"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"{ALGORITHM}\n{stamp}\n{scope}\n{digest}"
        return scope, hmac.digest(self._key(date), text.encode(), "sha256").hex()

    def _key(self, date: str) -> bytes:
        day, key = self._day
        if day != date:
            key = f"AWS4{self._secret}".encode()
            for part in (date, self._region, "s3", "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._day = (date, key)
        return key
