"""What the way to notebooks works on: their origins, and who has been let in to which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from danlu.faces.http.gate import host_name
from danlu.faces.lab.instance import Instance, Instances, Phase
from danlu.faces.lab.lease import Leases
from danlu.faces.lab.origin import Origins
from danlu.faces.lab.session import Cookies, Session, Tickets
from danlu.model.errors import Denied, Missing
from danlu.model.identity import User
from danlu.ports.world import Clock

ENTER = "/.danlu/enter"
"""Where a ticket becomes a cookie. Lab has nothing of this name."""


@dataclass(slots=True)
class Labs:
    """What the proxy works on."""

    origins: Origins
    instances: Instances
    tickets: Tickets
    cookies: Cookies
    used: Callable[[str], None]
    """Is told of each notebook to which somebody writes: that it shows itself is no use of it."""
    leases: Leases

    @classmethod
    def opened(
        cls,
        origins: Origins,
        instances: Instances,
        key: bytes,
        clock: Clock,
        used: Callable[[str], None],
        leases: Leases,
    ) -> Labs:
        """The proxy of one server; `key` signs its cookies."""
        cookies = Cookies(key, clock, secure=origins.secure)
        return cls(origins, instances, Tickets(clock), cookies, used, leases)

    def url(self, user: User, one: Instance, host: str) -> str:
        """An address that lets a browser in once; Refused where notebooks have no domain that
        would lead there. `host` is the Host header of whoever asks.
        """
        origin = self.origins.url(one.notebook, host)
        ticket = self.tickets.issue(Session(user.name, user.workspace, one.notebook, one.start))
        return f"{origin}{ENTER}?ticket={ticket}"

    def notebook(self, host: str) -> str | None:
        """The id of the notebook that a Host header means; None for every other host."""
        return self.origins.notebook(host_name(host))

    def admit(self, notebook: str, cookie: str) -> Instance:
        """The running notebook that a request may reach, or the error that says why it may not."""
        session = self.cookies.session(cookie, notebook)
        if session is None:
            raise Denied("lab-no-session", notebook=notebook)
        one = self.instances.find(session.workspace, notebook)
        if one is None:
            raise Missing("notebook-missing", notebook=notebook)
        if one.phase is not Phase.RUNNING:
            raise Away(one)
        if session.start != one.start:
            raise Denied("lab-other-start", name=one.name, notebook=notebook)
        return one


class Away(Exception):
    """The notebook is there, but its Lab cannot be seen."""

    def __init__(self, one: Instance) -> None:
        super().__init__(one.notebook)
        self.one = one
