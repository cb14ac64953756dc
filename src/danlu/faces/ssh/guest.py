"""One connection to the door: let in by a key, and led to the instances that its user may reach.

There are two ways. `ssh -J DOOR INSTANCE` is led through to the instance's own sshd: the door sees
encrypted bytes only. `ssh INSTANCE@DOOR` ends at the door, which asks the instance's sshd for the
same. On the door itself there is nothing: no shell, no command, no file, no other host.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import asyncssh

from danlu.faces.ssh.relay import Channel, Led, Stream, UnixChannel
from danlu.faces.ssh.session import Outer
from danlu.flow import ssh
from danlu.flow.ssh import About, Route
from danlu.flow.ssh_traffic import Traffic
from danlu.model.errors import Denied, PlatformError, Unavailable
from danlu.model.identity import User

PORT = 22
LOGIN = "danlu"
"""The login of those who only pass through."""

INNER_S = 15.0


class Door(Protocol):
    """What a guest needs of the door."""

    own_key: asyncssh.SSHKey
    public_key: str
    ciphers: tuple[str, ...]

    @property
    def find(self) -> Callable[[User, str], Route]:
        """The instance that a user means by a name; PlatformError that says why there is none."""

    def now(self) -> int:
        """UTC milliseconds."""

    def arrived(self, guest: Guest) -> bool:
        """Somebody has connected; False if they may not stay."""

    def let_in(self, guest: Guest) -> None:
        """Somebody has proved a key."""

    def gone(self, guest: Guest) -> None:
        """Somebody's connection has ended."""

    def user(self, fingerprint: str) -> User | None:
        """Whose key it is, at this moment."""

    def traffic(self, route: Route) -> Traffic:
        """What goes to an instance and comes from it."""


class Inner:
    """The door's own connection to an instance's sshd, for one guest."""

    def __init__(
        self, route: Route, connection: asyncio.Task[asyncssh.SSHClientConnection]
    ) -> None:
        self.route = route
        self.connection = connection

    @property
    def over(self) -> bool:
        """Whether it has failed or ended."""
        made = self.connection
        return made.done() and (
            made.cancelled() or made.exception() is not None or made.result().is_closed()
        )

    def close(self) -> None:
        """Let go of it, now or as soon as it is there."""
        self.connection.cancel()
        self.connection.add_done_callback(_abort)


