"""One way to talk about programs, for engines that run them and for the one that only says so."""

from __future__ import annotations

import atexit
import itertools
import json
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from danlu.engines.container import ContainerEngine
from danlu.engines.memory import Cluster, ManualClock, MemoryEngine
from danlu.engines.memory_script import Script
from danlu.engines.process import ProcessEngine
from danlu.engines.process.starter import Starter
from danlu.model.script import TaskPlan
from danlu.ports.engine import Engine, Launch, Phase, Ref, Seen
from danlu.ports.task_directory import Isolation, Storing

if TYPE_CHECKING:  # a user without rights runs this with a Python that has no pytest
    import pytest

    from tests.containers import Podman

PLAYER = Path(__file__).with_name("player.py")
HANG_S = 60.0
"""Longer than anything here takes; a wait that reaches it is a failure."""


@dataclass(frozen=True)
class Program:
    """What a task's program does: print, run (None = until stopped), and end.

    `on_term`: "die" as programs do, "ignore", or an exit code with which it ends tidily.
    """

    out: bytes = b""
    err: bytes = b""
    times: int = 1
    runs_s: float | None = 0.0
    exit_code: int = 0
    signal: str = ""
    on_term: str = "die"


class House(Protocol):
    """An engine under test and the world around it."""

    @property
    def engine(self) -> Engine:
        """The engine of the moment."""

    def plan(self, ref: Ref, program: Program) -> TaskPlan:
        """A plan that runs `program`."""

    def pass_time(self, seconds: float) -> None:
        """Let time go by for the tasks."""

    def restart(self) -> None:
        """Put another engine object in the place of this one, as a new server does."""

    def launch_and_die(self, launch: Launch) -> None:
        """Launch from a server that is killed right after it."""

    def close(self) -> None:
        """Remove whatever there is."""


_numbers = itertools.count(1)


def new_ref(job: str = "", task: int = 0, token: str = "") -> Ref:
    return Ref(job or f"job-{next(_numbers)}", 1, task, token or secrets.token_hex(16))


def launch(house: House, program: Program, **changes: Any) -> Ref:
    """Launch one task that runs `program`; `changes` are made to its plan."""
    ref = new_ref()
    house.engine.launch([Launch(ref, "here", replace(house.plan(ref, program), **changes))])
    return ref


def see(house: House, ref: Ref) -> Seen:
    return house.engine.observe([ref])[ref]


def until(house: House, ref: Ref, wanted: Callable[[Seen], bool]) -> Seen:
    """Observe until what is seen is as `wanted`."""
    end = time.monotonic() + HANG_S
    while not wanted(seen := see(house, ref)):
        assert time.monotonic() < end, f"still {seen}"
        house.pass_time(0.02)
    return seen


def finish(house: House, ref: Ref) -> Seen:
    return until(house, ref, lambda seen: seen.phase is Phase.DONE)


def running(house: House, ref: Ref) -> Seen:
    return until(house, ref, lambda seen: seen.phase is Phase.RUNNING)


def whole_log(house: House, ref: Ref, limit: int = 1 << 20) -> bytes:
    """The log from its beginning to its end, read piece by piece as a client does."""
    data = b""
    end = time.monotonic() + HANG_S
    while True:
        chunk = house.engine.logs(ref, len(data), limit)
        assert chunk.offset == len(data)
        assert len(chunk.data) <= limit
        data += chunk.data
        if chunk.ended:
            return data
        assert time.monotonic() < end, f"the log does not end, {len(data)} bytes so far"
        if not chunk.data:
            house.pass_time(0.02)


def said(house: House, ref: Ref, words: bytes) -> None:
    """Wait until a task has printed `words`."""
    end = time.monotonic() + HANG_S
    while words not in house.engine.logs(ref, 0).data:
        assert time.monotonic() < end, f"{words!r} is never printed"
        house.pass_time(0.02)


class MemoryHouse:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.cluster = Cluster()
        self.programs: dict[tuple[str, int], Program] = {}
        self._open()

    def _open(self) -> None:
        self.engine = MemoryEngine(self.clock, script_of=self._script, cluster=self.cluster)

    def plan(self, ref: Ref, program: Program) -> TaskPlan:
        self.programs[ref.token, ref.task] = program
        return TaskPlan(ref.job_id, ref.attempt, ref.task, ref.token, ref.name, command="play")

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def restart(self) -> None:
        self._open()

    def launch_and_die(self, launch: Launch) -> None:
        self.engine.launch([launch])
        self.restart()

    def close(self) -> None:
        self.cluster.tasks.clear()

    def _script(self, plan: TaskPlan) -> Script:
        program = self.programs[plan.token, plan.index]
        tidy = program.on_term not in ("die", "ignore")
        return Script(
            stage_s=0.01,
            duration_s=program.runs_s,
            exit_code=_code(program),
            signal=program.signal,
            output=[(0.0, (program.out + program.err) * program.times)],
            on_term_s=None if program.on_term == "ignore" else 0.01,
            on_term_code=int(program.on_term) if tidy else 143,
            collect_s=0.01,
            notes=[(0.0, "limits-unenforced", {}), (0.01, "task-started", {"pid": 1})],
        )


def _code(program: Program) -> int:
    return {"SIGKILL": 137, "SIGSEGV": 139}.get(program.signal, program.exit_code)


