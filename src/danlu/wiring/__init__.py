"""The composition root: the one place that names concrete engines and stores."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import danlu
from danlu import registry
from danlu.flow.board import Board
from danlu.flow.buckets import Buckets
from danlu.flow.catalog import Catalog
from danlu.flow.loop import Loop
from danlu.flow.platform import Limits, Platform
from danlu.flow.ssh_traffic import Traffics
from danlu.model.identity import AccessKey, Secret, Workspace
from danlu.model.verification import Verify
from danlu.node.reach import closed_to_all, unwritable
from danlu.ports.engine import Closes, Engine
from danlu.settings import Settings, check_environment
from danlu.wiring import environments, images
from danlu.wiring import objects as storing
from danlu.wiring.admin import first_admin
from danlu.wiring.host import DATASETS, against_torch
from danlu.wiring.tidy import Tidier
from danlu.wiring.world import DataLock, Ending, SystemClock, SystemDice, locked

if TYPE_CHECKING:
    from danlu.ports.objects import ObjectStore
    from danlu.ports.task_directory import Isolation, Storing

VERSION = "version"
DATABASE = "danlu.sqlite"
KEY_FILE = "secret.key"
ENGINE = "engine"
RESTORE_MARKER = "restore.json"
RESTORED_AT = "restored-at"
READY_FILE = "server.json"
OPEN = "demo"
"""The one place in the data directory that jobs may be given; everything else is the server's."""


@dataclass(slots=True)
class Running:
    """An opened platform: what faces work on, until `close`."""

    settings: Settings
    platform: Platform
    buckets: Buckets
    board: Board
    loop: Loop
    admin: AccessKey
    workspace: Workspace
    started_at: int
    lock: DataLock
    ending: Ending
    traffics: Traffics
    """What goes through SSH, for each instance."""
    tidier: Tidier

    def start(self) -> None:
        """Begin to carry jobs through their lives."""
        self.loop.start()
        self.tidier.start()

    def browser_key(self) -> Secret:
        """Signs what browsers are given to come back with; the same after a restart."""
        from danlu.stores.sql.secrets import KeyFile

        return KeyFile(self.settings.data / KEY_FILE).derived("cookies of notebooks", "")

    def close(self) -> None:
        """Stop deciding and let go of everything. Tasks go on: the next server adopts them."""
        self.tidier.close()
        self.loop.close()
        engine = self.platform.engine
        if isinstance(engine, Closes):
            engine.close()
        self.platform.records.close()
        self.lock.release()


def open_platform(settings: Settings, api: str = "", obs: str = "") -> Running:
    """Open the records, objects and engine of `settings` and join them. `api` is this server's own
    address, for jobs that want to call it, `obs` that of its OBS gateway.

    Raises Refused when another server has the data directory or its database is newer than this
    program, Invalid where the environment for jobs is not there. Nothing runs until
    `Running.start`.
    """
    check_environment(settings)
    images.check_default(settings)
    with contextlib.ExitStack() as opened:
        lock = locked(settings.data)
        opened.callback(lock.release)
        if (settings.data / RESTORE_MARKER).exists():
            from danlu.stores import restore

            restore.finish(settings.data)
        running = _opened(settings, (api, obs), lock, opened)
        # What was opened now closes with the platform.
        opened.pop_all()
    return running


