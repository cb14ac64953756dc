"""Signs requests, written from the SDK's own signer and not from ours."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote, unquote


def now(offset_s: float = 0) -> str:
    """X-Sdk-Date, `offset_s` from now."""
    moment = datetime.now(UTC).timestamp() + offset_s
    return datetime.fromtimestamp(moment, UTC).strftime("%Y%m%dT%H%M%SZ")


def signed(
    key: tuple[str, str],
    method: str,
    target: str,
    headers: Mapping[str, str],
    body: bytes = b"",
) -> dict[str, str]:
    """`headers` (with Host and X-Sdk-Date) and the Authorization that signs all of them."""
    path, _, query = target.partition("?")
    parts = "/".join(quote(part, safe="~") for part in unquote(path).split("/"))
    pairs = sorted(parse_qsl(query, keep_blank_values=True))
    folded = {name.lower(): value.strip() for name, value in headers.items() if "_" not in name}
    names = sorted(folded)
    content = folded.get("x-sdk-content-sha256") if body else None
    canonical = "\n".join(
        [
            method,
            parts if parts.endswith("/") else f"{parts}/",
            "&".join(f"{quote(k, safe='~')}={quote(v, safe='~')}" for k, v in pairs),
            *(f"{name}:{folded[name]}" for name in names),
            "",
            ";".join(names),
            content or hashlib.sha256(body).hexdigest(),
        ]
    )
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    text = f"SDK-HMAC-SHA256\n{folded['x-sdk-date']}\n{digest}"
    signature = hmac.new(key[1].encode(), text.encode(), hashlib.sha256).hexdigest()
    credential = f"Access={key[0]}, SignedHeaders={';'.join(names)}, Signature={signature}"
    return {**headers, "Authorization": f"SDK-HMAC-SHA256 {credential}"}
