"""Who is asking: the forms of signature that OBS and S3 clients send, and their one answer.

Keys, users and workspaces are those of the API (`faces/http/gate.py`). S3 has no memory of
signatures: a signed URL is meant to be used again, and clients repeat what they have signed.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from danlu.faces.http.gate import Gate
from danlu.faces.http.headers import Headers
from danlu.faces.obs import sign_v2, sign_v4
from danlu.faces.obs.query import Query
from danlu.faces.obs.sign_v4 import ChunkSigner
from danlu.model.errors import Denied
from danlu.model.identity import AccessKey, Caller
from danlu.ports.world import Clock
from danlu.wire.obs import AMZ, OBS, Dialect, http_date

WINDOW_S = 900


@dataclass(frozen=True, slots=True)
class Payload:
    """How the body is covered by the signature.

    `digest` is the SHA-256 that it must have, empty where it was left out; `framed` says that it
    comes in aws-chunked, signed by `signer` where there is one, with a `trailer` or without.
    """

    digest: str = ""
    framed: bool = False
    signer: ChunkSigner | None = None
    trailer: bool = False


@dataclass(frozen=True, slots=True)
class Admitted:
    """A caller, and how the request was signed."""

    caller: Caller
    dialect: Dialect
    payload: Payload


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as it came over the wire. `resource` is its path behind the bucket's name."""

    method: str
    raw_path: bytes
    resource: str
    query: Query
    headers: Headers


class Admission:
    """Lets requests in or raises Denied saying which part was wrong."""

    def __init__(self, gate: Gate, clock: Clock) -> None:
        self._gate = gate
        self._clock = clock

    def admit(self, sent: Sent) -> Admitted:
        """The caller of a signed request or a signed URL."""
        header = sent.headers.get("authorization")
        query = sent.query
        if header is not None:
            kind, _, rest = header.strip().partition(" ")
            if kind == sign_v4.ALGORITHM:
                return self._by_v4_header(sent, rest)
            if kind in ("AWS", "OBS"):
                return self._by_v2_header(sent, AMZ if kind == "AWS" else OBS, rest)
            raise Denied("obs-algorithm", http=400, algorithm=kind[:40])
        if "X-Amz-Signature" in query or "X-Amz-Algorithm" in query:
            return self._by_v4_url(sent)
        if "Signature" in query:
            dialect = OBS if "AccessKeyId" in query else AMZ
            return self._by_v2_url(sent, dialect)
        raise Denied("obs-no-credentials", http=403)

    # ------------------------------------------------------------------ V2 and OBS

    def _by_v2_header(self, sent: Sent, dialect: Dialect, rest: str) -> Admitted:
        access_key, colon, signature = rest.strip().rpartition(":")
        if not colon or not access_key:
            detail = "it must be 'AWS KEY:SIGNATURE' or 'OBS KEY:SIGNATURE'"
            raise Denied("obs-authorization", http=400, detail=detail)
        own_date = sent.headers.get(f"{dialect.prefix}date")
        date = own_date if own_date is not None else sent.headers.get("date") or ""
        self._check_window(date, _http_date(date))
        self._check_dialect(sent.headers, dialect)
        return self._by_v2(sent, dialect, access_key, signature, "")

    def _by_v2_url(self, sent: Sent, dialect: Dialect) -> Admitted:
        expires = sent.query.get("Expires")
        access_key = sent.query.get("AccessKeyId" if dialect is OBS else "AWSAccessKeyId")
        if not (expires.isascii() and expires.isdigit() and len(expires) <= 12):
            raise Denied("obs-authorization", http=400, detail="Expires must be seconds since 1970")
        self._check_expiry(int(expires) * 1000)
        self._check_dialect(sent.headers, dialect)
        return self._by_v2(sent, dialect, access_key, sent.query.get("Signature"), expires)

    def _by_v2(
        self, sent: Sent, dialect: Dialect, access_key: str, signature: str, expires: str
    ) -> Admitted:
        key = self._key(access_key)
        signed = sign_v2.Sent(sent.method, sent.resource, sent.query, sent.headers)
        texts = sign_v2.strings_to_sign(signed, dialect, expires)
        pairs = ((text, sign_v2.signature(text, key.secret.reveal())) for text in texts)
        if _matching(pairs, signature) is None:
            usual = next(sign_v2.strings_to_sign(signed, dialect, expires))
            raise Denied(
                "obs-signature", http=403, access_key=access_key, string_to_sign=_shown(usual)
            )
        digest = ""
        declared = sent.headers.get(f"{dialect.prefix}content-sha256") or ""
        if len(declared) == 64:
            digest = declared.lower()
        return Admitted(self._gate.caller(key.user), dialect, Payload(digest))

    def _check_dialect(self, headers: Headers, dialect: Dialect) -> None:
        """Denied for a header of the other dialect that would change what is asked for: it is not
        signed.
        """
        other = OBS if dialect is AMZ else AMZ
        for name in headers.names():
            if name.startswith(other.prefix) and name != f"{other.prefix}date":
                raise Denied("obs-header-unsigned", http=403, header=name)

    # ------------------------------------------------------------------ V4

    def _by_v4_header(self, sent: Sent, rest: str) -> Admitted:
        authorization = sign_v4.of_header(rest)
        headers = sent.headers
        date = headers.get("x-amz-date")
        signed_at = sign_v4.instant(date) if date is not None else _http_date(headers.get("date"))
        self._check_window(date or headers.get("date") or "", signed_at)
        stamp = date if date is not None else _stamp(signed_at or 0)
        if stamp[:8] != authorization.day:
            detail = f"Credential is for the day {authorization.day[:12]}, the request of {stamp}"
            raise Denied("obs-authorization", http=400, detail=detail)
        payload = headers.get("x-amz-content-sha256")
        if payload is None:
            raise Denied("obs-header-unsigned", http=403, header="x-amz-content-sha256")
        return self._by_v4(sent, authorization, stamp, payload)

    def _by_v4_url(self, sent: Sent) -> Admitted:
        query = sent.query
        if query.get("X-Amz-Algorithm") != sign_v4.ALGORITHM:
            raise Denied("obs-algorithm", http=400, algorithm=query.get("X-Amz-Algorithm")[:40])
        authorization = sign_v4.of_query(query)
        date = query.get("X-Amz-Date")
        signed_at = sign_v4.instant(date)
        expires_s = query.number("X-Amz-Expires", 0, 0, sign_v4.MOST_EXPIRES_S)
        if signed_at is None or date[:8] != authorization.day or not expires_s:
            detail = (
                "X-Amz-Date must be a date like 20260131T235959Z, of the day in X-Amz-Credential,"
                " and X-Amz-Expires 1 to 604800"
            )
            raise Denied("obs-authorization", http=400, detail=detail)
        if signed_at - self._clock.now() > WINDOW_S * 1000:
            self._check_window(date, signed_at)
        self._check_expiry(signed_at + expires_s * 1000)
        payload = sent.headers.get("x-amz-content-sha256") or query.get("X-Amz-Content-Sha256")
        return self._by_v4(sent, authorization, date, payload or sign_v4.UNSIGNED)

    def _by_v4(
        self, sent: Sent, authorization: sign_v4.Authorization, date: str, payload: str
    ) -> Admitted:
        key = self._key(authorization.access_key)
        self._check_dialect(sent.headers, AMZ)
        for name in sent.headers.names():
            if name.startswith(AMZ.prefix) and name not in authorization.signed_headers:
                raise Denied("obs-header-unsigned", http=403, header=name)
        signing_key = sign_v4.signing_key(
            key.secret.reveal(), authorization.day, authorization.region, authorization.service
        )
        signed = sign_v4.Sent(sent.method, sent.raw_path, sent.query, sent.headers)
        candidates = list(sign_v4.canonical_requests(signed, authorization.signed_headers, payload))
        texts = [sign_v4.string_to_sign(text, date, authorization.scope) for text in candidates]
        pairs = ((text, sign_v4.sign(signing_key, text)) for text in texts)
        if _matching(pairs, authorization.signature) is None:
            raise Denied(
                "obs-signature",
                http=403,
                access_key=authorization.access_key,
                string_to_sign=_shown(texts[0]),
                canonical_request=_shown(candidates[0]),
            )
        signer = ChunkSigner(signing_key, date, authorization.scope, authorization.signature)
        return Admitted(self._gate.caller(key.user), AMZ, _payload(payload, signer))

    # ------------------------------------------------------------------ what both need

    def _key(self, access_key: str) -> AccessKey:
        key = self._gate.key(access_key) if 0 < len(access_key) <= 128 else None
        if key is None:
            raise Denied("signature-key", http=403, access_key=access_key)
        return key

    def _check_window(self, text: str, signed_at: int | None) -> None:
        if signed_at is None:
            raise Denied("obs-date", http=403, value=text)
        now = self._clock.now()
        off_s = abs(now - signed_at) // 1000
        if off_s > WINDOW_S:
            raise Denied(
                "obs-skewed",
                http=403,
                value=text,
                off_s=off_s,
                server_time=http_date(now),
                window_s=WINDOW_S,
            )

    def _check_expiry(self, ends_at: int) -> None:
        now = self._clock.now()
        if now > ends_at:
            raise Denied("obs-expired", http=403, ended=_date(ends_at), server_time=http_date(now))