def _abort(made: asyncio.Task[asyncssh.SSHClientConnection]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().abort()


class Guest(asyncssh.SSHServer):
    """Somebody at the door."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._connection: asyncssh.SSHServerConnection | None = None
        self._login = ""
        self._address = ""
        self._user: User | None = None
        self._fingerprint = ""
        self._held: dict[Stream, Route] = {}
        """Ways through that are open, and where they lead."""
        self._inner: Inner | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Somebody has connected."""
        self._connection = conn
        peer = conn.get_extra_info("peername")
        self._address = str(peer[0]) if isinstance(peer, tuple) else ""
        if not self._door.arrived(self):
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """They are gone, and so is everything that was open for them."""
        del exc
        self._door.gone(self)
        for stream in tuple(self._held):
            stream.own.abort()
        if self._inner is not None:
            self._inner.close()
            self._door.traffic(self._inner.route).left()

    def begin_auth(self, username: str) -> bool:
        """Everybody has to show a key."""
        self._login = username
        return True

    def public_key_auth_supported(self) -> bool:
        """It is the only way."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Whether a key is in a profile. asyncssh asks right before it looks at the proof that the
        key is theirs, so whoever is let in has proved the key that was asked for last.
        """
        del username
        self._fingerprint = key.get_fingerprint()
        self._user = self._door.user(self._fingerprint)
        return self._user is not None

    def auth_completed(self) -> None:
        """They are in."""
        self._door.let_in(self)

    def may_stay(self) -> bool:
        """Whether the key is still this user's, and everything that is open still takes it."""
        user = self._door.user(self._fingerprint)
        if user is None or self._user is None or user.id != self._user.id:
            return False
        open_now = {route.name for route in self._held.values()}
        if self._inner is not None:
            open_now.add(self._inner.route.name)
        try:
            for name in open_now:
                self._find(name)
        except PlatformError:
            return False
        return True

    def cut_off(self) -> None:
        """End the connection at once, whatever is open."""
        if self._connection is not None:
            self._connection.abort()

    # ------------------------------------------------------------ ways on

    def session_requested(self) -> Any:
        """A session of the instance that the login names; the door has none."""
        return Outer(self._inside, self._count)

    def connection_requested(
        self, dest_host: str, dest_port: int, orig_host: str, orig_port: int
    ) -> Any:
        """A way on: into the instance that the login names, else to the one that the host names."""
        del orig_host, orig_port
        if self._by_login():
            return self._forwarded(dest_host, dest_port)
        return self._jump(dest_host, dest_port)

    def unix_connection_requested(self, dest_path: str) -> Any:
        """A unix socket in the instance that the login names; none of this machine's."""
        return self._forwarded_unix(dest_path) if self._by_login() else False

    def _by_login(self) -> bool:
        """Whether the login names an instance that this guest may reach."""
        try:
            self._find(self._login)
        except PlatformError:
            return False
        return True

    def _find(self, name: str) -> Route:
        """The way that this guest may take now; PlatformError that says why there is none."""
        if self._user is None:
            raise Denied("ssh-key-unknown")
        found = self._door.find(self._user, name)
        if self._fingerprint not in found.keys:
            raise Denied("ssh-key-not-here", http=403, name=name, fingerprint=self._fingerprint)
        if not ssh.from_within(self._address, found.allowed):
            raise Denied("ssh-address", http=403, name=name, address=self._address)
        return found

    async def _jump(self, host: str, port: int) -> Led:
        """ProxyJump's way: bytes to the instance's sshd and back."""
        try:
            if port != PORT:
                raise Denied("ssh-port", http=403, name=host, port=port)
            found = self._find(host)
            opened, _ = await self._reach(found)
        except PlatformError as problem:
            raise _refusal(problem) from problem
        traffic = self._door.traffic(found)

        def ended() -> None:
            self._held.pop(stream, None)
            traffic.left()

        def count(size: int) -> None:
            traffic.moved(size, self._door.now())

        stream = Stream(count, ended)
        traffic.came(self._door.now())
        self._held[stream] = found
        # What sshd says first waits until the guest's end is there.
        await asyncio.get_running_loop().create_unix_connection(lambda: stream, sock=opened)
        return Led(count, stream)

    async def _reach(self, found: Route) -> tuple[socket.socket, About]:
        """A connection to the instance's sshd, and what the instance says of itself. Unavailable
        where nobody answers.
        """

        def reach() -> tuple[socket.socket, About]:
            said = ssh.about(found)
            return ssh.connect(found), said

        return await asyncio.get_running_loop().run_in_executor(None, reach)

    async def _inside(self) -> asyncssh.SSHClientConnection:
        """The door's own connection into the instance that the login names: one for everything that
        this guest does there.
        """
        try:
            if self._login == LOGIN:
                raise Denied("ssh-no-shell", http=403)
            found = self._find(self._login)
            inner = self._inner
            if inner is None or inner.over:
                if inner is not None:
                    self._door.traffic(inner.route).left()
                self._door.traffic(found).came(self._door.now())
                entering = asyncio.create_task(self._enter(found))
                inner = self._inner = Inner(found, entering)
            # Others may wait for it, too.
            return await asyncio.shield(inner.connection)
        except PlatformError as problem:
            raise _refusal(problem) from problem
        except (asyncssh.Error, OSError, ValueError) as problem:
            broken = Unavailable("ssh-broken", name=self._login, detail=problem)
            raise _refusal(broken) from problem

    async def _enter(self, found: Route) -> asyncssh.SSHClientConnection:
        own = {self._door.own_key.get_fingerprint(): self._door.public_key}
        opened, about = await self._reach(replace(found, keys=own))
        try:
            known = asyncssh.import_public_key(about.host_key)
            return await asyncssh.connect(
                sock=opened,
                config=None,
                username=about.user,
                client_keys=[self._door.own_key],
                known_hosts=([known], [], []),
                agent_path=None,
                login_timeout=INNER_S,
                encryption_algs=self._door.ciphers,
            )
        except BaseException:
            opened.close()
            raise

    def _count(self, size: int) -> None:
        if self._inner is not None:
            self._door.traffic(self._inner.route).moved(size, self._door.now())

    async def _forwarded(self, host: str, port: int) -> Led:
        """`-L` and `-D`: on from within the instance."""
        other = Channel(self._count)
        await (await self._inside()).create_connection(lambda: other, host, port)
        return Led(self._count, other)

    async def _forwarded_unix(self, path: str) -> Led:
        """The same to a unix socket there."""
        other = UnixChannel(self._count)
        await (await self._inside()).create_unix_connection(lambda: other, path)
        return Led(self._count, other)


def _refusal(problem: PlatformError) -> asyncssh.ChannelOpenError:
    """What a client of SSH is told: its person reads it on the terminal."""
    return asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, problem.message())
