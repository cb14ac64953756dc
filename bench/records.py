"""The records: durable submits and moves a second, and reading one job among many.

    python bench/records.py [--sizes 10,1000,10000,100000] [--pairs 5] [--json FILE]

Every figure stands beside its floor, measured in turn with it in the same run: a bare sqlite3
connection that stores (or finds) one row of the same size with the same durability.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from danlu.model.attempt import Attempt, AttemptKey, Event, State
from danlu.model.codec import to_json
from danlu.model.event import JobEvent
from danlu.model.job import Input, Job, JobSpec, Output, Parameter, Task
from danlu.model.resources import Shape
from danlu.model.url import ObjectUrl
from danlu.ports.records import EventQuery, JobQuery, Move, Submission
from danlu.stores.sql.opening import open_records
from danlu.stores.sql.records import SqlRecords

WORKSPACE = "bench"
READS = 2000


class WallClock:
    """The machine's own time."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


def submission() -> Submission:
    """A job as the CLI sends one: code, a parameter, an input, an output."""
    job_id, now = str(uuid.uuid4()), WallClock().now()
    spec = JobSpec(
        name=f"train-{job_id[:8]}",
        flavor="danlu.cpu.2u",
        shape=Shape(2, 8 << 30),
        code=ObjectUrl("danlu", f"code/{job_id}/"),
        boot_file="train.py",
        parameters=(Parameter("epochs", "3"), Parameter("lr", "0.1")),
        inputs=(Input("data", ObjectUrl("danlu", "data/fashion/")),),
        outputs=(Output("model", ObjectUrl("danlu", f"out/{job_id}/")),),
    )
    return Submission(
        Job(job_id, WORKSPACE, spec, now, "admin", client_token=uuid.uuid4().hex),
        Attempt(AttemptKey(job_id, 1, uuid.uuid4().hex), State.QUEUED, now),
        (JobEvent(now, "job-submitted", {"user": "admin"}), JobEvent(now, "job-queued")),
    )


class Floor:
    """One table in SQLite with the same settings, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.connection = sqlite3.connect(folder / "floor.db", isolation_level=None)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        self.connection.execute("CREATE TABLE jobs (id TEXT PRIMARY KEY, spec TEXT)")
        self.spec = json.dumps(to_json(submission().job.spec))
        self.ids: list[str] = []

    def store(self, count: int, *, together: bool) -> None:
        if together:
            self.connection.execute("BEGIN IMMEDIATE")
        for _ in range(count):
            self.ids.append(str(uuid.uuid4()))
            self.connection.execute("INSERT INTO jobs VALUES (?, ?)", (self.ids[-1], self.spec))
        if together:
            self.connection.execute("COMMIT")

    def find(self, job_id: str) -> Any:
        found = self.connection.execute("SELECT * FROM jobs WHERE id = ?", (job_id,))
        return json.loads(found.fetchall()[0][1])


@contextmanager
def opened() -> Iterator[tuple[SqlRecords, Floor]]:
    with tempfile.TemporaryDirectory(prefix="danlu-bench-") as name:
        folder = Path(name)
        records = open_records(folder / "records.db", folder / "records.key", WallClock())
        assert isinstance(records, SqlRecords)
        floor = Floor(folder)
        yield records, floor
        records.close()
        floor.connection.close()


def rate(count: int, action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return count / (time.perf_counter() - began)


def writer_cpu(records: SqlRecords) -> float:
    """Seconds of CPU that the writing thread has used so far."""
    ident = records._writer._thread.ident  # noqa: SLF001  # a measurement looks inside
    assert ident is not None
    return time.clock_gettime(time.pthread_getcpuclockid(ident))


def show(name: str, ours: list[float], floor: list[float], unit: str) -> dict[str, Any]:
    """Print both medians, their spread, and the median of the ratios pair by pair."""
    ratios = [a / b for a, b in zip(ours, floor, strict=True)]
    row = {
        "name": name,
        "unit": unit,
        "ours": statistics.median(ours),
        "floor": statistics.median(floor),
        "ratio": statistics.median(ratios),
        "spread": [min(ratios), max(ratios)],
    }
    print(
        f"{name:42} {row['ours']:10,.0f} {row['floor']:10,.0f} {unit:8}"
        f" ratio {row['ratio']:5.2f}  ({min(ratios):.2f}–{max(ratios):.2f})"
    )
    return row


def submits(pairs: int) -> list[dict[str, Any]]:
    rows = []
    with opened() as (records, floor):
        alone: list[float] = []
        bare: list[float] = []
        for _ in range(pairs + 1):
            waiting = [submission() for _ in range(150)]
            alone.append(rate(150, lambda w=waiting: [records.submit(s).result() for s in w]))
            bare.append(rate(150, lambda: floor.store(150, together=False)))
        rows.append(show("durable submits, one at a time", alone[1:], bare[1:], "/s"))
        grouped: list[float] = []
        bare = []
        cpu: list[float] = []
        for _ in range(pairs + 1):
            waiting = [submission() for _ in range(2000)]
            before = writer_cpu(records)
            grouped.append(rate(2000, lambda w=waiting: together(records, w)))
            cpu.append((writer_cpu(records) - before) / 2000 * 1e6)
            bare.append(rate(2000, lambda: floor.store(2000, together=True)))
        rows.append(show("durable submits, as fast as they are taken", grouped[1:], bare[1:], "/s"))
        print(f"{'':42} {statistics.median(cpu[1:]):10,.0f} µs of the writer's CPU a submit")
        rows.append(
            {"name": "writer CPU a submit", "unit": "µs", "ours": statistics.median(cpu[1:])}
        )
    return rows


def together(records: SqlRecords, waiting: list[Submission]) -> None:
    futures = [records.submit(one) for one in waiting]
    for future in futures:
        future.result()


def beside_a_busy_loop(pairs: int) -> list[dict[str, Any]]:
    """The writer's rate while another thread holds the interpreter as an event loop does."""
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            until = time.perf_counter() + 150e-6
            while time.perf_counter() < until:
                pass
            time.sleep(0)

    with opened() as (records, _):
        free: list[float] = []
        beside: list[float] = []
        for _ in range(pairs + 1):
            free.append(
                rate(1000, lambda w=[submission() for _ in range(1000)]: together(records, w))
            )
            stop.clear()
            thread = threading.Thread(target=spin)
            waiting = [submission() for _ in range(1000)]
            thread.start()
            beside.append(rate(1000, lambda w=waiting: together(records, w)))
            stop.set()
            thread.join()
        return [show("submits beside a busy loop / alone", beside[1:], free[1:], "/s")]


