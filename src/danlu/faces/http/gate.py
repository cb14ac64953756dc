"""Who may come in: Host, credentials, replays, and the project in the path."""

from __future__ import annotations

import functools
import hashlib
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from danlu.faces.http import signature
from danlu.faces.http.call import Call, Scope
from danlu.faces.http.headers import Headers
from danlu.faces.http.signature import Sent
from danlu.model.errors import Denied
from danlu.model.identity import AccessKey, Caller, User, Workspace
from danlu.ports.records import Records
from danlu.ports.world import Clock

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
KNOWN_FOR_S = 5.0
KNOWN_MOST = 1000
TOKEN_CHARS = 512
SAME_SECOND_S = 1.5
"""A signature's date names a second: what a client signs twice within it is the same to the byte,
and may take half a second longer on its way.
"""


class Access(StrEnum):
    """What a route asks of its caller."""

    PUBLIC = "public"
    """Nothing."""
    LINK = "link"
    """A link that this server has made and that has not expired."""
    CALLER = "caller"
    """Credentials of any user."""
    PROJECT = "project"
    """Credentials of a user of the project in the path."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What a route declares: the action (as ModelArts' policies name it) and its conditions."""

    action: str
    access: Access
    writes: bool = False
    """Whether the same signed request may be taken only once."""
    unsigned_body: bool = False
    """Whether the body may be left out of the signature (over TLS or loopback)."""


class Gate:
    """Lets requests in or raises Denied saying which part was wrong."""

    def __init__(self, records: Records, clock: Clock, host_names: Iterable[str]) -> None:
        self._records = records
        self._clock = clock
        self._names = frozenset(name.lower() for name in (*LOOPBACK_NAMES, *host_names))
        self._keys: dict[str, tuple[float, AccessKey]] = {}
        self._workspaces: dict[str, Workspace] = {}
        self._fresh = Fresh()

    def check_host(self, headers: Headers, scope: Scope) -> None:
        """Refuse names that are not ours: a page of someone else's name that points here could
        otherwise talk to this server (DNS rebinding).
        """
        host = headers.single("host")
        self.check_name(host_name(host), scope, host)

    def check_name(self, name: str, scope: Scope, host: str = "") -> None:
        """The same for a name that was read from `host` already."""
        if name in self._names or _is_own_address(name, scope):
            return
        names = ", ".join(sorted(self._names))
        raise Denied("host-refused", http=403, host=host or name, names=names)

    def admit(self, call: Call, rule: Rule, body_hash: str | None) -> None:
        """Set the caller, or raise Denied. `body_hash` as in `signature.Sent`."""
        if rule.access in (Access.PUBLIC, Access.LINK):
            return
        authorization = call.headers.get("authorization")
        if authorization is not None:
            caller = self._signed(call, rule, authorization, body_hash)
        else:
            token = call.headers.get("x-auth-token")
            if token is None:
                raise Denied("no-credentials")
            caller = self._by_token(token)
        call.caller = caller
        if rule.access is Access.PROJECT:
            project = call.params.get("project_id", "")
            if project != caller.workspace.id:
                raise Denied("project-denied", http=403, project=project, own=caller.workspace.id)

    def _signed(self, call: Call, rule: Rule, header: str, body_hash: str | None) -> Caller:
        scope = call.scope
        authorization = signature.read_authorization(header)
        sent = Sent(
            scope["method"],
            scope["raw_path"],
            scope["query_string"],
            call.headers,
            body_hash,
        )
        now = self._clock.now()
        signed_at = signature.check_date(call.headers.get("x-sdk-date") or "", now)
        key = self.key(authorization.access_key)
        if key is None:
            raise Denied("signature-key", access_key=authorization.access_key)
        if key.job:
            raise Denied("key-for-storage", http=403, access_key=authorization.access_key)
        signature.verify(
            sent,
            authorization,
            key.secret.reveal(),
            unsigned_allowed=rule.unsigned_body and _private(scope),
        )
        call.signed = frozenset(authorization.signed_headers)
        if rule.writes:
            expires_at = signed_at + (signature.WINDOW_S + 1) * 1000
            self._once(authorization.signature, now, expires_at)
        return self.caller(key.user)

    def _once(self, signed: str, now: int, expires_at: int) -> None:
        """Refuse a write that was received before, unless its client can have signed it anew."""
        monotonic = self._clock.monotonic()
        if self._records.first_use(signed, now, expires_at):
            self._fresh.add(signed, monotonic)
        elif not self._fresh.holds(signed, monotonic):
            raise Denied("signature-replayed")

    def _by_token(self, token: str) -> Caller:
        user = None
        if len(token) <= TOKEN_CHARS:
            digest = hashlib.sha256(token.encode("latin-1")).hexdigest()
            user = self._records.token_user(digest, self._clock.now())
        if user is None:
            raise Denied("token-unknown")
        return self.caller(user)

    def caller(self, user: User) -> Caller:
        """A user and their workspace."""
        workspace = self._workspaces.get(user.workspace)
        if workspace is None:
            workspace = self._records.workspace(user.workspace)
            if workspace is None:
                raise Denied("project-denied", http=403, project=user.workspace, own="none")
            self._workspaces[workspace.id] = workspace
        return Caller(user, workspace)

    def key(self, access_key: str) -> AccessKey | None:
        """The key pair; a known one is looked up and decrypted once in some seconds."""
        now = self._clock.monotonic()
        known = self._keys.get(access_key)
        if known is not None and now - known[0] < KNOWN_FOR_S:
            return known[1]
        found = self._records.access_key(access_key)
        if found is None:
            self._keys.pop(access_key, None)
            return None
        if len(self._keys) >= KNOWN_MOST:
            self._keys.clear()
        self._keys[access_key] = (now, found)
        return found


class Fresh:
    """The signatures that were first seen within the last `SAME_SECOND_S`."""

    def __init__(self) -> None:
        self._seen: dict[str, float] = {}  # the oldest first

    def add(self, signed: str, now: float) -> None:
        """Remember one, first seen at `now`; forget those whose time is over."""
        self._forget(now)
        self._seen[signed] = now

    def holds(self, signed: str, now: float) -> bool:
        """Whether it is one of them."""
        self._forget(now)
        return signed in self._seen

    def _forget(self, now: float) -> None:
        while self._seen:
            oldest = next(iter(self._seen))
            if now - self._seen[oldest] <= SAME_SECOND_S:
                return
            del self._seen[oldest]


@functools.lru_cache(maxsize=256)
def host_name(host: str) -> str:
    """The name in a Host header, without its port; empty where it cannot be read."""
    if host.startswith("["):
        name, bracket, rest = host[1:].partition("]")
        return name.lower() if bracket and (not rest or _is_port(rest)) else ""
    name, colon, port = host.partition(":")
    return name.lower().removesuffix(".") if not colon or _is_port(f":{port}") else ""


def _is_port(text: str) -> bool:
    return text.startswith(":") and text[1:].isascii() and text[1:].isdigit() and len(text) <= 6


def _is_own_address(name: str, scope: Scope) -> bool:
    """Whether `name` is the address that the connection came in on: no name, no rebinding."""
    server = scope.get("server") or ("",)
    try:
        return ipaddress.ip_address(name) == ipaddress.ip_address(server[0])
    except ValueError:
        return False


def _private(scope: Scope) -> bool:
    """Whether nobody between could have changed the body: TLS, or this machine itself."""
    if scope.get("scheme") == "https":
        return True
    client = scope.get("client") or ("",)
    try:
        return ipaddress.ip_address(client[0]).is_loopback
    except ValueError:
        return False
