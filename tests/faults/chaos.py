"""A run of the kill harness: real jobs, and processes killed under them, all on record.

    python -m tests.faults.chaos --seed 1 --jobs 200 --kills 300 --points 20

The decisions (which job, whom to kill, how long to wait) come from the seed; what the kernel
makes of their timing does not.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from danlu.model.attempt import FINAL
from danlu.node import identity
from danlu.ports.crash import HITS, POINTS
from tests.faults.checker import check
from tests.faults.client import HANG_S, Refused
from tests.faults.history import Accepted, History, Kill, Look, Order, Remains, Word
from tests.faults.house import PROGRAM, House, create_body, opened
from tests.faults.witness import Witness

OF_JOBS = tuple(
    point
    for point in POINTS
    if not point.startswith(("image.", "dataset.", "container.", "notebook."))
)
"""No job here makes an image (tests/images/test_realise.py kills at those points), keeps a data
set on the machine or runs in a container (test_points.py), or is a start of a notebook
(tests/flow/test_notebook.py takes each step twice).
"""
WIDTH = 12
"""Jobs that live at once."""


PATIENCE_S = 2 * HANG_S
"""A point that is armed this long and that nothing else is hit meanwhile is never reached."""


HOLD_S = 1.5
"""A step of a job that a user stops takes this long, so that the stop meets a program that runs,
on a busy machine too."""


@dataclass(frozen=True, slots=True)
class Mix:
    """What jobs are like. Shares are of 1: jobs that a user stops, and ended ones that a user
    deletes, so that they are swept.
    """

    steps: int
    pause_s: float
    stopped: float
    deleted: float
    retried: float
    """The share of jobs that fail and are tried again by their own policy."""


LONG = Mix(steps=6, pause_s=0.15, stopped=0.12, deleted=0.2, retried=0.06)
SHORT = Mix(steps=2, pause_s=0.05, stopped=0.3, deleted=0.6, retried=0.25)
"""For crash points: each is passed at the beginning or the end of a job."""


class Chaos:
    """Submits jobs and watches them on a thread of its own, while the caller kills."""

    def __init__(self, house: House, seed: int, jobs: int) -> None:
        self.house = house
        self.dice = random.Random(seed)
        self.history = History()
        self.witness = Witness()
        self.witness.on_word = self._hear
        self.allowed = WIDTH
        """How many jobs may have been submitted by now."""
        self.stop_points: dict[str, int] = {}
        self.deleted: set[str] = set()
        self.mix = LONG
        self._jobs = jobs
        self._made = random.Random(seed + 1)
        self._states: dict[str, tuple[int, str]] = {}
        self._by_label: dict[str, str] = {}
        self._orders: dict[str, Order] = {}
        self._due: set[str] = set()
        self._closing = threading.Event()
        self._failure: BaseException | None = None
        self._client = house.client()
        self._code = self._client.upload("faults", PROGRAM)
        self._thread = threading.Thread(target=self._run, name="client", daemon=True)

    # the users

    def begin(self) -> None:
        self._thread.start()

    def finish(self) -> None:
        """Wait until every job has ended, and let go."""
        ends = time.monotonic() + HANG_S
        while not self.idle and time.monotonic() < ends and self._failure is None:
            self.mend()
            time.sleep(0.05)
        self._closing.set()
        self._thread.join(HANG_S)
        if self._failure is not None:
            raise self._failure
        self.history.words = list(self.witness.words)
        self.history.refusals += self._client.refusals
        self.witness.close()

    @property
    def idle(self) -> bool:
        """Whether every job has been submitted and has ended."""
        return len(self._orders) >= self._jobs and not self.live()

    @property
    def submitted(self) -> int:
        return len(self._orders)

    def live(self) -> list[str]:
        """Jobs that have not ended, as far as the client knows."""
        return [
            job for job in self._by_label.values() if self._states.get(job, (0, ""))[1] not in FINAL
        ]

    def more(self, count: int) -> None:
        """Let `count` jobs more be submitted."""
        self._jobs += count

    def _run(self) -> None:
        try:
            while not self._closing.wait(0.05):
                self._submit_some()
                self._look()
                self._stop_some()
        except BaseException as error:
            self._failure = error

    def _submit_some(self) -> None:
        while (
            len(self._orders) < min(self._jobs, self.allowed)
            and len(self.live()) < WIDTH
            and not self._closing.is_set()
        ):
            order = self._order(len(self._orders))
            self.history.orders.append(order)
            self._orders[order.label] = order
            self._submit(order)

    def _order(self, number: int) -> Order:
        dice = self._made
        steps = dice.randint(self.mix.steps, self.mix.steps * 2)
        stopped = dice.random() < self.mix.stopped
        retries = int(dice.random() < self.mix.retried)
        if stopped:
            self.stop_points[f"job-{number}"] = dice.randrange(steps)
        return Order(
            f"job-{number}",
            steps=steps,
            code=3 if retries or dice.random() < 0.05 else 0,
            retries=retries,
            tasks=2 if dice.random() < 0.06 else 1,
            stopped=stopped,
        )

    def _submit(self, order: Order) -> None:
        environments = {
            "WITNESS": str(self.witness.port),
            "LABEL": order.label,
            "STEPS": str(order.steps),
            "PAUSE": str(HOLD_S if order.stopped else self.mix.pause_s),
            "CODE": str(order.code),
        }
        body = create_body(order.label, self._code, environments, tasks=order.tasks)
        if order.retries:
            on = ["user-error", "platform", "node"]
            body["danlu"] |= {"retries": order.retries, "retry_on": on}
        job = str(self._client.call("POST", "jobs", body, token=order.label)["id"])
        self.history.accepted.append(Accepted(order.label, job))
        self._by_label[order.label] = job

    def _look(self) -> None:
        for shown in self._client.get("jobs?limit=100&sort_by=created_at")["jobs"]:
            job, found = str(shown["id"]), (int(shown["attempt"]), str(shown["state"]))
            if self._states.get(job) == found:
                continue
            self._states[job] = found
            self.history.looks.append(Look(job, *found))
            if found[1] in FINAL and self._made.random() < self.mix.deleted:
                self._delete(job, shown["name"])

    def _delete(self, job: str, label: str) -> None:
        """Send the submission again, as a client does that has lost the reply; then delete it."""
        self._submit(self._orders[label])
        with suppress(Refused):
            self._client.call("DELETE", f"jobs/{job}")
        self.deleted.add(job)

    def _stop_some(self) -> None:
        for label in list(self._due):
            self._due.discard(label)
            with suppress(Refused):  # it may have ended by itself
                self._client.call("POST", f"jobs/{self._by_label[label]}/stop")

    def _hear(self, word: Word) -> None:
        if word.kind == "step" and self.stop_points.get(word.label) == word.step:
            self._due.add(word.label)

    # the killer

    def mend(self) -> bool:
        """Start a server where there is none; whether there was none."""
        if self.house.alive():
            return False
        self.house.kill()  # the last of its threads may still be ending
        while True:
            self.house.start(wait=False)
            if self.house.await_ready():
                return True

    def kill_at_random(self, kills: int) -> None:
        """Kill so many processes, and let jobs be submitted in step with that."""
        share = self._jobs / max(1, kills)
        done = before = 0
        # A target that is not there yet is waited for: each kind is to have its share.
        target = self._next()
        while done < kills and self._failure is None:
            time.sleep(self.dice.uniform(0.0, 0.25))
            if self.idle:
                self._jobs += 1
            done += self._kill(target)
            if done > before:
                before = done
                target = self._next()
            self.mend()
            self.allowed = WIDTH + int(done * share)
            if done % 25 == 0:
                self.history.integrity.append(self.house.integrity())
        self.allowed = self._jobs

    def _next(self) -> str:
        targets = ("server", "starter", "agent", "shim", "both")
        return self.dice.choices(targets, (30, 5, 40, 20, 5))[0]

    def _kill(self, target: str) -> int:
        if target == "server":
            return self._kill_server()
        if target == "starter":
            starter = self.house.starter()
            return self._note(Kill("starter")) if starter and _shoot(starter) else 0
        if target == "both":
            return self._kill_server() + self._kill_task("agent")
        return self._kill_task(target)

    def _kill_server(self) -> int:
        self.house.kill()
        return self._note(Kill("server"))

    def _kill_task(self, kind: str) -> int:
        found = list(self.house.processes(kind))
        if not found:
            return 0
        job, attempt, victim = self.dice.choice(found)
        if not identity.send(victim, signal.SIGKILL):
            return 0
        return self._note(Kill(kind, job, attempt))

    def _note(self, kill: Kill) -> int:
        self.history.kills.append(kill)
        return 1

    def kill_at_points(self, times: int) -> Counter[str]:
        """Kill at every crash point so many times; how often each was hit."""
        self.mix = SHORT
        wanted = dict.fromkeys(OF_JOBS, times)
        ends = time.monotonic() + PATIENCE_S
        while any(wanted.values()) and self._failure is None and time.monotonic() < ends:
            self.mend()
            if self._take_hits(wanted):
                ends = time.monotonic() + PATIENCE_S
            self._arm(wanted)
            if len(self._orders) >= self._jobs:
                self._jobs += 1
                self.allowed = self._jobs
            time.sleep(0.02)
        for file in self.house.orders.iterdir():
            if file.name != HITS:
                file.unlink()
        self._take_hits(wanted)
        hits = Counter(kill.point for kill in self.history.kills if kill.point)
        return Counter({name: hits[name] for name in OF_JOBS})

    def _arm(self, wanted: dict[str, int]) -> None:
        """Have a few points armed, one order each: no task is to meet its agent's death often."""
        armed = {f.name for f in self.house.orders.iterdir() if f.stat().st_size and f.name != HITS}
        for group, most in (("agent.", 3), ("shim.", 2), ("", 3)):
            mine = [
                n for n in wanted if (n.split(".")[0] + "." in ("agent.", "shim.")) == bool(group)
            ]
            mine = [n for n in mine if n.startswith(group)]
            free = [n for n in mine if wanted[n] > 0 and n not in armed]
            count = most - len(armed.intersection(mine))
            for name in self.dice.sample(free, min(len(free), max(0, count))):
                draft = self.house.orders / f"{name}.draft"
                draft.write_text("kill\n")
                draft.rename(self.house.orders / name)

    def _take_hits(self, wanted: dict[str, int]) -> int:
        """Note the kills at points since the last time; how many there were."""
        hits = self.house.orders / HITS
        lines = hits.read_text().splitlines() if hits.exists() else []
        known = sum(1 for kill in self.history.kills if kill.point)
        for hit in lines[known:]:
            point, _, _, *subject = hit.split(" ", 3)
            job, attempt = _of_task(subject[0] if subject else "")
            target = point.split(".")[0]
            target = target if target in ("agent", "shim") else "server"
            self._note(Kill(target, job, attempt, point))
            wanted[point] = max(0, wanted[point] - 1)
        return len(lines) - known

    # what is left

    def close(self) -> None:
        """Let go of the server."""
        self._client.close()

    def remains(self) -> History:
        """The history with what is on disk at the end."""
        house, history = self.house, self.history
        deadline = time.monotonic() + 15
        while house.survivors() and time.monotonic() < deadline:
            time.sleep(0.1)
        history.survivors = house.survivors()
        history.integrity.append(house.integrity())
        with house.database() as database:
            jobs = database.execute("SELECT id, client_token, node_count FROM jobs").fetchall()
            for job, label, tasks in jobs:
                events = database.execute(
                    "SELECT key FROM events WHERE job_id = ? ORDER BY sequence", (job,)
                )
                history.remains.append(
                    Remains(
                        job,
                        label,
                        tuple(house.attempts(job)),
                        tuple(key for (key,) in events),
                        house.outputs(f"faults/{label}/"),
                        {} if job in self.deleted else self._logs(job, tasks),
                    )
                )
        return history

    def _logs(self, job: str, tasks: int) -> dict[int, bytes]:
        found = {}
        for task in range(tasks):
            with suppress(Refused):
                found[task] = self._client.read(f"jobs/{job}/tasks/worker-{task}/log")
        return found


