"""Signs requests as clients do: written from the descriptions, not from the verifier."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import quote

from danlu.faces.obs.sign_v2 import SIGNED_PARAMETERS

Key = tuple[str, str]
Query = Mapping[str, str | None]


def path_of(bucket: str = "", key: str = "") -> str:
    """A path as clients write it."""
    return "/" + "/".join(quote(part, safe="/~") for part in (bucket, key) if part)


def target(path: str, query: Query) -> str:
    """A path with its query."""
    parts = [
        quote(name, safe="") + ("" if value is None else f"={quote(value, safe='')}")
        for name, value in query.items()
    ]
    return f"{path}?{'&'.join(parts)}" if parts else path


def v2(
    key: Key,
    method: str,
    path: str,
    query: Query,
    headers: Mapping[str, str],
    *,
    kind: str = "AWS",
    expires: str = "",
) -> str:
    """The signature in base64; `kind` is AWS or OBS."""
    prefix = "x-amz-" if kind == "AWS" else "x-obs-"
    lower = {name.lower(): value for name, value in headers.items()}
    date = "" if f"{prefix}date" in lower else lower.get("date", "")
    lines = [method, lower.get("content-md5", ""), lower.get("content-type", ""), expires or date]
    lines += [f"{name}:{lower[name]}" for name in sorted(lower) if name.startswith(prefix)]
    signed = [
        name if value is None else f"{name}={value}"
        for name, value in sorted(query.items())
        if name.lower() in SIGNED_PARAMETERS
    ]
    text = "\n".join([*lines, path + (f"?{'&'.join(signed)}" if signed else "")])
    return base64.b64encode(hmac.digest(key[1].encode(), text.encode(), hashlib.sha1)).decode()


def v2_signed(
    key: Key, method: str, path: str, query: Query, headers: Mapping[str, str], kind: str = "AWS"
) -> dict[str, str]:
    """Headers with an Authorization of V2 or of OBS."""
    sent = {"Date": format_datetime(datetime.now(UTC), usegmt=True), **headers}
    signature = v2(key, method, path, query, sent, kind=kind)
    return {**sent, "Authorization": f"{kind} {key[0]}:{signature}"}


class V4:
    """Signs one request; `chunk` and `trailer` go on from its signature."""

    def __init__(self, key: Key, *, region: str = "any-region", skew_s: float = 0) -> None:
        self.key = key
        now = datetime.now(UTC) + timedelta(seconds=skew_s)
        self.date = f"{now:%Y%m%dT%H%M%SZ}"
        self.scope = f"{self.date[:8]}/{region}/s3/aws4_request"
        signing = f"AWS4{key[1]}".encode()
        for part in self.scope.split("/"):
            signing = hmac.digest(signing, part.encode(), hashlib.sha256)
        self.signing = signing
        self.last = ""

    def headers(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], payload: str
    ) -> dict[str, str]:
        """Headers with an Authorization that signs all of them."""
        sent = {**headers, "x-amz-date": self.date, "x-amz-content-sha256": payload}
        names = sorted(name.lower() for name in sent)
        self._sign(method, path, query, sent, names, payload)
        listed = ";".join(names)
        value = (
            f"AWS4-HMAC-SHA256 Credential={self.key[0]}/{self.scope},"
            f"SignedHeaders={listed},Signature={self.last}"
        )
        return {**sent, "Authorization": value}

    def url(self, method: str, path: str, query: Query, host: str, expires_s: int = 60) -> str:
        """A signed URL's path and query."""
        full: dict[str, str | None] = {
            **query,
            "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
            "X-Amz-Credential": f"{self.key[0]}/{self.scope}",
            "X-Amz-Date": self.date,
            "X-Amz-Expires": str(expires_s),
            "X-Amz-SignedHeaders": "host",
        }
        self._sign(method, path, full, {"host": host}, ["host"], "UNSIGNED-PAYLOAD")
        return target(path, {**full, "X-Amz-Signature": self.last})

    def chunk(self, data: bytes) -> bytes:
        """The next signed chunk of a body."""
        empty = hashlib.sha256(b"").hexdigest()
        digest = hashlib.sha256(data).hexdigest()
        text = (
            f"AWS4-HMAC-SHA256-PAYLOAD\n{self.date}\n{self.scope}\n{self.last}\n{empty}\n{digest}"
        )
        self.last = hmac.digest(self.signing, text.encode(), hashlib.sha256).hex()
        end = b"\r\n" if data else b""
        return f"{len(data):x};chunk-signature={self.last}\r\n".encode() + data + end

    def trailer(self, name: str, value: str) -> bytes:
        """The signed trailer behind the last chunk."""
        digest = hashlib.sha256(f"{name}:{value}\n".encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256-TRAILER\n{self.date}\n{self.scope}\n{self.last}\n{digest}"
        self.last = hmac.digest(self.signing, text.encode(), hashlib.sha256).hex()
        return f"{name}:{value}\r\nx-amz-trailer-signature:{self.last}\r\n\r\n".encode()

    def _sign(
        self,
        method: str,
        path: str,
        query: Query,
        headers: Mapping[str, str],
        names: list[str],
        payload: str,
    ) -> None:
        lower = {name.lower(): value for name, value in headers.items()}
        pairs = sorted(
            (quote(n, safe="-_.~"), quote(v or "", safe="-_.~")) for n, v in query.items()
        )
        canonical = "\n".join(
            [
                method,
                path,
                "&".join(f"{name}={value}" for name, value in pairs),
                *(f"{name}:{lower[name]}" for name in names),
                "",
                ";".join(names),
                payload,
            ]
        )
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{self.date}\n{self.scope}\n{digest}"
        self.last = hmac.digest(self.signing, text.encode(), hashlib.sha256).hex()
