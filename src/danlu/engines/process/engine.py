"""The process engine: the eight methods over task directories below one root.

```
root/tasks/<job>-<attempt>-<index>/   one task (ports/task_directory.py)
root/volumes/                         what outlives tasks: the homes of notebooks
root/trash/                           what was removed and is being deleted
root/wake                             the socket on which agents say that something changed
```

Nothing of importance is kept in memory: an engine made on the same root sees the same tasks.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import site
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from socket import socket

from danlu.engines.process import execute, listening, port
from danlu.engines.process.bell import Bell
from danlu.engines.process.machine import Machine, check_kernel, node_name
from danlu.engines.process.starter import Starter
from danlu.engines.process.task import ABSENT, UNKNOWN, Ends, Task
from danlu.model.codec import to_json
from danlu.model.errors import EngineError, Refused
from danlu.model.execute import Command
from danlu.model.installed import Installed
from danlu.model.resources import Gpu, Offer
from danlu.model.script import Layout, TaskPlan
from danlu.node import cgroup, containment, gpu, landlock, places
from danlu.node.directory import publish_json, read_json, sync_directory
from danlu.node.log_files import ORIGIN
from danlu.node.volumes import Volumes
from danlu.ports import crash
from danlu.ports import task_directory as files
from danlu.ports.crash import crash_point
from danlu.ports.engine import (
    ISOLATION,
    Execution,
    Launch,
    LogChunk,
    Mark,
    Phase,
    Powers,
    Ref,
    Sample,
    Seen,
    StopReason,
    WakeCallback,
)
from danlu.ports.task_directory import AgentPlan, Isolation, Storing

SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PASSED_ON = (
    "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
    "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "all_proxy",
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_CONFIG_FILE", "PIP_CERT",
    "PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_CACHE_DIR", "LD_LIBRARY_PATH", "CUDA_HOME",
    "UV_DEFAULT_INDEX", "UV_INDEX", "UV_FIND_LINKS", "UV_NO_INDEX", "UV_INSECURE_HOST",
)  # fmt: skip
"""Variables of the server that tasks get: how to reach the network, and where libraries are."""

PLAN_BYTES = 32 << 20
UNBORN = ".unborn-"
log = logging.getLogger(__name__)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,120}")

EnvironmentOf = Callable[[TaskPlan], Path]
"""The directory of the Python environment in which a task runs (`bin/python` is in it)."""


class ProcessEngine:
    """Runs tasks as processes of this machine.

    `objects` describes the object store to the agents (`{"kind": "folder", "root": …}`). `offer`
    replaces what the machine is found to have. `environment` is where the variables that are
    passed on come from, `images` is where the machine's images lie.
    `isolation` says what tasks are kept from beside `root`.
    """

    def __init__(
        self,
        root: Path,
        environment_of: EnvironmentOf,
        objects: Mapping[str, str],
        *,
        offer: Offer | None = None,
        environment: Mapping[str, str] | None = None,
        storing: Storing = Storing(),  # noqa: B008 -- it cannot be changed
        images: str = "",
        isolation: Isolation = Isolation(),  # noqa: B008 -- it cannot be changed
    ) -> None:
        check_kernel()
        self._root = root.absolute()
        self._tasks_root = self._root / "tasks"
        self._trash = self._root / "trash"
        for directory in (self._root, self._tasks_root, self._trash):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._environment_of = environment_of
        self._objects = dict(objects)
        source = os.environ if environment is None else environment
        self._environment = {name: source[name] for name in PASSED_ON if name in source}
        self._offer = offer
        self._machine = Machine(node_name(), _probe_gpus)
        self._storing = storing
        self._images = images
        self._packages = site.getsitepackages()[0]
        self._isolation = _resolved(isolation, self._root)
        self._lock = threading.RLock()
        self._tasks: dict[str, Task] = {}
        self._ends = Ends()
        self._blind = False
        """Whether some task could not be looked at; told once."""
        # Before there is another process of ours in our control group.
        groups = cgroup.here()
        self._bell = Bell(self._root / "wake")
        agent_environment = {"HOME": str(Path.home()), "PATH": SYSTEM_PATH, **self._environment}
        agent_environment |= crash.environment()
        self._agent_environment = agent_environment
        self._errors = self._root / "agents.err"
        self._starter = self._new_starter(agent_environment)
        self._starter.warm()
        self._volumes = Volumes(self._root / "volumes")
        for leftover in self._tasks_root.glob(f"{UNBORN}*"):
            self._discard(leftover)
        self._empty_trash()
        cgroup.left_over(groups, str(self._tasks_root), self._exists)

    @property
    def powers(self) -> Powers:
        """Tasks see this machine's files. Paths are ModelArts' where tasks have a view of their
        own.
        """
        apart = self._apart
        held = set(cgroup.here().controllers)
        held |= {"namespaces"} if apart else set()
        held |= {"landlock"} if self._isolation.wanted and landlock.abi() else set()
        unenforced = tuple(part for part in ISOLATION if part not in held)
        return Powers(literal_paths=apart, unenforced=unenforced, local_paths=True, endpoints=True)

    def endpoint(self, ref: Ref, name: str) -> socket:
        """A connection to what the program of a notebook listens on."""
        task = self._task(ref)
        return listening.connect(None if task is None or task.ended else task.path, name)

    def said(self, ref: Ref, name: str) -> Mapping[str, object] | None:
        """What the program of a notebook says of itself."""
        task = self._task(ref)
        return None if task is None or task.ended else listening.said(task.path, name)

    def make_volume(self, name: str) -> None:
        """Make a volume, if it is not there."""
        self._volumes.make(name)

    def volume_bytes(self, name: str) -> int | None:
        """What lies in a volume."""
        return self._volumes.used_bytes(name)

    def remove_volume(self, name: str) -> None:
        """Remove a volume with all that is in it."""
        self._volumes.remove(name)

    def _new_starter(self, environment: Mapping[str, str]) -> Starter:
        """What starts agents, in these variables."""
        bare = not self._isolation.namespaces
        return Starter(self._errors, environment, bare=bare)

    @property
    def _apart(self) -> bool:
        return self._isolation.namespaces and bool(self._starter.offer().kind)

    def close(self) -> None:
        """Let go of everything. Tasks go on without this engine."""
        self._starter.close()
        self._bell.close()

    def on_change(self, callback: WakeCallback) -> None:
        """Call `callback` when an agent says that something changed."""
        self._bell.on_ring(callback)

    def layout(self, ref: Ref, plan: TaskPlan) -> Layout:
        """The layout that `plan` would get under `ref`; nothing is made."""
        found = self._layout(ref, plan)
        return containment.literal(found) if self._apart else found

    def _layout(self, ref: Ref, plan: TaskPlan) -> Layout:
        """Where the places of a task lie for whoever has no view of his own."""
        environment = self._environment_of(plan)
        return places.layout(
            str(self._path(ref)),
            python=str(environment / "bin" / "python"),
            path=f"{environment / 'bin'}:{SYSTEM_PATH}",
        )

    # the eight

    def capacity(self) -> Sequence[Offer]:
        """This machine."""
        return (self._offer or self._machine.offer(),)

    def launch(self, launches: Sequence[Launch]) -> None:
        """Start all tasks or none."""
        with self._lock:
            found = {launch.ref: self._task(launch.ref) for launch in launches}
            for launch in launches:
                self._refuse_other_token(launch.ref, found[launch.ref])
            fresh = [launch for launch in launches if found[launch.ref] is None]
            for job_id, attempt in {(one.ref.job_id, one.ref.attempt) for one in fresh}:
                self._fence_earlier(job_id, attempt)
            gang_port = self._gang_port(launches, found)
            made: list[Ref] = []
            try:
                for launch in fresh:
                    self._make(launch, gang_port)
                    made.append(launch.ref)
                sync_directory(self._tasks_root)
                for launch in launches:
                    self._hand_over(launch.ref)
            except BaseException as error:
                for ref in made:
                    self.remove(ref)
                if isinstance(error, OSError):
                    raise EngineError("engine-failed", detail=str(error)) from error
                raise

    def observe(self, refs: Iterable[Ref]) -> Mapping[Ref, Seen]:
        """Say what each directory says; where it cannot be looked at now, what it said last."""
        seen, blind = {}, ""
        for ref in refs:
            try:
                task = self._task(ref)
                seen[ref] = ABSENT if task is None else self._seen(task)
            except OSError as error:
                blind = f"{ref.name}: {error}"
                task = self._tasks.get(ref.name)
                seen[ref] = UNKNOWN if task is None else task.last_seen()
        if blind and not self._blind:
            log.warning("tasks cannot be looked at: %s", blind)
        self._blind = bool(blind)
        return seen

    def stop(self, ref: Ref, grace_s: float, reason: StopReason = StopReason.STOP) -> None:
        """Order the agent to stop the task; if it has died, another one carries the order out."""
        task = self._task(ref)
        if task is None or task.ended:
            return
        before = (read_json(task.path / files.STOP) or {}).get("grace_s")
        if not isinstance(before, int | float) or grace_s < before:
            self._publish(task.path, files.STOP, {"grace_s": grace_s, "reason": str(reason)})
        task.signal_agent()

    def logs(self, ref: Ref, since: int, limit: int = 1 << 20) -> LogChunk:
        """At most `limit` bytes of the log from `since`."""
        task = self._task(ref)
        return LogChunk(since, b"", ended=True) if task is None else task.logs(since, limit)

    def mark(self, ref: Ref, line: int, offset: int) -> Mark:
        """The last place known to lie before line `line` begins, and not behind `offset`."""
        task = self._task(ref)
        return ORIGIN if task is None else task.mark(line, offset)

    def stats(self, refs: Iterable[Ref]) -> Mapping[Ref, Sequence[Sample]]:
        """The samples that the agents took."""
        found: dict[Ref, Sequence[Sample]] = {}
        for ref in refs:
            task = self._task(ref)
            found[ref] = () if task is None else task.samples()
        return found

    def installed(self, ref: Ref) -> Installed | None:
        """What was installed by hand: in the layer over its environment, or noted at its end."""
        task = self._task(ref)
        return None if task is None else task.installed()

    def remove(self, ref: Ref) -> None:
        """End the task if it runs, and delete its directory."""
        with self._lock:
            task = self._task(ref)
            if task is None:
                return
            crash_point("remove.before-end")
            if not self._ends.end(task.path):
                raise EngineError("engine-failed", detail=f"{ref.name} cannot be ended")
            crash_point("remove.after-end")
            self._discard(task.path)
            self._tasks.pop(ref.name, None)
        self._empty_trash()

    def known(self) -> Sequence[Ref]:
        """Every task that has a directory."""
        names = sorted(entry.name for entry in os.scandir(self._tasks_root))
        tasks = [self._tasks.get(name) or self._read(name) for name in names]
        return [task.ref for task in tasks if task is not None]

    def execute(self, ref: Ref, command: Command) -> Execution:
        """Run a command beside the task's program."""
        task = self._task(ref)
        if task is None or task.seen().phase is not Phase.RUNNING:
            raise Refused("exec-not-running", task=f"worker-{ref.task}")
        return execute.begin(task.path, command, self._agent_environment, self._errors)

    # how

    def _path(self, ref: Ref) -> Path:
        if not _NAME.fullmatch(ref.name):
            raise EngineError("engine-failed", detail=f"'{ref.name}' cannot be a directory's name")
        return self._tasks_root / ref.name

    def _exists(self, name: str) -> bool:
        return os.path.lexists(f"{self._tasks_root}/{name}")

    def _task(self, ref: Ref) -> Task | None:
        """The task under this ref and token, or None."""
        task = self._load(ref.name) if _NAME.fullmatch(ref.name) else None
        return task if task is not None and task.ref == ref else None

    def _load(self, name: str) -> Task | None:
        """The task in the directory `name`, whatever its token; read once."""
        task = self._tasks.get(name)
        if task is not None:
            if self._exists(name):
                return task
            self._tasks.pop(name, None)
            return None
        task = self._read(name)
        if task is None:
            return None
        with self._lock:
            return self._tasks.setdefault(name, task)

    def _read(self, name: str) -> Task | None:
        """The task that the plan in the directory `name` describes."""
        path = self._tasks_root / name
        data = (read_json(path / files.PLAN, PLAN_BYTES) or {}).get("plan")
        if not isinstance(data, dict) or not _NAME.fullmatch(name):
            return None
        try:
            ref = Ref(
                str(data["job_id"]), int(data["attempt"]), int(data["index"]), str(data["token"])
            )
            task = self._made(ref, path, int(data["rendezvous_port"]))
        except (KeyError, ValueError, TypeError):
            return None
        return task if ref.name == name else None

    def _refuse_other_token(self, ref: Ref, found: Task | None) -> None:
        if found is None and self._path(ref).exists():
            raise EngineError(
                "engine-failed", detail=f"{ref.name} exists under the token of another attempt"
            )

    def _fence_earlier(self, job_id: str, attempt: int) -> None:
        """See to it that no earlier attempt of a job lives or can begin any more."""
        later = f"{job_id}-{attempt + 1}-0"
        if os.path.lexists(self._tasks_root / later):
            raise EngineError("engine-failed", detail=f"attempt {attempt} is over: {later} exists")
        if attempt == 1:
            return
        before = re.compile(rf"{re.escape(job_id)}-([0-9]+)-[0-9]+")
        for name in sorted(entry.name for entry in os.scandir(self._tasks_root)):
            of_job = before.fullmatch(name)
            task = self._load(name) if of_job and int(of_job[1]) < attempt else None
            if task is not None and not task.close_off(attempt):
                raise EngineError("engine-failed", detail=f"{name} cannot be ended")

    def _gang_port(self, launches: Sequence[Launch], found: Mapping[Ref, Task | None]) -> int:
        """The port that the gang already has, or a free one."""
        for launch in launches:
            task = found[launch.ref]
            if task is not None:
                return task.port
        if not launches:
            return 0
        return port.choose(launches[0].ref.token, self._port_taken)

    def _port_taken(self, number: int) -> bool:
        return any(task.port == number and not task.ended for task in self._tasks.values())

    def _make(self, launch: Launch, gang_port: int) -> None:
        """Make a task's directory appear with its plan in it."""
        path = self._path(launch.ref)
        plan = replace(launch.plan, token=launch.ref.token, rendezvous_port=gang_port)
        whole = self._whole(launch.ref, plan)
        unborn = self._tasks_root / f"{UNBORN}{secrets.token_hex(8)}"
        unborn.mkdir(mode=0o700)
        try:
            publish_json(unborn, files.PLAN, to_json(whole))
            crash_point("launch.before-publish")
            unborn.rename(path)
            crash_point("launch.after-publish")
        except BaseException:
            places.remove_tree(unborn)
            raise
        self._tasks[launch.ref.name] = self._made(launch.ref, path, gang_port)

    def _whole(self, ref: Ref, plan: TaskPlan) -> AgentPlan:
        """What an agent is told of a task."""
        return AgentPlan(
            replace(plan, hosts=("127.0.0.1",) * plan.node_count),
            self._layout(ref, plan),
            self._objects,
            self._environment,
            self._bell.path,
            self._storing,
            isolation=self._isolation,
            images=self._images,
            packages=self._packages,
            volumes=self._volumes.path,
        )

    def _made(self, ref: Ref, path: Path, gang_port: int) -> Task:
        return Task(ref, path, gang_port, self._starter.begin, self._ends)

    def _hand_over(self, ref: Ref) -> None:
        task = self._tasks[ref.name]
        if task.agent() is None and not (task.path / files.DONE).exists():
            task.begin()
            crash_point("launch.after-handover")

    def _seen(self, task: Task) -> Seen:
        abandoned = not task.handed_over and not task.begun
        # A directory that an earlier server made and nobody began. Either the flow launches it
        # again, or it is nothing; it must not come to life later.
        return ABSENT if abandoned and self._fence(task) else task.seen()

    def _fence(self, task: Task) -> bool:
        """Take a directory that was never begun out of reach; False if somebody has begun."""
        with self._lock:
            if not task.fence():
                return False
            self._discard(task.path)
            self._tasks.pop(task.ref.name, None)
            return True

    def _publish(self, path: Path, name: str, value: Mapping[str, object]) -> None:
        try:
            publish_json(path, name, value)
        except FileNotFoundError:
            pass  # removed meanwhile
        except OSError as error:
            raise EngineError("engine-failed", detail=str(error)) from error

    def _discard(self, path: Path) -> None:
        with suppress(FileNotFoundError):
            path.rename(self._trash / f"{path.name}-{secrets.token_hex(8)}")
        with suppress(OSError):
            sync_directory(self._tasks_root)

    def _empty_trash(self) -> None:
        """Delete what was removed, in the background: it may be much."""
        entries = [entry.path for entry in os.scandir(self._trash)]
        if entries:
            threading.Thread(
                target=_delete, args=(entries,), name="engine-trash", daemon=True
            ).start()


def _resolved(isolation: Isolation, root: Path) -> Isolation:
    """With paths as the kernel knows them, without links on the way, and our own root hidden."""

    def names(paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(str(Path(path).resolve()) for path in paths)

    return Isolation(
        isolation.wanted,
        names((str(root), *isolation.hidden)),
        names(isolation.readable),
        names(isolation.writable),
        isolation.namespaces and isolation.wanted,
        isolation.closed,
        isolation.open,
    )


def _delete(paths: Sequence[str]) -> None:
    for path in paths:
        places.remove_tree(Path(path))


def _probe_gpus() -> tuple[Gpu, ...]:
    return gpu.probe().gpus


__all__ = ["EnvironmentOf", "ProcessEngine"]
