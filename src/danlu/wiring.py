"""The composition root: the one place that names concrete engines and stores."""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from danlu import registry
from danlu.flow.board import Board
from danlu.flow.catalog import Catalog, Environment
from danlu.flow.loop import Loop
from danlu.flow.platform import Limits, Platform
from danlu.model.errors import EngineError, Refused
from danlu.model.identity import AccessKey, Secret, User, Workspace
from danlu.model.job import EngineChoice
from danlu.ports.engine import Closes, Engine
from danlu.ports.records import Records
from danlu.settings import Settings

if TYPE_CHECKING:
    from danlu.node.gpu import Inventory
    from danlu.ports.objects import ObjectStore

ADMIN = "admin"
DATABASE = "danlu.sqlite"
KEY_FILE = "secret.key"
LOCK_FILE = "server.lock"
OBJECTS = "objects"
PASSWORD_FILE = "admin-password"  # noqa: S105 - the name of a file


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        """UTC, milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Seconds since some start; never goes back."""
        return time.monotonic()


class SystemDice:
    """The machine's randomness, fetched a page at a time: a submit needs two draws, and a system
    call beside a busy writer thread costs more than the rest of its checks.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._page = b""
        self._at = 0

    def token(self) -> str:
        """128 fresh random bits as 32 hexadecimal digits."""
        return self._draw().hex()

    def job_id(self) -> str:
        """A fresh UUID in its usual form."""
        return str(uuid.UUID(bytes=self._draw(), version=4))

    def _draw(self) -> bytes:
        with self._lock:
            if self._at >= len(self._page):
                self._page, self._at = os.urandom(4096), 0
            drawn = self._page[self._at : self._at + 16]
            self._at += 16
            return drawn


@dataclass(slots=True)
class Running:
    """An opened platform: what faces work on, until `close`."""

    settings: Settings
    platform: Platform
    board: Board
    loop: Loop
    admin: AccessKey
    workspace: Workspace
    started_at: int
    lock: DataLock

    def start(self) -> None:
        """Begin to carry jobs through their lives."""
        self.loop.start()

    def close(self) -> None:
        """Stop deciding and let go of everything. Tasks go on: the next server adopts them."""
        self.loop.close()
        engine = self.platform.engine
        if isinstance(engine, Closes):
            engine.close()
        self.platform.records.close()
        self.lock.release()


class DataLock:
    """One server a data directory: held as long as the process lives, whatever ends it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not self._taken():
            pid = os.pread(self._descriptor, 20, 0).decode("ascii", "replace").strip() or "?"
            os.close(self._descriptor)
            raise Refused("data-dir-in-use", path=path.parent, pid=pid)
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def _taken(self) -> bool:
        # Whoever asks whether a server lives (`danlu status`) holds the lock for a moment.
        for pause in (0.01, 0.03, 0.1, 0.3, 0.0):
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                time.sleep(pause)
            else:
                return True
        return False

    def release(self) -> None:
        """Let another server have the directory."""
        os.close(self._descriptor)


def open_platform(settings: Settings, api: str = "") -> Running:
    """Open the records, objects and engine of `settings` and join them. `api` is this server's own
    address, for jobs that want to call it.

    Raises Refused when another server has the data directory or its database is newer than this
    program. Nothing runs until `Running.start`.
    """
    from danlu.stores.folder import FolderStore
    from danlu.stores.sql import open_records

    data = settings.data
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = DataLock(data / LOCK_FILE)
    clock, dice = SystemClock(), SystemDice()
    records = open_records(settings.database or str(data / DATABASE), data / KEY_FILE, clock)
    limits = Limits(queued_jobs=settings.max_queued, local_paths=settings.allow_local_paths)
    objects = FolderStore(str(data / OBJECTS))
    objects.create_bucket(limits.bucket)
    workspace, admin = first_admin(records, settings)
    engine: Engine = registry.engine_builder(settings.engine)(settings, objects)
    catalog = Catalog(
        capacity=engine.capacity,
        environments=lambda: environments(settings),
        configured=settings.flavors,
        default=settings.default_flavor,
    )
    platform = Platform(records, objects, engine, catalog, clock, dice, limits, api)
    board = Board(records)
    return Running(
        settings, platform, board, Loop(platform, board, _end), admin, workspace, clock.now(), lock
    )


