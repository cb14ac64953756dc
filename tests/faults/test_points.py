"""SIGKILL at the crash points that no job of the kill harness passes: those of data sets that stay
on the machine, and of containers.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from danlu.node import namespaces
from danlu.node.datasets import LEAST_FILES, DataSets
from danlu.ports.crash import HITS, POINTS
from danlu.stores.folder import FolderStore
from danlu.wiring.host import DATASETS
from tests.containers import Podman, podman
from tests.faults.house import House, opened
from tests.faults.jobs import Jobs, users
from tests.services import offered

__all__ = ["podman"]

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]

TIMES = int(os.environ.get("KILL_POINTS", "5"))

COUNTS = """
    import pathlib, sys
    place, = [one.split("=", 1)[1] for one in sys.argv if one.startswith("--data=")]
    files = sorted(path for path in pathlib.Path(place).rglob("*") if path.is_file())
    print(len(files), files[0].read_text(), flush=True)
"""
TICKS = """
    import sys, time
    for number in range(50):
        print("tick", number, flush=True)
        time.sleep(0.01)
    sys.exit(0)
"""


def armed(house: House, kind: str) -> list[str]:
    """Have one process killed at each point of a kind; the points."""
    points = [point for point in POINTS if point.startswith(f"{kind}.")]
    for point in points:
        (house.orders / point).write_text("kill\n")
    return points


def hits(house: House) -> Counter[str]:
    """How often processes were killed, by point."""
    return Counter(line.split(" ", 1)[0] for line in (house.orders / HITS).read_text().splitlines())


def ended_well(jobs: Jobs, job: str, log: bytes) -> None:
    """It has succeeded in its only attempt, and printed this, once."""
    assert jobs.until(job)["state"] == "succeeded", jobs.events(job)
    assert jobs.attempts(job) == [("succeeded", "completed")]
    assert jobs.whole_log(job) == log


def test_agents_killed_while_they_keep_a_data_set(tmp_path: Path) -> None:
    """(fault 2) SIGKILL to the agent before a data set that is to stay on the machine is there, and
    to the next one before it is said to be complete; each time another data set.
    """
    offered(namespaces.offered().kind, "namespaces")
    points: list[str] = []
    with opened(tmp_path) as house, users(house) as jobs:
        inputs = [{"name": "data", "remote": {"obs": {"obs_url": "obs://danlu/set/"}}}]
        with closing(FolderStore(str(house.data / "objects"))) as store:
            for number in range(LEAST_FILES):
                store.put("danlu", f"set/{number:03}/f", b"%d" % number)
            for turn in range(TIMES):
                store.put("danlu", "set/000/f", b"turn %d" % turn)
                points = armed(house, "dataset")
                job = jobs.script(COUNTS, inputs=inputs)
                ended_well(jobs, job, b"%d turn %d\n" % (LEAST_FILES, turn))

        assert hits(house) == Counter(dict.fromkeys(points, TIMES))
        kept = DataSets(house.data / DATASETS, 1 << 30).all()
        assert [(one.files, one.complete) for one in kept] == [(LEAST_FILES, True)] * TIMES


def test_agents_killed_at_every_step_of_a_container(tmp_path: Path, podman: Podman) -> None:
    """(fault 2) SIGKILL to agents at each crash point of a container's life, while some containers
    run at once: none runs twice, no line is lost, and nothing is left.
    """
    environment = {
        "DANLU_ENGINE": "container",
        "DANLU_CONTAINER_SOCKET": podman.socket,
        "DANLU_CONTAINER_IMAGE": podman.image,
    }
    points: list[str] = []
    with opened(tmp_path, environment=environment) as house, users(house) as jobs:
        for _ in range(TIMES):
            points = armed(house, "container")
            turn = [jobs.script(TICKS) for _ in range(3)]
            for job in turn:
                ended_well(jobs, job, b"".join(b"tick %d\n" % number for number in range(50)))
            left = podman.run("ps", "--all", "--format", "{{.Names}}")
            assert not [job for job in turn if job in left]

        assert hits(house) == Counter(dict.fromkeys(points, TIMES))
