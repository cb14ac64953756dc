"""A data directory with a real server that is killed and started again, and its jobs."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from danlu.engines.process.reading import identity_of
from danlu.node import identity, tree
from danlu.node.directory import read_json
from danlu.ports import crash
from danlu.ports import task_directory as files
from danlu.ports.task_directory import ProcessIdentity
from danlu.stores.folder import FolderStore
from tests.faults.client import HANG_S, Client
from tests.faults.history import AttemptRow
from tests.services import ROOT

FLAVOR = "faults"
CPUS = 1024
TOML = f"""
[flavors."{FLAVOR}"]
cpus = 1
memory_gib = 0.0625
[flavors.whole]
cpus = {CPUS}
memory_gib = 1
"""
"""A small flavor, and one that takes the whole machine."""
PROGRAM = Path(__file__).with_name("program.py")


def free_port() -> int:
    """A port that no client is given by chance: one that connects to it while no server listens
    would be connected to itself, and keep the next server from listening.
    """
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


class House:
    """One data directory. A server runs in it between `start` and `kill`.

    `settings` are lines of danlu.toml, `environment` variables of the server, `prefix` a command
    that it is started through, `sources` those of the program that it runs.
    """

    def __init__(
        self,
        root: Path,
        settings: str = "",
        *,
        environment: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        sources: Path = ROOT / "src",
    ) -> None:
        self.data = root / "data"
        self.data.mkdir(parents=True, exist_ok=True)
        (self.data / "danlu.toml").write_text(settings + TOML)
        self.orders = root / "orders"
        self.orders.mkdir(parents=True, exist_ok=True)
        self.environment = dict(environment or {})
        self.prefix = list(prefix)
        self.sources = sources
        self.log = root / "server.log"
        self.port = free_port()
        self.pid = 0
        self.starts = 0
        self._cold: subprocess.Popen[str] | None = None
        self._zygote: subprocess.Popen[str] | None = None

    def start_cold(self) -> None:
        """Start a server as a person does, from nothing. Does not wait until it answers."""
        self._cold = self._make_zygote("cold")
        self.pid = self._cold.pid
        self.starts += 1

    def _variables(self) -> dict[str, str]:
        return {
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            crash.VARIABLE: str(self.orders),
            "PYTHONPATH": f"{ROOT}:{self.sources}",
            **self.environment,
        }

    def _make_zygote(self, *more: str) -> subprocess.Popen[str]:
        program = str(Path(__file__).with_name("zygote.py"))
        return subprocess.Popen(
            [
                *self.prefix,
                sys.executable,
                "-P",
                program,
                str(self.data),
                str(self.port),
                str(self.log),
                *more,
            ],
            env=self._variables(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    # the server

    def start(self, *, wait: bool = True) -> None:
        """Start a server; with `wait`, until it answers."""
        zygote = self._zygote = self._zygote or self._make_zygote()
        assert zygote.stdin is not None
        assert zygote.stdout is not None
        zygote.stdin.write("start\n")
        zygote.stdin.flush()
        self.pid = int(zygote.stdout.readline())
        self.starts += 1
        if wait:
            assert self.await_ready(), f"the server has ended: {self.said()[-2000:]}"

    def await_ready(self) -> bool:
        """Wait until the server answers; False if it has died instead."""
        ends = time.monotonic() + HANG_S
        while (self.ready() or {}).get("pid") != self.pid:
            if not self.alive():
                return False
            assert time.monotonic() < ends, "the server does not get ready"
            time.sleep(0.005)
        return True

    def ready(self) -> dict[str, Any] | None:
        with suppress(OSError, ValueError):
            found: dict[str, Any] = json.loads((self.data / "server.json").read_text())
            return found
        return None

    def alive(self) -> bool:
        found = identity.read(self.pid)
        return found is not None and found.state not in identity.GONE

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Signal the server and wait until the kernel has cleaned up after it."""
        with suppress(ProcessLookupError):
            process = os.pidfd_open(self.pid)
            try:
                signal.pidfd_send_signal(process, number)
                assert select.select([process], [], [], HANG_S)[0], "the server does not end"
            finally:
                os.close(process)
        if self._cold is not None and self._cold.pid == self.pid:
            self._cold.communicate(timeout=HANG_S)

    def client(self) -> Client:
        return Client(self.ready() or {}, self.port)

    def said(self) -> str:
        """What the servers have logged."""
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    def ended(self) -> int:
        """The exit status of a cold server that has ended."""
        assert self._cold is not None
        self._cold.communicate(timeout=HANG_S)
        return self._cold.returncode

    def refused(self) -> tuple[int, str]:
        """`danlu serve` where it is going to end by itself: its exit status, and what it says."""
        words = ["-P", "-m", "danlu", "serve", "--data", str(self.data), "--port", "0"]
        done = subprocess.run(
            [*self.prefix, sys.executable, *words],
            env=self._variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        return done.returncode, done.stderr

    # its tasks

    @property
    def tasks(self) -> Path:
        return self.data / "engine" / "tasks"

    def processes(self, kind: str) -> Iterator[tuple[str, int, ProcessIdentity]]:
        """Agents or shims that live: job, attempt, identity."""
        with suppress(FileNotFoundError):
            for directory in sorted(self.tasks.iterdir()):
                plan = (read_json(directory / files.PLAN, 1 << 20) or {}).get("plan") or {}
                file, key = (files.AGENT, "agent") if kind == "agent" else (files.TASK, "shim")
                found = identity_of((read_json(directory / file) or {}).get(key))
                if plan and identity.alive(found) and found is not None:
                    yield str(plan["job_id"]), int(plan["attempt"]), found

    def starter(self) -> identity.Process | None:
        """The process that starts agents."""
        children = [p for p in tree.processes() if p.parent == self.pid]
        return children[0] if children else None

    def survivors(self) -> list[str]:
        """Everything alive that belongs to a task of this house."""
        found = []
        for process in tree.processes():
            if process.state in identity.GONE:
                continue
            with suppress(OSError):
                variables = Path(f"/proc/{process.pid}/environ").read_bytes()
                if f"{self.data}/engine/tasks/".encode() in variables:
                    words = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
                    found.append(f"{process.pid} {b' '.join(words).decode()}")
        return found

    # what is on disk

    @contextmanager
    def database(self, *, write: bool = False) -> Iterator[sqlite3.Connection]:
        path = f"file:{self.data / 'danlu.sqlite'}?mode={'rw' if write else 'ro'}"
        connection = sqlite3.connect(path, uri=True, timeout=HANG_S, isolation_level=None)
        try:
            yield connection
        finally:
            connection.close()

    def attempts(self, job: str) -> list[AttemptRow]:
        """Every attempt of a job, the first one first."""
        with self.database() as connection:
            rows = connection.execute(
                "SELECT number, token, state, reason FROM attempts WHERE job_id = ?"
                " ORDER BY number",
                (job,),
            )
            return [
                AttemptRow(number, token, state, json.loads(reason)["code"] if reason else "")
                for number, token, state, reason in rows
            ]

    def outputs(self, prefix: str) -> dict[str, bytes]:
        """What is stored below a prefix."""
        with closing(FolderStore(str(self.data / "objects"))) as store:
            return {
                info.key.removeprefix(prefix): b"".join(store.read("danlu", info.key))
                for info in store.walk("danlu", prefix)
            }

    def integrity(self) -> str:
        with self.database() as connection:
            return "; ".join(row[0] for row in connection.execute("PRAGMA integrity_check"))

    def restart_through(self, *prefix: str) -> None:
        """Start a server through another command than before."""
        self.prefix = list(prefix)
        self.start_cold()
        assert self.await_ready(), self.said()

    def close_server(self) -> None:
        """Kill the server, and the process that forks servers with it."""
        if self.pid:
            self.kill()
        if self._zygote is not None:
            self._zygote.communicate(timeout=HANG_S)
            self._zygote = None

    def close(self) -> None:
        """End everything."""
        self.close_server()
        for kind in ("agent", "shim"):
            for _, _, found in list(self.processes(kind)):
                identity.send(found, signal.SIGKILL)


@contextmanager
def opened(root: Path, settings: str = "", *, cold: bool = False, **more: Any) -> Iterator[House]:
    """A house with a server; a `cold` one is started from nothing."""
    house = House(root, settings, **more)
    try:
        if cold:
            house.start_cold()
            assert house.await_ready(), house.said()
        else:
            house.start()
        yield house
    finally:
        house.close()


def create_body(
    name: str,
    code: str,
    environments: Mapping[str, str],
    *,
    tasks: int = 1,
    grace_s: int = 5,
    limit_s: int = 0,
) -> dict[str, Any]:
    """A job that runs the harness's program."""
    limit = {"time_limit_s": limit_s} if limit_s else {}
    return {
        "kind": "job",
        "metadata": {"name": name},
        "algorithm": {
            "code_dir": code,
            "command": f"exec {sys.executable} -I -S $MA_CODE_DIR/{PROGRAM.name}",
            "environments": dict(environments),
            "outputs": [
                {
                    "name": "out",
                    "access_method": "env",
                    "remote": {"obs": {"obs_url": f"obs://danlu/faults/{name}/"}},
                }
            ],
        },
        "spec": {"resource": {"flavor_id": FLAVOR, "node_count": tasks}},
        "danlu": {"grace_s": grace_s, **limit},
    }