class LastingStarter(Starter):
    """One that engines share: it takes longer to begin than the tasks of most tests take."""

    def close(self) -> None:
        """It goes on, until the tests end."""


_starters: dict[object, LastingStarter] = {}


class SharedStarter(ProcessEngine):
    """An engine whose starter was there before it, and goes on without it."""

    def _new_starter(self, environment: Mapping[str, str]) -> Starter:
        key = (self._isolation.namespaces, *sorted(environment.items()))
        if key not in _starters:
            errors = Path(tempfile.mkdtemp(prefix="danlu-starter-")) / "agents.err"
            atexit.register(shutil.rmtree, errors.parent, ignore_errors=True)
            bare = not self._isolation.namespaces
            _starters[key] = LastingStarter(errors, environment, bare=bare)
        return _starters[key]


class SharedContainer(SharedStarter, ContainerEngine):
    """The same for containers."""


class ProcessHouse:
    """`packages` is where agents find modules beyond the standard library, other than ours. With
    `own_starter` each engine begins and ends a starter, as a server's does.
    """

    def __init__(
        self, root: Path, *, packages: str = "", own_starter: bool = False, **options: Any
    ) -> None:
        self._own_starter = own_starter
        # As people name them: every path of every task has a space and Chinese in it.
        self.root = root / "数据 data"
        # The checkout may lie where tasks do not look, below /tmp or in a home.
        ours = Isolation(readable=(str(PLAYER.parent),))
        self.options = {"storing": Storing(interval_s=0.1), "isolation": ours, **options}
        self._packages = packages
        self._open()

    def _open(self) -> None:
        made = ProcessEngine if self._own_starter else SharedStarter
        self.engine: ProcessEngine = made(
            self.root / "engine",
            lambda _plan: Path(sys.prefix),
            **{"objects": {"kind": "folder", "root": self.objects}, **self.options},
        )
        self.engine._packages = self._packages or self.engine._packages

    @property
    def objects(self) -> str:
        """The directory of the object store."""
        return str(self.root / "objects")

    @property
    def python(self) -> str:
        """The interpreter that tasks have."""
        return sys.executable

    def dying(self) -> dict[str, str]:
        """What a server of this engine needs more than its root."""
        return {}

    def plan(self, ref: Ref, program: Program) -> TaskPlan:
        part = {**asdict(program), "out": program.out.hex(), "err": program.err.hex()}
        # Long arguments are for the tests of long arguments.
        line = ["exec", self.python, "-I", "-S", str(PLAYER), json.dumps(part)]
        return TaskPlan(
            ref.job_id, ref.attempt, ref.task, ref.token, ref.name, command=shlex.join(line)
        )

    def pass_time(self, seconds: float) -> None:
        time.sleep(seconds)

    def restart(self) -> None:
        self.engine.close()
        self._open()

    def launch_and_die(self, launch: Launch) -> None:
        self.engine.close()
        order = {
            "root": str(self.root),
            "ref": [launch.ref.job_id, launch.ref.attempt, launch.ref.task, launch.ref.token],
            "command": launch.plan.command,
            **self.dying(),
        }
        script = Path(__file__).with_name("dying_server.py")
        died = subprocess.run([sys.executable, str(script), json.dumps(order)], check=False)
        assert died.returncode == -9
        self._open()

    def directory(self, ref: Ref) -> Path:
        """The task directory."""
        return self.root / "engine" / "tasks" / ref.name

    def close(self) -> None:
        for ref in self.engine.known():
            self.engine.remove(ref)
        self.engine.close()


class ContainerHouse(ProcessHouse):
    """The container engine with real podman."""

    def __init__(self, root: Path, podman: Podman, **options: Any) -> None:
        self.podman = podman
        super().__init__(root, **options)

    def _open(self) -> None:
        # Every engine looks into an image once, which takes as long as running a task in it.
        known = self.root / "engine" / "images"
        known.mkdir(parents=True, exist_ok=True)
        for name, content in self.podman.facts.items():
            (known / name).write_bytes(content)
        made = ContainerEngine if self._own_starter else SharedContainer
        self.engine = made(
            self.root / "engine",
            self.podman.socket,
            image=self.podman.image,
            **{"objects": {"kind": "folder", "root": self.objects}, **self.options},
        )

    @property
    def python(self) -> str:
        return "/usr/bin/python3"

    def dying(self) -> dict[str, str]:
        return {"socket": self.podman.socket, "image": self.podman.image}

    def close(self) -> None:
        super().close()
        for path in (self.root / "engine" / "images").glob("*.json"):
            self.podman.facts[path.name] = path.read_bytes()


HOUSES: dict[str, Callable[[Path, pytest.FixtureRequest], House]] = {
    "memory": lambda _path, _request: MemoryHouse(),
    "process": lambda path, _request: ProcessHouse(path),
    "container": lambda path, request: ContainerHouse(path, request.getfixturevalue("podman")),
}
"""Every engine. A new one joins the contract by one line here."""


def gang(house: House, programs: Sequence[Program]) -> list[Launch]:
    """Launches of the tasks of one job."""
    job, token = f"gang-{next(_numbers)}", secrets.token_hex(16)
    refs = [Ref(job, 1, task, token) for task in range(len(programs))]
    return [
        Launch(ref, "here", replace(house.plan(ref, program), node_count=len(programs)))
        for ref, program in zip(refs, programs, strict=True)
    ]
