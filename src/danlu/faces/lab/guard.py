"""Which requests come from the notebook's own pages: Lab itself would not ask.

A request with Lab's token is taken by Lab from any origin, and the proxy adds the token; so what
keeps other sites out stands here.
"""

from __future__ import annotations

from collections.abc import Iterable

from danlu.model.errors import Denied

ORIGINS = ("http://", "https://")


def check(method: str, headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Denied (403) for a request that another origin's page has caused.

    Browsers name the origin of everything but a plain GET, and say of that how it came about:
    following a link here is fine, being embedded or read by another site is not. Programs that are
    no browser send neither; they cannot be tricked into sending somebody's cookie.
    """
    host = origin = site = mode = target = ""
    for name, value in headers:
        if name == b"host":
            host = value.decode("latin-1").lower()
        elif name == b"origin":
            # One that is sent twice is no browser's: both have to be right.
            origin = f"{origin},{value.decode('latin-1')}" if origin else value.decode("latin-1")
        elif name == b"sec-fetch-site":
            site = value.decode("latin-1")
        elif name == b"sec-fetch-mode":
            mode = value.decode("latin-1")
        elif name == b"sec-fetch-dest":
            target = value.decode("latin-1")
    if origin and origin.lower() not in (f"{scheme}{host}" for scheme in ORIGINS):
        raise Denied("lab-origin", http=403, origin=origin)
    if site in ("cross-site", "same-site"):
        visit = method in ("GET", "HEAD") and mode == "navigate" and target == "document"
        if not visit:
            raise Denied("lab-origin", http=403, origin=site)
