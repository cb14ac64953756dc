"""SDK-HMAC-SHA256, the way Huawei's SDKs sign requests. Pure: no I/O, no clock.

The canonical request is method, path, query, signed headers, their names, and the body's hash.
The path is decoded as a whole, split, and each part encoded again, with a slash at the end: an
escaped slash signs like a plain one, so routes are matched on what was sent and signatures
verified on what it means. The key is the secret itself; nothing binds a signature to a service
but the Host header, which therefore has to be signed.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, unquote, unquote_plus

from danlu.faces.http.headers import Headers
from danlu.model.errors import Denied

ALGORITHM = "SDK-HMAC-SHA256"
UNSIGNED = "UNSIGNED-PAYLOAD"
EMPTY_HASH = hashlib.sha256(b"").hexdigest()
WINDOW_S = 900
REQUIRED = ("host", "x-sdk-date")
CONTENT = "x-sdk-content-sha256"
MAX_AUTHORIZATION = 8192

_AUTHORIZATION = re.compile(
    r"Access=([^,\s]{1,128}),\s*SignedHeaders=([a-z0-9;._-]{1,4096}),\s*Signature=([0-9a-f]{64})"
)
_HASH = re.compile(r"[0-9a-f]{64}")
_DATE = re.compile(r"\d{8}T\d{6}Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Authorization:
    """What the Authorization header says."""

    access_key: str
    signed_headers: tuple[str, ...]
    signature: str


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it came over the wire, with its raw path and query.

    `body_hash` is the hexadecimal SHA-256 of the body: None = not read yet, empty = no body.
    """

    method: str
    raw_path: bytes
    query: bytes
    headers: Headers
    body_hash: str | None


def read_authorization(value: str) -> Authorization:
    """Take an Authorization header apart; Denied for another algorithm or a broken one."""
    algorithm, _, rest = value.strip().partition(" ")
    if algorithm != ALGORITHM:
        raise Denied("algorithm-unsupported", algorithm=algorithm[:40])
    match = _AUTHORIZATION.fullmatch(rest.strip()) if len(value) <= MAX_AUTHORIZATION else None
    if match is None:
        expected = f"{ALGORITHM} Access=…, SignedHeaders=…, Signature=… (64 hexadecimal digits)"
        raise Denied("signature-malformed", detail=f"it must be {expected}")
    return Authorization(match[1], _signed_headers(match[2]), match[3])


@functools.lru_cache(maxsize=256)
def _signed_headers(listed: str) -> tuple[str, ...]:
    """The names of signed headers; a client names the same ones in every request."""
    names = tuple(listed.split(";"))
    for header in REQUIRED:
        if header not in names:
            raise Denied("signature-header-missing", header=header)
    if len(set(names)) != len(names):
        raise Denied("signature-malformed", detail="SignedHeaders names one twice")
    return names


def check_date(value: str, now: int) -> int:
    """The instant (UTC ms) of X-Sdk-Date; Denied if it is not within the window around `now`."""
    signed_at = _instant(value)
    if signed_at is None:
        raise Denied("signature-malformed", detail="X-Sdk-Date must be written as 20260131T235959Z")
    off_s = abs(now - signed_at) // 1000
    if off_s > WINDOW_S:
        clock = datetime.fromtimestamp(now / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
        raise Denied("signature-date", value=value, off_s=off_s, now=clock, window_s=WINDOW_S)
    return signed_at


@functools.lru_cache(maxsize=256)
def _instant(value: str) -> int | None:
    """UTC milliseconds; None for what is no date. Many requests carry the same second."""
    if not _DATE.fullmatch(value):
        return None
    try:
        signed = datetime.strptime(value, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        return None
    return round(signed.timestamp() * 1000)


def payload_hash(sent: Sent, authorization: Authorization, *, unsigned_allowed: bool) -> str:
    """The body's hash as it has to stand in the canonical request; Denied if another was signed.

    The hash is always computed anew. A body that its signer left out of the signature is taken
    only where `unsigned_allowed`; one that is not read yet must come with its hash, against which
    the reader has to hold what it reads.
    """
    if sent.body_hash == "":
        return EMPTY_HASH
    signed = ""
    if CONTENT in authorization.signed_headers:
        signed = sent.headers.get(CONTENT) or ""
    if signed == UNSIGNED and unsigned_allowed:
        return UNSIGNED
    if sent.body_hash is None:
        if not _HASH.fullmatch(signed):
            raise Denied("signature-header-missing", header=CONTENT)
        return signed
    if signed and not hmac.compare_digest(signed.encode("latin-1"), sent.body_hash.encode()):
        raise Denied("signature-body")
    return sent.body_hash


def canonical_request(sent: Sent, signed_headers: Sequence[str], body_hash: str) -> bytes:
    """What the signature stands for; Denied if a header that was signed is not there."""
    lines = [sent.method.upper(), canonical_path(sent.raw_path), canonical_query(sent.query)]
    for name in signed_headers:
        value = sent.headers.get(name)
        if value is None:
            raise Denied("signature-header-missing", header=name)
        # The SDK signs the text and sends its UTF-8 bytes.
        lines.append(f"{name}:{value.strip()}")
    lines.extend(["", ";".join(signed_headers), body_hash])
    return "\n".join(lines).encode("latin-1", "replace")


@functools.lru_cache(maxsize=1024)
def canonical_path(raw_path: bytes) -> str:
    """The path decoded as a whole, each part encoded again, with a slash at the end."""
    decoded = unquote(raw_path.decode("ascii", "replace"))
    path = quote(decoded, safe="/~")
    return path if path.endswith("/") else f"{path}/"


def canonical_query(query: bytes) -> str:
    """The parameters sorted by name and value, encoded again; empty values are kept."""
    if not query:
        return ""
    pairs = []
    for part in query.decode("ascii", "replace").split("&"):
        if part:
            name, _, value = part.partition("=")
            pairs.append((unquote_plus(name), unquote_plus(value)))
    return "&".join(
        f"{quote(name, safe='~')}={quote(value, safe='~')}" for name, value in sorted(pairs)
    )


def sign(canonical: bytes, date: str, secret: str) -> str:
    """The signature of a canonical request."""
    text = f"{ALGORITHM}\n{date}\n{hashlib.sha256(canonical).hexdigest()}"
    # Not hmac.digest: it lets go of the interpreter, and waits for its turn again.
    keyed = _keyed(secret).copy()
    keyed.update(text.encode())
    return keyed.hexdigest()


@functools.lru_cache(maxsize=256)
def _keyed(secret: str) -> hmac.HMAC:
    """An HMAC that has taken in its key, which is half of its work."""
    return hmac.new(secret.encode(), digestmod="sha256")


def verify(
    sent: Sent, authorization: Authorization, secret: str, *, unsigned_allowed: bool
) -> None:
    """Denied unless `authorization` is the signature of `sent` under `secret`."""
    body_hash = payload_hash(sent, authorization, unsigned_allowed=unsigned_allowed)
    canonical = canonical_request(sent, authorization.signed_headers, body_hash)
    expected = sign(canonical, sent.headers.get("x-sdk-date") or "", secret)
    if not hmac.compare_digest(expected, authorization.signature):
        raise Denied("signature-mismatch", host=sent.headers.get("host") or "")
