"""The door: who is at it, by which key, and what goes through."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

import asyncssh

from danlu.faces.ssh import host_key
from danlu.faces.ssh.guest import Guest
from danlu.flow.ssh import Route
from danlu.flow.ssh_traffic import Traffic, Traffics
from danlu.model.identity import User
from danlu.ports.records import Records

MOST_STRANGERS = 200
"""How many connections may be open at a time of people who have not shown a key yet."""

LOGIN_S = 20
LOOK_S = 5.0
"""How often whoever is in is looked at again, beside whenever a key is removed."""

KEEPALIVE_S = 30
KEEPALIVES = 4
GRACE_S = 2.0

CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes256-ctr", "aes128-ctr")
"""Those that a processor does itself."""


Find = Callable[[User, str], Route]
"""The instance that a user means by a name; PlatformError that says why there is none."""


class Door:
    """One server's. Lives on the event loop."""

    ciphers: tuple[str, ...] = CIPHERS

    def __init__(
        self,
        records: Records,
        find: Find,
        traffics: Traffics,
        now: Callable[[], int],
        key: asyncssh.SSHKey,
    ) -> None:
        self._records = records
        self.find = find
        self._now = now
        self._host_key = key
        self.own_key = asyncssh.generate_private_key(host_key.KIND)
        """With this key the door itself comes into instances, while this server lives."""
        self.public_key = host_key.public(self.own_key)
        self.host_key = host_key.public(key)
        """The public half of the key by which clients know the door."""
        self._strangers: set[Guest] = set()
        self._guests: set[Guest] = set()
        self._traffics = traffics
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._looking: asyncio.Task[None] | None = None

    async def open(self, opened: socket.socket) -> None:
        """Let people in who connect to `opened`."""
        logging.getLogger("asyncssh").setLevel("WARNING")
        self._acceptor = await asyncssh.listen(
            sock=opened,
            config=None,
            server_factory=lambda: Guest(self),
            server_host_keys=[self._host_key],
            server_version="Danlu",
            public_key_auth=True,
            password_auth=False,
            kbdint_auth=False,
            host_based_auth=False,
            gss_host=None,
            agent_forwarding=False,
            x11_forwarding=False,
            line_editor=False,
            allow_scp=False,
            encoding=None,
            compression_algs=None,
            encryption_algs=self.ciphers,
            login_timeout=LOGIN_S,
            keepalive_interval=KEEPALIVE_S,
            keepalive_count_max=KEEPALIVES,
        )
        self._looking = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        """Let nobody in any more, and everybody out."""
        if self._looking is not None:
            self._looking.cancel()
        if self._acceptor is not None:
            self._acceptor.close()
        for guest in (*self._strangers, *self._guests):
            guest.cut_off()
        ends = asyncio.get_running_loop().time() + GRACE_S
        while self._strangers or self._guests:
            if asyncio.get_running_loop().time() > ends:
                break
            await asyncio.sleep(0.01)

    def now(self) -> int:
        """UTC milliseconds."""
        return self._now()

    def arrived(self, guest: Guest) -> bool:
        """Somebody has connected; False if there are too many who have not said who they are."""
        if len(self._strangers) >= MOST_STRANGERS:
            return False
        self._strangers.add(guest)
        return True

    def let_in(self, guest: Guest) -> None:
        """Somebody has proved a key."""
        self._strangers.discard(guest)
        self._guests.add(guest)

    def gone(self, guest: Guest) -> None:
        """Somebody's connection has ended."""
        self._strangers.discard(guest)
        self._guests.discard(guest)

    def user(self, fingerprint: str) -> User | None:
        """Whose key it is, at this moment."""
        return self._records.ssh_user(fingerprint)

    def look_again(self) -> None:
        """Cut off whoever may not be in any more."""
        for guest in tuple(self._guests):
            if not guest.may_stay():
                guest.cut_off()

    def traffic(self, route: Route) -> Traffic:
        """What goes to an instance and comes from it."""
        return self._traffics.of(route.key)

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            self.look_again()
