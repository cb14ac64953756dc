"""Jobs of a house, for tests that look at one fault: submitted, awaited, read back."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from danlu.model.attempt import FINAL
from tests.faults.client import HANG_S, Client
from tests.faults.house import FLAVOR, PROGRAM, House, create_body
from tests.faults.witness import Witness


def until(condition: Callable[[], object]) -> None:
    """Wait for something that has to come."""
    ends = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < ends, "it never came"
        time.sleep(0.02)


class Jobs:
    """What a user does on the server of a house, with a witness of the harness's own programs."""

    def __init__(self, house: House, client: Client | None = None) -> None:
        self.house = house
        self.client = client or house.client()
        self.witness = Witness()
        self._scripts = 0

    def close(self) -> None:
        self.client.close()
        self.witness.close()

    def steps(self, label: str, steps: int = 5, pause_s: float = 0.1, **changes: Any) -> str:
        """Submit a job of the harness's program; its id. `changes` are made to the body's parts."""
        code = self.client.upload("faults", PROGRAM)
        environments = {
            "WITNESS": str(self.witness.port),
            "LABEL": label,
            "STEPS": str(steps),
            "PAUSE": str(pause_s),
            "CODE": "0",
            **changes.pop("environments", {}),
        }
        return self.submit(create_body(label, code, environments, **changes))

    def script(self, text: str, /, *, grace_s: int = 5, **algorithm: Any) -> str:
        """Submit a job that runs a text of Python; its id."""
        self._scripts += 1
        name = f"script-{self._scripts}"
        path = self.house.data.parent / f"{name}.py"
        path.write_text(textwrap.dedent(text), "utf-8")
        code = self.client.upload(name, path)
        body = {
            "kind": "job",
            "metadata": {"name": name},
            "algorithm": {"code_dir": code, "boot_file": path.name, **algorithm},
            "spec": {"resource": {"flavor_id": FLAVOR, "node_count": 1}},
            "danlu": {"grace_s": grace_s},
        }
        return self.submit(body)

    def submit(self, body: dict[str, Any]) -> str:
        name = body["metadata"]["name"]
        return str(self.client.call("POST", "jobs", body, token=name)["id"])

    def submit_once(self, name: str) -> tuple[int, dict[str, str]]:
        """Ask once for a job that waits: status and headers of the answer, whatever they are."""
        with closing(self.house.client()) as client:
            status, headers, _ = client.once("POST", "jobs", json.dumps(waiting(name)).encode())
        return status, headers

    def show(self, job: str) -> dict[str, Any]:
        found: dict[str, Any] = self.client.get(f"jobs/{job}")
        return found

    def until(self, job: str, *states: str) -> dict[str, Any]:
        """The job, once it is in one of `states` (any final one where none is given)."""
        wanted = set(states) or set(FINAL)
        shown: dict[str, Any] = {}

        def reached() -> bool:
            nonlocal shown
            shown = self.show(job)
            return shown["state"] in wanted

        until(reached)
        return shown

    def stop(self, job: str) -> None:
        self.client.call("POST", f"jobs/{job}/stop")

    def log(self, job: str, task: str = "worker-0") -> bytes:
        return self.client.read(f"jobs/{job}/tasks/{task}/log")

    def whole_log(self, job: str, task: str = "worker-0") -> bytes:
        """The log to its end, piece by piece."""
        data = b""
        while True:
            path = f"jobs/{job}/tasks/{task}/log?offset={len(data)}"
            more = self.client.read(path)
            if not more:
                return data
            data += more

    def printed(self, job: str, words: bytes) -> None:
        """Wait until a job has printed `words`."""
        until(lambda: words in self.log(job))

    def events(self, job: str) -> list[str]:
        return [
            event["key"] for event in self.client.get(f"jobs/{job}/events?limit=1000")["events"]
        ]

    def outputs(self, prefix: str) -> dict[str, bytes]:
        """What is stored below a prefix."""
        return self.house.outputs(prefix)

    def attempts(self, job: str) -> list[tuple[str, str]]:
        """State and reason of every attempt, the first one first."""
        return [(row.state, row.reason) for row in self.house.attempts(job)]

    def starts(self, job: str) -> int:
        """How often a program of the job was started."""
        with self.witness.lock:
            words = list(self.witness.words)
        return sum(1 for word in words if word.kind == "start" and word.job == job)

    def directory(self, job: str) -> Path:
        """The directory of the first attempt's first task."""
        return self.house.tasks / f"{job}-1-0"


def waiting(name: str) -> dict[str, Any]:
    """A job that waits for ever: it wants more processors than are left."""
    return {
        "kind": "job",
        "metadata": {"name": name, "description": "x" * 200},
        "algorithm": {"command": "true"},
        "spec": {"resource": {"flavor_id": "whole", "node_count": 1}},
    }


@contextmanager
def users(house: House) -> Iterator[Jobs]:
    """The users of a house."""
    jobs = Jobs(house)
    try:
        yield jobs
    finally:
        jobs.close()
