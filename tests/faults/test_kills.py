"""The kill harness: jobs, and processes killed under them, at random and at every crash point."""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.faults import adoption, chaos
from tests.faults.checker import check
from tests.faults.history import History
from tests.faults.rows import Results

pytestmark = [pytest.mark.faults, pytest.mark.timeout(7200)]

JOBS = int(os.environ.get("KILL_JOBS", "130"))
KILLS = int(os.environ.get("KILLS", "200"))
POINTS = int(os.environ.get("KILL_POINTS", "5"))
RUNS = int(os.environ.get("RUNS", "1"))
ADOPTED = int(os.environ.get("ADOPTED", "100"))
RESTARTS = int(os.environ.get("RESTARTS", "3"))
SEED = int(os.environ.get("SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)


@pytest.mark.parametrize("seed", range(SEED, SEED + RUNS))
def test_nothing_is_lost_or_doubled(seed: int, tmp_path: Path, faults: Results) -> None:
    """(faults 1, 2, 3, 4, 5, 6, 7, 8) SIGKILL to servers, agents, shims and starters while jobs
    run, at moments that a seed gives and at every crash point; a checker reads the whole history.
    """
    began = time.monotonic()
    history, hits = chaos.run(tmp_path, seed, jobs=JOBS, kills=KILLS, points=POINTS)
    violations = check(history)
    figures = {
        **counted(history, hits),
        "seeds": [seed],
        "violations": dict(Counter(violation.invariant for violation in violations)),
        "took_s": round(time.monotonic() - began),
    }
    faults.add("kills", figures)
    if violations:
        kept = f"/tmp/danlu-faults-{seed}"
        # Pipes and sockets hold nothing.
        plain = shutil.ignore_patterns("wake", "*.sock")
        shutil.copytree(tmp_path, kept, symlinks=True, dirs_exist_ok=True, ignore=plain)
        listed = "\n".join(map(str, violations))
        pytest.fail(f"SEED={seed} replays; {kept} has all that is left\n{listed}", pytrace=False)
    missed = {point: count for point, count in hits.items() if count < POINTS}
    assert not missed, "no job came to these points often enough"


def counted(history: History, hits: Counter[str]) -> dict[str, object]:
    """The figures of a run."""
    at_random = Counter(kill.target for kill in history.kills if not kill.point)
    at_points = Counter(kill.target for kill in history.kills if kill.point)
    return {
        "jobs": len(history.orders),
        "kills": sum(at_random.values()),
        "kills_by_target": dict(sorted(at_random.items())),
        "kills_at_points": sum(at_points.values()),
        "points": dict(sorted(hits.items())),
        "attempts": sum(len(remains.attempts) for remains in history.remains),
        "steps": sum(word.kind == "step" for word in history.words),
    }


def test_running_jobs_are_adopted(tmp_path: Path, faults: Results) -> None:
    """(fault 1) SIGKILL to the server under running jobs, which the next one has to find."""
    took = sorted(adoption.run(tmp_path, ADOPTED, RESTARTS))
    faults.figures["adoption"] = {
        "jobs": ADOPTED,
        "restarts": RESTARTS,
        "median_s": round(took[len(took) // 2], 2),
        "slowest_s": round(took[-1], 2),
        "goal_s": 5,
    }
