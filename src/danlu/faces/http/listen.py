"""Where the server listens: which addresses it may take, and the socket itself."""

from __future__ import annotations

import contextlib
import ipaddress
import socket

from danlu.model.errors import Invalid, Refused
from danlu.settings import Settings

BACKLOG = 2048
KEEPALIVE = (
    ("TCP_KEEPIDLE", 30),
    ("TCP_KEEPINTVL", 10),
    ("TCP_KEEPCNT", 3),
    ("TCP_USER_TIMEOUT", 120_000),
)
"""A client whose machine is gone is noticed within a minute, one that takes nothing of what it
asked for in two (milliseconds).
"""


def check(settings: Settings) -> None:
    """Refused where `settings` would open the server to a network without TLS."""
    if bool(settings.tls_cert) != bool(settings.tls_key):
        missing = "tls_key" if settings.tls_cert else "tls_cert"
        raise Invalid("field-missing", field=missing, remedy="TLS needs certificate and key")
    if not settings.tls_cert and not settings.insecure_bind and not is_loopback(settings.host):
        raise Refused("bind-open", host=settings.host)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(settings: Settings) -> socket.socket:
    """A listening socket for the API; Refused where the address cannot be taken."""
    return _listen(settings, settings.port)


def listen_obs(settings: Settings, api: socket.socket) -> socket.socket:
    """A listening socket for the OBS gateway, beside that of the API."""
    if settings.obs_port >= 0:
        return _listen(settings, settings.obs_port)
    following = api.getsockname()[1] + 1
    if settings.port and following < 65_536:
        with contextlib.suppress(Refused):
            return _listen(settings, following)
    return _listen(settings, 0)


def listen_ssh(settings: Settings, gateway: socket.socket) -> socket.socket:
    """A listening socket for SSH, beside that of the OBS gateway."""
    if settings.ssh_port >= 0:
        return _listen(settings, settings.ssh_port)
    following = gateway.getsockname()[1] + 1
    if settings.port and following < 65_536:
        with contextlib.suppress(Refused):
            return _listen(settings, following)
    return _listen(settings, 0)


def _listen(settings: Settings, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(
            settings.host or None,
            port,
            type=socket.SOCK_STREAM,
            flags=socket.AI_PASSIVE,
        )
        family, _, _, _, address = found[0]
        opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise _failed(settings, port, error) from error
    try:
        # A port that a server has just left is free; one that a server has is not.
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # What follows is inherited by every connection. Head and body are two writes: with Nagle's
        # algorithm the second would wait 40 ms for the client's acknowledgement of the first.
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEPALIVE:
            if hasattr(socket, name):
                opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        opened.bind(address)
        opened.listen(BACKLOG)
    except OSError as error:
        opened.close()
        raise _failed(settings, port, error) from error
    return opened


def _failed(settings: Settings, port: int, error: OSError) -> Refused:
    detail = error.strerror or str(error)
    return Refused("bind-failed", host=settings.host, port=port, detail=detail)


def url(settings: Settings, opened: socket.socket) -> str:
    """The address under which clients reach the socket."""
    host, port = opened.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 -- compared with, not listened on
        # Clients cannot call a wildcard; the first configured name, or this machine itself.
        host = next(iter(settings.host_names), "127.0.0.1")
    elif settings.host == "localhost":
        host = "localhost"
    scheme = "https" if settings.tls_cert else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
