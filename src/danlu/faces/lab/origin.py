"""The origin of a notebook: `nb-<id>.localhost` on a laptop, `nb-<id>.<domain>` elsewhere.

What a notebook shows is its user's program. On an origin of its own that program meets the
browser's wall between origins: it can neither read the console nor call the API with somebody's
cookies. The id is random and never used again, so no later notebook inherits what an earlier
one left in the browser (service workers, storage, caches).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from danlu.model.errors import Invalid, Refused

PREFIX = "nb-"
LAPTOP = "localhost"
"""Browsers send every name below it to this machine, without asking any name server."""
DEFAULT_PORTS = {"http": 80, "https": 443}
LOOPBACK = ("localhost", "127.0.0.1", "::1")

_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,58}[a-z0-9])?")
"""What fits into one label of a host name (63 characters) behind the prefix."""
_DOMAIN = re.compile(r"(?=.{1,190}\Z)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.(?!\Z)|\Z))+")


@dataclass(frozen=True, slots=True)
class Origins:
    """Where notebooks are. `scheme` and `port` are those that a browser sees."""

    domain: str
    scheme: str
    port: int

    @property
    def secure(self) -> bool:
        """Whether browsers come over TLS."""
        return self.scheme == "https"

    def notebook(self, name: str) -> str | None:
        """The id of the notebook that a host name (without its port) belongs to; None for any
        other host.
        """
        label, dot, domain = name.partition(".")
        if not dot or domain != self.domain or not label.startswith(PREFIX):
            return None
        found = label.removeprefix(PREFIX)
        return found if _ID.fullmatch(found) else None

    def url(self, notebook: str, host: str) -> str:
        """The address of a notebook's origin for whoever asks under the Host header `host`.

        Without a domain that is for browsers on this machine, or at the near end of a forwarded
        port, which they then name; Refused for all others.
        """
        port = self.port
        if self.domain == LAPTOP:
            asked = urlsplit(f"//{host}")
            if asked.hostname not in LOOPBACK:
                raise Refused("lab-no-origin", host=host)
            port = asked.port or DEFAULT_PORTS[self.scheme]
        shown = "" if port == DEFAULT_PORTS[self.scheme] else f":{port}"
        return f"{self.scheme}://{PREFIX}{notebook}.{self.domain}{shown}"


def origins(setting: str, api: str) -> Origins:
    """The origins that the setting `notebook_domain` means for the server at `api`; names below
    localhost where it is empty.

    Invalid for what is no domain. One without a scheme and a port has the server's.
    """
    own = urlsplit(api)
    scheme = "https" if own.scheme == "https" else "http"
    port = own.port or DEFAULT_PORTS[scheme]
    if not setting:
        return Origins(LAPTOP, scheme, port)
    explicit, separator, rest = setting.lower().rpartition("://")
    try:
        parts = urlsplit(f"//{rest}")
        named = parts.port
    except ValueError:
        parts, named = urlsplit(""), None
    domain = parts.hostname or ""
    whole = rest in (domain, f"{domain}:{named}")
    if not whole or not _DOMAIN.fullmatch(domain) or (separator and explicit not in DEFAULT_PORTS):
        raise Invalid(
            "setting-value",
            key="notebook_domain",
            source="the settings",
            value=setting,
            expected="a domain such as nb.example.com or https://nb.example.com:8443",
        )
    if separator:
        return Origins(domain, explicit, named or DEFAULT_PORTS[explicit])
    return Origins(domain, scheme, named or port)
