"""The composition root: the one place that names concrete engines and stores."""

from __future__ import annotations

import contextlib
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

import danlu
from danlu import registry
from danlu.flow.board import Board
from danlu.flow.catalog import Catalog, Environment
from danlu.flow.loop import Loop
from danlu.flow.platform import Limits, Platform
from danlu.model.errors import EngineError, PlatformError, Refused, Unavailable
from danlu.model.identity import AccessKey, Secret, User, Workspace
from danlu.model.job import EngineChoice
from danlu.node.reach import closed_to_all
from danlu.ports.engine import Closes, Engine
from danlu.ports.records import Records
from danlu.settings import Settings, check_environment

if TYPE_CHECKING:
    from danlu.images.matrix import Matrix
    from danlu.images.refresh import Refreshed
    from danlu.model.image import Answer, Ask, Rejection
    from danlu.node.gpu import Inventory
    from danlu.ports.objects import ObjectStore
    from danlu.stores.backup import Manifest
    from danlu.stores.restore import Restored

ADMIN = "admin"
ADMIN_KEY = "admin-access-key"
VERSION = "version"
DATABASE = "danlu.sqlite"
KEY_FILE = "secret.key"
LOCK_FILE = "server.lock"
OBJECTS = "objects"
PASSWORD_FILE = "admin-password"  # noqa: S105 - the name of a file
ENGINE = "engine"
RESTORE_MARKER = "restore.json"
RESTORED_AT = "restored-at"
READY_FILE = "server.json"
OPEN = "demo"
"""The one place in the data directory that jobs may be given; everything else is the server's."""


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

    def fraction(self) -> float:
        """A number from 0 up to, but not including, 1."""
        return int.from_bytes(self._draw()[:6], "big") / (1 << 48)

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
    ending: Ending

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


