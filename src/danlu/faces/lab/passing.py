"""What of a request reaches Lab, and what of its answer reaches the browser."""

from __future__ import annotations

from collections.abc import Iterable

from danlu.faces.lab.session import pairs

Raw = list[tuple[bytes, bytes]]

HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"te", b"trailer"}
    | {b"transfer-encoding", b"upgrade", b"proxy-authorization"}
)
"""They are about one connection, and a proxy has two."""

OURS = frozenset({b"authorization", b"x-auth-token", b"x-sdk-date", b"x-sdk-content-sha256"})
"""Credentials for the platform: whatever sends them here, nothing in Lab sees them."""
OUR_COOKIES = ("danlu", "__host-danlu", "__secure-danlu")

ANSWERED_HERE = frozenset({b"expect", b"content-length"})
"""Our listener has said "continue" already, and who sends on says how long the body is."""

NOT_BACK = frozenset({b"date", b"alt-svc", b"x-accel-redirect", b"x-sendfile"})
"""Our listener dates its answers; the others would have the browser, or a proxy in front of us,
get something from elsewhere.
"""


def request(headers: Iterable[tuple[bytes, bytes]], token: str) -> Raw:
    """The headers of a request as Lab gets them: with its token, without our credentials."""
    raw = list(headers)
    named = _named(raw)
    kept: Raw = []
    for name, value in raw:
        if name in HOP or name in OURS or name in ANSWERED_HERE or name in named:
            continue
        if name == b"cookie":
            others = _others(value)
            if others:
                kept.append((name, others))
        else:
            kept.append((name, value))
    kept.append((b"authorization", b"token " + token.encode()))
    return kept


def answer(headers: Iterable[tuple[bytes, bytes]]) -> Raw:
    """The headers of Lab's answer as the browser gets them."""
    raw = [(name.lower(), value) for name, value in headers]
    named = _named(raw)
    kept: Raw = []
    for name, value in raw:
        if name in HOP or name in NOT_BACK or name in named:
            continue
        if name == b"set-cookie":
            own = _of_this_host(value)
            if own:
                kept.append((name, own))
        else:
            kept.append((name, value))
    return kept


def _named(headers: Raw) -> frozenset[bytes]:
    """The headers that Connection declares to be of one connection only."""
    return frozenset(
        part.strip().lower()
        for name, value in headers
        if name == b"connection"
        for part in value.split(b",")
    )


def _others(cookie: bytes) -> bytes:
    """A Cookie header without the cookies that are ours."""
    known = pairs(cookie.decode("latin-1"))
    kept = [f"{name}={value}" for name, value in known if not _is_ours(name)]
    return "; ".join(kept).encode("latin-1")


def _of_this_host(cookie: bytes) -> bytes:
    """A Set-Cookie header without its Domain: another host of the domain (a console, another
    notebook) would get the cookie otherwise. Empty where it would replace one of ours.
    """
    first, *attributes = cookie.decode("latin-1").split(";")
    if _is_ours(first.partition("=")[0].strip()):
        return b""
    kept = [one for one in attributes if one.partition("=")[0].strip().lower() != "domain"]
    return ";".join([first, *kept]).encode("latin-1")


def _is_ours(name: str) -> bool:
    return name.lower().startswith(OUR_COOKIES)
