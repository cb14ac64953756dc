"""Tasks of the process engine that run a text of Python, and ways to look at and to hit them."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import danlu.node
from danlu.model.job import Access, Output
from danlu.model.manifest import hidden
from danlu.model.script import TaskPlan
from danlu.model.url import ObjectUrl
from danlu.node import identity, tree
from danlu.node.ending import marker
from danlu.ports import task_directory as files
from danlu.ports.engine import Launch, Ref, Seen
from danlu.ports.task_directory import ProcessIdentity
from danlu.stores.folder import FolderStore
from tests.contract.engines import HANG_S, ProcessHouse, new_ref
from tests.services import ROOT


def planned(house: ProcessHouse, ref: Ref, text: str, /, **changes: Any) -> Launch:
    """A task that runs `text` in Python."""
    line = shlex.join(["exec", house.python, "-I", "-c", textwrap.dedent(text)])
    plan = TaskPlan(ref.job_id, 1, ref.task, ref.token, ref.name, command=line)
    return Launch(ref, "here", replace(plan, **changes))


def start(house: ProcessHouse, text: str, /, **changes: Any) -> Ref:
    ref = new_ref()
    house.engine.launch([planned(house, ref, text, **changes)])
    return ref


def read(house: ProcessHouse, ref: Ref, name: str) -> dict[str, Any]:
    """One of the files of the protocol, as soon as it is there."""
    path = house.directory(ref) / name
    wait(path.exists)
    value = json.loads(path.read_text("utf-8"))
    assert isinstance(value, dict)
    return value


def wait(condition: Callable[[], object]) -> None:
    end = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < end, "it never comes true"
        time.sleep(0.01)


def kill(*victims: ProcessIdentity) -> None:
    for victim in victims:
        assert identity.send(victim, signal.SIGKILL)


def agent_of(house: ProcessHouse, ref: Ref) -> ProcessIdentity:
    agent: ProcessIdentity = read(house, ref, files.AGENT)["agent"]
    return agent


def shim_of(house: ProcessHouse, ref: Ref) -> ProcessIdentity:
    shim: ProcessIdentity = read(house, ref, files.TASK)["shim"]
    return shim


def late_agent(house: ProcessHouse, ref: Ref) -> int:
    """The exit status of an agent that somebody starts in a task's directory now."""
    program = str(Path(danlu.node.__file__).with_name("__main__.py"))
    words = [sys.executable, "-I", "-S", "-X", "utf8", program, str(house.directory(ref))]
    return subprocess.run(words, timeout=HANG_S, check=False).returncode


def survivors(house: ProcessHouse, ref: Ref) -> list[identity.Process]:
    """Processes of the task that are still there."""
    return tree.marked(marker(str(house.directory(ref))))


def keys(seen: Seen) -> list[str]:
    return [note.key for note in seen.notes]


SLOW = """
    import sys, time
    print("begin", flush=True)
    time.sleep(1.0)
    print("end", flush=True)
    sys.exit(4)
"""
FOREVER = """
    import time
    print("up", flush=True)
    while True:
        time.sleep(60)
"""


class Gate:
    """An object store that lets nothing through while its gate is shut."""

    def __init__(self, root: Path) -> None:
        self.file = root / "gate"
        self.broken = root / "broken"
        self.store = FolderStore(root / "objects")
        self.store.create_bucket("danlu")
        self.options: dict[str, Any] = {
            "packages": str(ROOT),
            "objects": {
                "kind": "tests.fakes.gated_store:GatedStore",
                "root": str(root / "objects"),
                "gate": str(self.file),
                "broken": str(self.broken),
            },
        }

    def open(self) -> None:
        self.file.touch()


CODE = ObjectUrl("danlu", "code/")


def upload(gate: Gate, name: str, text: str) -> None:
    gate.store.put("danlu", f"code/{name}", text.encode())


WRITES = """
    import os, pathlib, time
    out = pathlib.Path(os.environ["model"])
    for number in range(20):
        (out / f"{number}.bin").write_bytes(bytes([number]) * 1000)
    print("written", flush=True)
"""


def output(name: str = "model") -> Output:
    return Output(name, ObjectUrl("danlu", f"runs/{name}/"), access=Access.ENV)


def stored(gate: Gate, name: str = "model") -> Mapping[str, bytes]:
    prefix = f"runs/{name}/"
    return {
        info.key.removeprefix(prefix): b"".join(gate.store.read("danlu", info.key))
        for info in gate.store.walk("danlu", prefix)
        if not hidden(info.key.removeprefix(prefix))
    }
