"""Who may see a notebook: a ticket, good once and for a minute, becomes a cookie of its origin.

The cookie says which user opened which start of which notebook, and is signed; nothing of it is
kept. It opens Lab for that start alone: when the notebook is stopped, every cookie for it is
worth no more than the page that says so.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections import OrderedDict
from dataclasses import dataclass

from danlu.ports.world import Clock

TICKET_S = 60.0
TICKETS = 10_000
COOKIE_S = 72 * 3600
"""The longest lease: no start that a cookie is for goes on for longer without being renewed."""
NAME = "danlu-notebook"
HOST_ONLY = "__Host-"
"""The browser takes a cookie of such a name from this very host alone, and only over TLS."""
VERSION = "1"


@dataclass(frozen=True, slots=True)
class Session:
    """What a ticket or a cookie stands for: `user` is a name, `start` one run of the notebook."""

    user: str
    workspace: str
    notebook: str
    start: str


class Tickets:
    """Tickets that nobody has used yet. A restart of the server makes them void."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: OrderedDict[bytes, tuple[float, Session]] = OrderedDict()

    def issue(self, session: Session) -> str:
        """A ticket for `session`."""
        ticket = secrets.token_urlsafe(32)
        while len(self._waiting) >= TICKETS:
            self._waiting.popitem(last=False)
        self._waiting[_digest(ticket)] = (self._clock.monotonic() + TICKET_S, session)
        return ticket

    def redeem(self, ticket: str, notebook: str) -> Session | None:
        """What the ticket was issued for, once; None where it is used, too old or for another
        notebook.
        """
        ends, session = self._waiting.pop(_digest(ticket), (0.0, None))
        if session is None or self._clock.monotonic() > ends or session.notebook != notebook:
            return None
        return session


class Cookies:
    """Signs and reads the cookies of notebooks. `key` is this server's own, and the same after a
    restart: an open Lab goes on.
    """

    def __init__(self, key: bytes, clock: Clock, *, secure: bool) -> None:
        self._key = key
        self._clock = clock
        self._secure = secure
        self.name = f"{HOST_ONLY}{NAME}" if secure else NAME

    def header(self, session: Session) -> str:
        """The Set-Cookie header that opens `session`."""
        ends = self._clock.now() // 1000 + COOKIE_S
        who = f"{_packed(session.user)}.{_packed(session.workspace)}"
        said = f"{VERSION}.{ends}.{who}.{_packed(session.start)}"
        value = f"{said}.{self._mac(said, session.notebook)}"
        secure = "; Secure" if self._secure else ""
        # No Domain: the host that set it is the only one that gets it.
        return f"{self.name}={value}; Path=/; Max-Age={COOKIE_S}; HttpOnly; SameSite=Lax{secure}"

    def session(self, cookie: str, notebook: str) -> Session | None:
        """What the Cookie header of a request to `notebook` opens; None where it opens nothing.

        Another host of the domain can set a cookie of this name too, so all of them are tried.
        """
        for name, value in pairs(cookie):
            if name == self.name:
                found = self._read(value, notebook)
                if found is not None:
                    return found
        return None

    def _read(self, value: str, notebook: str) -> Session | None:
        said, _, mac = value.rpartition(".")
        if not hmac.compare_digest(self._mac(said, notebook).encode(), mac.encode()):
            return None
        _, ends, user, workspace, start = said.split(".")
        if int(ends) < self._clock.now() // 1000:
            return None
        return Session(_unpacked(user), _unpacked(workspace), notebook, _unpacked(start))

    def _mac(self, said: str, notebook: str) -> str:
        text = f"{said}\0{notebook}".encode()
        return _encoded(hmac.digest(self._key, text, "sha256"))


def pairs(cookie: str) -> list[tuple[str, str]]:
    """The names and values of a Cookie header."""
    found = []
    for part in cookie.split(";"):
        name, _, value = part.strip().partition("=")
        if name:
            found.append((name, value))
    return found


def _digest(ticket: str) -> bytes:
    """What is looked up: how long that takes says nothing about the tickets that there are."""
    return hashlib.sha256(ticket.encode("utf-8", "replace")).digest()


def _encoded(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _packed(text: str) -> str:
    return _encoded(text.encode())


def _unpacked(text: str) -> str:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