def _payload(text: str, signer: ChunkSigner) -> Payload:
    if text == sign_v4.UNSIGNED:
        return Payload()
    if text == sign_v4.UNSIGNED_TRAILER:
        return Payload(framed=True, trailer=True)
    if text in (sign_v4.STREAMED, sign_v4.STREAMED_TRAILER):
        return Payload(framed=True, signer=signer, trailer=text == sign_v4.STREAMED_TRAILER)
    if len(text) == 64 and text.isascii() and text.isalnum():
        return Payload(text.lower())
    raise Denied("obs-algorithm", http=400, algorithm=text[:60])


def _matching(pairs: Iterable[tuple[str, str]], signature: str) -> str | None:
    """The text whose signature this is."""
    given = signature.encode("utf-8", "replace")
    for text, expected in pairs:
        if hmac.compare_digest(expected.encode(), given):
            return text
    return None


def _shown(text: str) -> str:
    return text if len(text) <= 4096 else f"{text[:4096]}…"


def _http_date(text: str | None) -> int | None:
    """UTC milliseconds of a date in a header, in either of the forms that clients send."""
    if not text or len(text) > 64:
        return None
    short = sign_v4.instant(text)
    if short is not None:
        return short
    try:
        found = parsedate_to_datetime(text)
        return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, TypeError, OverflowError):
        return None


def _stamp(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y%m%dT%H%M%SZ}"


def _date(at: int) -> str:
    try:
        return http_date(at)
    except (ValueError, OverflowError):
        return "?"