def moves(pairs: int) -> list[dict[str, Any]]:
    rows = []
    with opened() as (records, floor):
        for name, count, one_by_one in (("one at a time", 100, True), ("grouped", 1000, False)):
            ours: list[float] = []
            bare: list[float] = []
            for _ in range(pairs + 1):
                jobs = [submission() for _ in range(count)]
                together(records, jobs)
                wanted = [place(one.attempt.key) for one in jobs]
                ours.append(
                    rate(count, lambda w=wanted, o=one_by_one: moved(records, w, one_by_one=o))
                )
                bare.append(
                    rate(count, lambda n=count, o=one_by_one: floor.store(n, together=not o))
                )
            rows.append(show(f"durable moves, {name}", ours[1:], bare[1:], "/s"))
    return rows


def place(key: AttemptKey) -> Move:
    now = WallClock().now()
    said = JobEvent(now, "job-placed", {"nodes": "this"})
    return Move(key, Event.PLACE, now, (said,), tasks=(Task(0, "this"),))


def moved(records: SqlRecords, wanted: list[Move], *, one_by_one: bool) -> None:
    if one_by_one:
        assert all(records.move(one).result() is State.PLACED for one in wanted)
        return
    futures = [records.move(one) for one in wanted]
    assert all(future.result() is State.PLACED for future in futures)


def timed(values: list[str], action: Callable[[str], object]) -> float:
    """The median time of `action` on one of `values`, in microseconds."""
    taken = []
    for value in values:
        began = time.perf_counter_ns()
        action(value)
        taken.append((time.perf_counter_ns() - began) / 1e3)
    return statistics.median(taken)


def reads(sizes: list[int], pairs: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    with opened() as (records, floor):
        ids: list[str] = []
        first: dict[str, float] = {}
        for size in sizes:
            while len(ids) < size:
                more = [submission() for _ in range(min(2000, size - len(ids)))]
                together(records, more)
                ids += [one.job.id for one in more]
                floor.store(len(more), together=True)
            at = random.Random(size)  # a seed: the same jobs every time
            page = JobQuery()
            ours: dict[str, list[float]] = {"job": [], "page of 50": [], "events": []}
            bare: list[float] = []
            for _ in range(pairs):
                picked = [at.choice(ids) for _ in range(READS // 4)]
                ours["job"].append(timed(picked, lambda i: records.job(WORKSPACE, i)))
                found = [at.choice(floor.ids) for _ in range(READS // 4)]
                bare.append(timed(found, floor.find))
                ours["page of 50"].append(
                    timed(picked[:40], lambda _: records.jobs(WORKSPACE, page))
                )
                ours["events"].append(
                    timed(picked, lambda i: records.events(WORKSPACE, i, EventQuery()))
                )
            for name, values in ours.items():
                row = show(f"{name}, {size:,} jobs recorded", values, bare, "µs")
                row["growth"] = row["ours"] / first.setdefault(name, row["ours"])
                print(f"{'':42} {row['growth']:10.2f} × the time with {sizes[0]:,} jobs")
                rows.append(row)
            began = time.perf_counter()
            live = len(records.live())
            print(f"{'':42} live(): {live:,} jobs in {time.perf_counter() - began:.3f} s")
    return rows


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--sizes", default="10,1000,10000,100000")
    arguments.add_argument("--pairs", type=int, default=5)
    arguments.add_argument("--json", type=Path)
    chosen = arguments.parse_args()
    print(f"{'figure':42} {'ours':>10} {'floor':>10}          SQLite {sqlite3.sqlite_version}")
    rows = [
        *submits(chosen.pairs),
        *beside_a_busy_loop(chosen.pairs),
        *moves(chosen.pairs),
        *reads([int(size) for size in chosen.sizes.split(",")], chosen.pairs),
    ]
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