def _opened(
    settings: Settings, own: tuple[str, str], lock: DataLock, opened: contextlib.ExitStack
) -> Running:
    from danlu.stores.shelf import FolderShelf
    from danlu.stores.sql import open_records

    data = settings.data
    clock, dice, ending = SystemClock(), SystemDice(), Ending()
    records = open_records(
        settings.database or str(data / DATABASE),
        data / KEY_FILE,
        clock,
        ending,
        settings.reserve_mib << 20,
        anywhere=settings.allow_network_disk,
        sole=True,
    )
    opened.callback(records.close)
    if records.setting(VERSION) != danlu.__version__:
        # An older program that finds a newer schema can then say whose it is.
        records.set_setting(VERSION, danlu.__version__).result()
    limits = _limits(settings)
    objects = storing.opened(settings, limits.bucket)
    workspace, admin = first_admin(records, settings)
    engine: Engine = registry.engine_builder(settings.engine)(settings, objects)
    buckets = Buckets(records, objects, clock, workspace.id)
    traffics = Traffics(clock)
    platform = Platform(
        records,
        objects,
        engine,
        _catalog(settings, engine),
        clock,
        dice,
        limits,
        folder=FolderShelf,
        api=own[0],
        obs=own[1],
        region=settings.region,
        unwritable=unwritable,
        owner=buckets.owner,
        restored_at=int(records.setting(RESTORED_AT) or 0),
        against_torch=against_torch,
        verification=lambda spec: images.verification(settings, spec),
        closed=lambda path: closed_to_all(path, _own(settings), but=str(data / OPEN)),
        readers=(("ssh", traffics.read),),
    )
    board = Board(records)
    parts = (platform, buckets, board, Loop(platform, board))
    beside = (traffics, Tidier(settings))
    return Running(settings, *parts, admin, workspace, clock.now(), lock, ending, *beside)


def _catalog(settings: Settings, engine: Engine) -> Catalog:
    """What jobs may ask for."""
    takes_images = engine.powers.images
    return Catalog(
        capacity=engine.capacity,
        environments=lambda workspace: environments.environments(settings, workspace),
        configured=settings.flavors,
        default=settings.default_flavor,
        takes_images=takes_images,
        default_image=settings.container_image if takes_images else settings.default_image,
        images=lambda workspace, word: images.by_word(settings, workspace, word),
    )


def _limits(settings: Settings) -> Limits:
    """What this server allows."""
    return Limits(
        queued_jobs=settings.max_queued,
        local_paths=settings.allow_local_paths,
        log_bytes=settings.log_limit_mib << 20,
        platform_retries=settings.platform_retries,
        hang_after_s=settings.hang_after_s,
        require_isolation=settings.isolation == "required",
        notebook_idle_s=settings.notebook_idle_s,
        notebook_max_idle_s=settings.notebook_max_idle_s,
        notebook_max_run_s=settings.notebook_max_run_h * 3600,
        verify_images=Verify(settings.image_verify),
    )


def _own(settings: Settings) -> list[str]:
    """Where the server keeps what is its own."""
    return [str(settings.data), *filter(None, [settings.ready_file, settings.s3_keys_file])]


def container_engine(settings: Settings, objects: ObjectStore) -> Engine:  # noqa: ARG001 - as below
    """Tasks in containers of podman or Docker on this machine."""
    from danlu.engines.container import ContainerEngine
    from danlu.engines.container.engine import OwnImages
    from danlu.engines.container.runtime import socket_of

    return ContainerEngine(
        settings.data / ENGINE,
        socket_of(settings.container_socket),
        storing.spec(settings),
        image=settings.container_image,
        own=OwnImages(str(images.root(settings)), lambda one: images.reference(settings, one)),
        storing=_storing(settings),
        isolation=_isolation(settings),
    )


def process_engine(settings: Settings, objects: ObjectStore) -> Engine:  # noqa: ARG001 - agents open their own
    """Tasks as processes of this machine."""
    from danlu.engines.process import ProcessEngine

    return ProcessEngine(
        settings.data / ENGINE,
        lambda plan: environments.environment_of(settings, plan),
        storing.spec(settings),
        storing=_storing(settings),
        images=str(images.root(settings)),
        isolation=_isolation(settings),
    )


def _storing(settings: Settings) -> Storing:
    from danlu.ports.task_directory import Datasets, Storing

    datasets = Datasets(str(settings.data / DATASETS), settings.dataset_cache_gib << 30)
    return Storing(patience_s=settings.store_patience_s, datasets=datasets)


def _isolation(settings: Settings) -> Isolation:
    from danlu.ports.task_directory import Isolation

    return Isolation(
        settings.isolation != "off",
        (str(settings.data), str(images.root(settings))),
        settings.readable_paths,
        settings.writable_paths,
        closed=tuple(_own(settings)),
        open=str(settings.data / OPEN),
    )


def memory_engine(settings: Settings, objects: ObjectStore) -> Engine:  # noqa: ARG001 - one form
    """Tasks that only exist in the server: for trying the API without running anything."""
    from danlu.engines.memory import MemoryEngine

    return MemoryEngine(SystemClock())