class Ending:
    """Ends this server in good order when its records can no longer be trusted; the next one starts
    from what is on disk.
    """

    def __init__(self) -> None:
        self.problem: PlatformError | None = None
        """Why the server ends; None while nothing is wrong."""

    def __call__(self, problem: PlatformError) -> None:
        self.problem = problem
        signal.raise_signal(signal.SIGTERM)


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
    program, Invalid where the environment for jobs is not there. Nothing runs until
    `Running.start`.
    """
    check_environment(settings)
    with contextlib.ExitStack() as opened:
        lock = _locked(settings.data)
        opened.callback(lock.release)
        if (settings.data / RESTORE_MARKER).exists():
            from danlu.stores import restore

            restore.finish(settings.data)
        running = _opened(settings, api, lock, opened)
        # What was opened now closes with the platform.
        opened.pop_all()
    return running


def _locked(data: Path) -> DataLock:
    try:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        return DataLock(data / LOCK_FILE)
    except OSError as error:
        raise Unavailable("data-dir-unusable", path=data, detail=error.strerror) from error


def _opened(settings: Settings, api: str, lock: DataLock, opened: contextlib.ExitStack) -> Running:
    from danlu.stores.folder import FolderStore
    from danlu.stores.shelf import FolderShelf
    from danlu.stores.sql import open_records

    data = settings.data
    clock, dice, ending = SystemClock(), SystemDice(), Ending()
    reserve = settings.reserve_mib << 20
    where = settings.database or str(data / DATABASE)
    records = open_records(
        where, data / KEY_FILE, clock, ending, reserve, anywhere=settings.allow_network_disk
    )
    opened.callback(records.close)
    if records.setting(VERSION) != danlu.__version__:
        # An older program that finds a newer schema can then say whose it is.
        records.set_setting(VERSION, danlu.__version__).result()
    limits = Limits(
        queued_jobs=settings.max_queued,
        local_paths=settings.allow_local_paths,
        log_bytes=settings.log_limit_mib << 20,
        platform_retries=settings.platform_retries,
        hang_after_s=settings.hang_after_s,
        require_isolation=settings.isolation == "required",
    )
    objects = FolderStore(str(data / OBJECTS))
    objects.create_bucket(limits.bucket)
    # What uploads left that a crash cut off. Before there are other processes of ours.
    objects.sweep()
    workspace, admin = first_admin(records, settings)
    engine: Engine = registry.engine_builder(settings.engine)(settings, objects)
    catalog = Catalog(
        capacity=engine.capacity,
        environments=lambda: environments(settings),
        configured=settings.flavors,
        default=settings.default_flavor,
    )
    platform = Platform(
        records,
        objects,
        engine,
        catalog,
        clock,
        dice,
        limits,
        folder=FolderShelf,
        api=api,
        restored_at=int(records.setting(RESTORED_AT) or 0),
        against_torch=against_torch,
        closed=lambda path: closed_to_all(path, _own(settings), but=str(data / OPEN)),
    )
    board = Board(records)
    loop = Loop(platform, board)
    return Running(settings, platform, board, loop, admin, workspace, clock.now(), lock, ending)


def _own(settings: Settings) -> list[str]:
    """Where the server keeps what is its own."""
    return [str(settings.data), *filter(None, [settings.ready_file])]


def back_up(settings: Settings, dest: Path, *, key: bool, objects: bool) -> Manifest:
    """Write a backup of the server's data to the new directory `dest`, while it runs or not.

    Refused, with the way that there is, for records in PostgreSQL.
    """
    from danlu.stores import backup

    if settings.database:
        raise Refused("backup-other-database", database=shown_database(settings))
    now = SystemClock().now()
    parts = backup.Parts(settings.data)
    return backup.back_up(parts, dest, key=key, objects=objects, version=danlu.__version__, now=now)


def restore(settings: Settings, source: Path, *, force: bool) -> Restored:
    """Put a backup in the place of the server's data. Refused while a server runs on it, and,
    without `force`, where there are records already; those are kept aside.
    """
    from danlu.stores import restore as restoring
    from danlu.stores.backup import Parts
    from danlu.stores.sql.schema import REVISIONS

    if settings.database:
        raise Refused("restore-other-database", database=shown_database(settings))
    lock = _locked(settings.data)
    try:
        now = SystemClock().now()
        return restoring.restore(
            Parts(settings.data), source, known=REVISIONS, now=now, force=force
        )
    finally:
        lock.release()


def shown_database(settings: Settings) -> str:
    """The setting without what is secret in it."""
    from danlu.stores.sql.opening import open_database

    return open_database(settings.database).name


def first_admin(records: Records, settings: Settings) -> tuple[Workspace, AccessKey]:
    """The workspace, user and key pair of this server, made at its first start.

    A start may be killed between any two of its writes; the next one goes on with what is there.
    """
    name = records.setting(ADMIN_KEY)
    if name:
        key = records.access_key(name)
        found = records.workspace(key.user.workspace) if key else None
        if key and found:
            return found, key
    user = records.user(ADMIN)
    workspace = records.workspace(user.workspace) if user else None
    workspace = workspace or _first_workspace(records, settings)
    user = user or _first_user(records, settings, workspace)
    key = _first_key(records, user)
    records.set_setting(ADMIN_KEY, key.access_key).result()
    return workspace, key


def _first_workspace(records: Records, settings: Settings) -> Workspace:
    """The one that is there, or a new one."""
    for workspace in records.workspaces():
        return workspace
    workspace = Workspace(uuid.uuid4().hex, settings.region)
    records.add_workspace(workspace).result()
    return workspace


def _first_user(records: Records, settings: Settings, workspace: Workspace) -> User:
    """The administrator. The password is in its file before the user is on record: a user whose
    password nobody knows could not be used.
    """
    password = secrets.token_urlsafe(18)
    path = settings.data / PASSWORD_FILE
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w") as file:
        file.write(password + "\n")
        file.flush()
        os.fsync(file.fileno())
    hashed = hash_password(password)
    user = User(uuid.uuid4().hex, ADMIN, workspace.id, uuid.uuid4().hex, hashed)
    records.add_user(user).result()
    return user


def _first_key(records: Records, user: User) -> AccessKey:
    """The one that is there, or a new one."""
    for known in records.access_keys(user.id):
        found = records.access_key(known)
        if found is not None:
            return found
    key = AccessKey(_access_key(), Secret(secrets.token_urlsafe(30)), user)
    records.add_access_key(key).result()
    return key


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


def image_for(wanted: Ask) -> Answer:
    """The build of PyTorch that runs where `wanted` says, by the matrix in the package."""
    from danlu.images import matrix, resolve

    return resolve.ask(matrix.packaged(), wanted)


def against_torch(torch: str, gpus: tuple[str, ...]) -> Rejection | None:
    """Why a torch that is installed cannot run on these GPUs of this machine, if it cannot."""
    from danlu.images import installed, matrix
    from danlu.node.gpu import loaded_driver

    arch = os.uname().machine
    return installed.against(matrix.packaged(), torch, gpus, loaded_driver(), arch)


def image_matrix() -> Matrix:
    """The compatibility matrix of the package."""
    from danlu.images import matrix

    return matrix.packaged()


def refreshed_matrix(index: str) -> Refreshed:
    """What an index has that the matrix does not know; empty = PyPI."""
    from danlu.images import matrix, refresh

    return refresh.refresh(matrix.packaged(), index or refresh.PYPI_INDEX)


def control_groups() -> tuple[int, int, tuple[str, ...]]:
    """The version of control groups that is mounted, the one that tasks started from here would
    use (0 = none), and what it can hold them to.
    """
    from danlu.node.cgroup_mounts import find

    found = find()
    return found.present, found.version, tuple(found.controllers)


def isolation() -> tuple[str, str, int]:
    """Who may make namespaces here (or nobody, and why), and the version of Landlock."""
    try:
        from danlu.node import landlock, namespaces

        offer = namespaces.offered()
        return offer.kind, offer.problem, landlock.abi()
    except (ImportError, AttributeError, OSError) as error:  # not Linux
        return "", str(error), 0


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
    from danlu.ports.task_directory import Isolation, Storing

    return ProcessEngine(
        settings.data / ENGINE,
        lambda plan: environment_of(settings, plan.engine),
        {"kind": "folder", "root": str(settings.data / OBJECTS)},
        storing=Storing(patience_s=settings.store_patience_s),
        isolation=Isolation(
            settings.isolation != "off",
            (str(settings.data),),
            settings.readable_paths,
            settings.writable_paths,
        ),
    )


def memory_engine(settings: Settings, objects: ObjectStore) -> Engine:  # noqa: ARG001 - one form
    """Tasks that only exist in the server: for trying the API without running anything."""
    from danlu.engines.memory import MemoryEngine

    return MemoryEngine(SystemClock())
