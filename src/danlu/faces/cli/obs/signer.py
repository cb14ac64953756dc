"""AWS Signature Version 4, as S3 and OBS take it: in headers, and in a URL."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from danlu.model.sign_v4 import (
    ALGORITHM,
    UNSIGNED,
    quote,
    scope_of,
    sign,
    signing_key,
    string_to_sign,
)


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
        scope = scope_of(stamp[:8], self._region)
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
        scope = scope_of(stamp[:8], self._region)
        key = signing_key(self._secret, stamp[:8], self._region)
        return scope, sign(key, string_to_sign(canonical, stamp, scope))