def _end() -> None:
    """End this server in good order; the next one starts from what is on disk."""
    signal.raise_signal(signal.SIGTERM)


def first_admin(records: Records, settings: Settings) -> tuple[Workspace, AccessKey]:
    """The workspace, user and key pair of this server, made at its first start."""
    name = records.setting("admin-access-key")
    if name:
        key = records.access_key(name)
        found = records.workspace(key.user.workspace) if key else None
        if key and found:
            return found, key
    workspace = Workspace(uuid.uuid4().hex, settings.region)
    password = secrets.token_urlsafe(18)
    user = User(uuid.uuid4().hex, ADMIN, workspace.id, uuid.uuid4().hex, hash_password(password))
    key = AccessKey(_access_key(), Secret(secrets.token_urlsafe(30)), user)
    path = settings.data / PASSWORD_FILE
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(password + "\n")
    records.add_workspace(workspace).result()
    records.add_user(user).result()
    records.add_access_key(key).result()
    records.set_setting("admin-access-key", key.access_key).result()
    return workspace, key


def _access_key() -> str:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    return "".join(secrets.choice(alphabet) for _ in range(20))


def hash_password(password: str) -> str:
    """argon2id with OWASP's parameters (19 MiB, two passes)."""
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1).hash(password)


def environments(settings: Settings) -> Sequence[Environment]:
    """Every environment in which jobs can run; the default one first."""
    found = [_environment("default", default_environment(settings))]
    root = settings.data / "environments"
    found.extend(
        _environment(path.name, path)
        for path in (sorted(root.iterdir()) if root.is_dir() else ())
        if path.name != "default" and (path / "bin" / "python").exists()
    )
    return found


def default_environment(settings: Settings) -> Path:
    """Where jobs run that name no environment."""
    if settings.default_environment:
        return Path(settings.default_environment)
    own = settings.data / "environments" / "default"
    return own if (own / "bin" / "python").exists() else Path(sys.prefix)


def gpu_inventory() -> Inventory:
    """The GPUs that tasks of this machine would get, or why there are none."""
    from danlu.node.gpu import probe

    return probe()


def environment_of(settings: Settings, choice: EngineChoice) -> Path:
    """The directory of the environment that a job chose; EngineError if it has gone."""
    name = choice.engine_id or choice.engine_name or "default"
    found = {item.id: Path(item.directory) for item in environments(settings)}
    directory = found.get(name, settings.data / "environments" / name)
    python = directory / "bin" / "python"
    if not python.exists():
        raise EngineError("environment-missing", path=directory, looked=python)
    return directory


def _environment(name: str, path: Path) -> Environment:
    """Read versions from the files that installers leave; nothing of the environment is run."""
    python = ""
    try:
        for line in (path / "pyvenv.cfg").read_text("utf-8", "replace").splitlines():
            key, _, value = line.partition("=")
            if key.strip() in ("version", "version_info"):
                python = value.strip()
    except OSError:
        pass
    packages = [item.name for item in path.glob("lib/python3*/site-packages/torch-*.dist-info")]
    torch = packages[0].removeprefix("torch-").removesuffix(".dist-info") if packages else ""
    return Environment(name, str(path), python, torch)


def process_engine(settings: Settings, objects: ObjectStore) -> Engine:  # noqa: ARG001 - agents open their own
    """Tasks as processes of this machine."""
    from danlu.engines.process import ProcessEngine

    return ProcessEngine(
        settings.data / "engine",
        lambda plan: environment_of(settings, plan.engine),
        {"kind": "folder", "root": str(settings.data / OBJECTS)},
    )


def memory_engine(settings: Settings, objects: ObjectStore) -> Engine:  # noqa: ARG001 - one form
    """Tasks that only exist in the server: for trying the API without running anything."""
    from danlu.engines.memory import MemoryEngine

    return MemoryEngine(SystemClock())
