"""How long a server that comes back needs to have all running jobs again."""

from __future__ import annotations

import time
from pathlib import Path

from tests.faults.house import PROGRAM, House, create_body, opened
from tests.faults.jobs import until
from tests.faults.witness import Witness


def run(root: Path, jobs: int, restarts: int) -> list[float]:
    """Kill the server under so many running jobs, so many times; the seconds from each start of
    the program to the end of the first turn in which it saw every one of them.
    """
    witness = Witness()
    took = []
    with opened(root) as house:
        client = house.client()
        code = client.upload("faults", PROGRAM)
        environments = {"WITNESS": str(witness.port), "STEPS": "1", "PAUSE": "100000", "CODE": "0"}
        for number in range(jobs):
            label = f"job-{number}"
            body = create_body(label, code, {**environments, "LABEL": label}, grace_s=0)
            client.call("POST", "jobs", body, token=label)
        until(lambda: len(witness.living()) == jobs)
        until(lambda: _running(client.get("jobs?limit=500&state=running")) == jobs)
        for _ in range(restarts):
            house.kill()
            time.sleep(0.5)
            before = len(house.said())
            began = time.monotonic()
            house.start_cold()
            _await_adoption(house, jobs, before)
            took.append(time.monotonic() - began)
            house.await_ready()
        assert len(witness.living()) == jobs, "a restart has ended jobs"
        assert _running(client.get("jobs?limit=500&state=running")) == jobs
        starts = sum(1 for word in witness.words if word.kind == "start")
        assert starts == jobs, f"{starts} programs were started for {jobs} jobs"
        for shown in client.get("jobs?limit=500&state=running")["jobs"]:
            client.call("POST", f"jobs/{shown['id']}/stop")
        until(lambda: not witness.living())
        client.close()
    witness.close()
    return took


def _await_adoption(house: House, jobs: int, before: int) -> None:
    wanted = f"{jobs} running attempts adopted"
    until(lambda: wanted in house.said()[before:])


def _running(answer: dict[str, list[object]]) -> int:
    return len(answer["jobs"])
