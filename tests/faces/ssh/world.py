"""A door on loopback, instances behind it with real sshd, and OpenSSH's own clients before it."""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import json
import os
import shlex
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from danlu import runtime
from danlu.engines.memory import ManualClock
from danlu.faces.ssh import host_key
from danlu.faces.ssh.door import Door
from danlu.flow.ssh import ABOUT, Route
from danlu.flow.ssh_traffic import Traffics
from danlu.model import ssh_key
from danlu.model.errors import Missing
from danlu.model.identity import User
from danlu.ports.engine import SSH
from danlu.ports.records import Records
from tests import ssh_keys

HANG_S = 60.0
"""A bound that only a hang reaches."""

ALICE = User("u1", "alice", "ws", "d1")
BOB = User("u2", "bob", "ws", "d1")


class Profiles:
    """The part of the records that the door asks."""

    def __init__(self) -> None:
        self.keys: dict[str, User] = {}

    def ssh_user(self, fingerprint: str) -> User | None:
        return self.keys.get(fingerprint)


class OfDirectory:
    """The way to what answers in a directory."""

    def __init__(self, at: Path) -> None:
        self._at = at

    def connect(self) -> socket.socket:
        return reached(self._at)

    def said(self) -> dict[str, object] | None:
        try:
            return cast("dict[str, object]", json.loads((self._at / ABOUT).read_text("utf-8")))
        except FileNotFoundError:
            return None


def reached(at: Path) -> socket.socket:
    """A connection, as engines make it; the path may be longer than a socket's."""
    made = socket.socket(socket.AF_UNIX)
    held = os.open(at, os.O_PATH | os.O_DIRECTORY) if at.is_dir() else -1
    try:
        made.connect(f"/proc/self/fd/{held}/{SSH}")
        made.setblocking(False)
    except OSError as error:
        made.close()
        raise Missing("endpoint-missing", name=SSH) from error
    finally:
        if held >= 0:
            os.close(held)
    return made


def listening(at: Path) -> bool:
    with contextlib.suppress(Missing):
        reached(at).close()
        return True
    return False


class World:
    """Everything of one test. It is a `Routes`, too."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.profiles = Profiles()
        self.publics: dict[str, str] = {}
        self.instances: dict[str, tuple[User, Route]] = {}
        self.clock = ManualClock()
        self.traffics = Traffics(self.clock)
        self.known = root / "known_hosts"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.door = self.on_loop(self._made)
        self.port = self.on_loop(self._opened)
        (root / "ssh").mkdir()
        self.learn(f"[127.0.0.1]:{self.port}", self.door.host_key)

    async def _made(self) -> Door:
        return Door(
            cast("Records", self.profiles),
            self.find,
            self.traffics,
            self.clock.now,
            host_key.kept(self.root),
        )

    async def _opened(self) -> int:
        opened = socket.create_server(("127.0.0.1", 0))
        await self.door.open(opened)
        return int(opened.getsockname()[1])

    def on_loop(self, make: Callable[[], Any]) -> Any:
        """Run something where the door lives."""

        async def call() -> Any:
            made = make()
            return await made if asyncio.iscoroutine(made) else made

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result(HANG_S)

    def close(self) -> None:
        self.on_loop(self.door.close)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(HANG_S)
        self._loop.close()

    def find(self, user: User, name: str) -> Route:
        """As `danlu.flow.ssh.find`."""
        owner, route = self.instances.get(name, (None, None))
        if route is None or owner != user:
            raise Missing("ssh-host-missing", name=name)
        if route.keys:
            return route
        mine = [one for one in self.profiles.keys if self.profiles.keys[one] == user]
        return replace(route, keys={one: self.publics[one] for one in mine})

    def key(self, name: str, user: User | None = ALICE) -> Path:
        """A key pair, in the profile of `user`."""
        place = self.root / "ssh" / name
        public = ssh_keys.make(place)
        given = ssh_key.read(public)
        self.publics[given.fingerprint] = given.public
        if user is not None:
            self.profiles.keys[given.fingerprint] = user
        return place

    def add(self, name: str, at: Path, owner: User = ALICE, **changes: Any) -> None:
        """An instance that lies at a directory."""
        route = Route(name, name, OfDirectory(at), {})
        self.instances[name] = (owner, replace(route, **changes))

    def learn(self, host: str, public: str) -> None:
        """Pin a host key."""
        with self.known.open("a", encoding="utf-8") as stream:
            stream.write(f"{host} {public}\n")

    def config(self, key: Path, *names: str) -> Path:
        """A client's configuration: the door, and instances behind it."""
        text = [
            "Host *",
            f'  UserKnownHostsFile "{plain(self.known)}"',
            "  StrictHostKeyChecking yes",
            "  IdentitiesOnly yes",
            f'  IdentityFile "{plain(key)}"',
            "  BatchMode yes",
            "  LogLevel INFO",
            "Host door",
            "  HostName 127.0.0.1",
            f"  Port {self.port}",
            "  User danlu",
        ]
        for name in names:
            text += [f"Host {name}", "  ProxyJump door", f"  User {me()}"]
        # ProxyJump hands the path of -F to a shell as it is.
        path = self.root.parent / f"config-{key.name}"
        path.write_text("\n".join(text) + "\n", encoding="utf-8")
        return path

    def ssh(
        self, key: Path, *words: str, stdin: bytes = b"", program: str = "ssh"
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a stock client."""
        return subprocess.run(
            self.command(key, *words, program=program),
            input=stdin,
            capture_output=True,
            timeout=HANG_S,
            check=False,
        )

    def command(self, key: Path, *words: str, program: str = "ssh") -> list[str]:
        config = self.config(key, *self.instances)
        return [program, "-F", str(config), *words]


def plain(path: Path) -> str:
    """A path as ssh_config(5) takes it."""
    return str(path).replace("%", "%%")


def me() -> str:
    return getpass.getuser()


class Instance:
    """A directory in which sshd answers, and the process that has it answer."""

    def __init__(self, at: Path, env: dict[str, str], *, program: Sequence[str] = ()) -> None:
        self.at = at
        self.home = at.parent / f"{at.name} home"
        self.keys = at.parent / f"{at.name}-keys"
        at.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(exist_ok=True)
        script = Path(str(runtime.__path__[0])) / "danlu_sshd.py"
        words = [sys.executable, str(script), "--at", str(at), "--keys", str(self.keys)]
        words += ["--home", str(self.home), *(["--", *program] if program else [])]
        self.process = subprocess.Popen(words, env=env, start_new_session=True)
        until(lambda: listening(at) or self.process.poll() is not None)

    def host_key(self) -> str:
        return str(json.loads((self.at / ABOUT).read_text("utf-8"))["host_key"])

    def log(self) -> str:
        return (self.at / "ssh" / "log").read_text("utf-8")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(HANG_S)


@contextlib.contextmanager
def opened(root: Path) -> Iterator[World]:
    world = World(root)
    try:
        yield world
    finally:
        world.close()


def until(condition: Callable[[], object]) -> None:
    """Wait for something that has to come."""
    ends = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < ends, "it never came"
        time.sleep(0.02)


def quoted(*words: object) -> str:
    return " ".join(shlex.quote(str(word)) for word in words)