def _shoot(process: identity.Process) -> bool:
    return identity.send_to(process, signal.SIGKILL)


def _of_task(directory: str) -> tuple[str, int]:
    """The job and attempt that a task directory's name tells."""
    job, _, rest = Path(directory).name.rpartition("-")
    job, _, attempt = job.rpartition("-")
    return (job, int(attempt)) if rest else ("", 0)


def run(
    root: Path, seed: int, *, jobs: int, kills: int, points: int
) -> tuple[History, Counter[str]]:
    """A whole run below `root`; its history, and how often each crash point was hit."""
    with opened(root) as house:
        chaos = Chaos(house, seed, jobs)
        chaos.begin()
        chaos.kill_at_random(kills)
        hits = chaos.kill_at_points(points) if points else Counter()
        chaos.finish()
        history = chaos.remains()
        chaos.close()
        return history, hits


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--points", type=int, default=20, help="times that each point is hit")
    parser.add_argument("--keep", default="", help="a directory for everything that the run left")
    asked = parser.parse_args()
    sys.stdout.write(f"seed {asked.seed}\n")
    sys.stdout.flush()
    root = Path(asked.keep or tempfile.mkdtemp(prefix="danlu-faults-"))
    began = time.monotonic()
    history, hits = run(root, asked.seed, jobs=asked.jobs, kills=asked.kills, points=asked.points)
    violations = check(history)
    for violation in violations:
        sys.stdout.write(f"{violation}\n")
    targets = Counter(kill.target for kill in history.kills)
    sys.stdout.write(
        f"{len(history.orders)} jobs, {len(history.kills)} kills {dict(targets)},"
        f" {min(hits.values(), default=0)} hits at least a point,"
        f" {len(violations)} violations, {time.monotonic() - began:.0f} s\n"
    )
    if not violations and not asked.keep:
        shutil.rmtree(root, ignore_errors=True)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
