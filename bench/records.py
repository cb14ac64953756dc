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
from danlu.ports.records import EventQuery, Filter, JobQuery, Move, Submission
from danlu.stores.sql.opening import open_records
from danlu.stores.sql.records import SqlRecords

WORKSPACE = "bench"
READS = 500


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

    def store(self, count: int) -> None:
        for _ in range(count):
            self.ids.append(str(uuid.uuid4()))
            self.connection.execute("INSERT INTO jobs VALUES (?, ?)", (self.ids[-1], self.spec))

    def store_together(self, count: int) -> None:
        self.connection.execute("BEGIN IMMEDIATE")
        self.store(count)
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


def rate(count: int, action: Callable[..., object], *arguments: Any) -> float:
    began = time.perf_counter()
    action(*arguments)
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
        f"{name:44} {row['ours']:10,.0f} {row['floor']:10,.0f} {unit:4}"
        f" ratio {row['ratio']:6.2f}  ({min(ratios):.2f}–{max(ratios):.2f})"
    )
    return row


def say(name: str, value: float, unit: str) -> dict[str, Any]:
    print(f"{name:44} {value:10,.2f} {unit}")
    return {"name": name, "unit": unit, "ours": value}


def one_by_one(records: SqlRecords, waiting: list[Submission]) -> None:
    for one in waiting:
        records.submit(one).result()


def together(records: SqlRecords, waiting: list[Submission]) -> None:
    futures = [records.submit(one) for one in waiting]
    for future in futures:
        future.result()


def submits(pairs: int) -> list[dict[str, Any]]:
    alone: list[float] = []
    bare: list[float] = []
    grouped: list[float] = []
    bare_grouped: list[float] = []
    writer: list[float] = []
    caller: list[float] = []
    with opened() as (records, floor):
        for _ in range(pairs + 1):
            alone.append(rate(150, one_by_one, records, [submission() for _ in range(150)]))
            bare.append(rate(150, floor.store, 150))
        for _ in range(pairs + 1):
            waiting = [submission() for _ in range(2000)]
            before, own = writer_cpu(records), time.thread_time()
            grouped.append(rate(2000, together, records, waiting))
            writer.append((writer_cpu(records) - before) / 2000 * 1e6)
            caller.append((time.thread_time() - own) / 2000 * 1e6)
            bare_grouped.append(rate(2000, floor.store_together, 2000))
    return [
        show("durable submits, one at a time", alone[1:], bare[1:], "/s"),
        show("durable submits, as fast as they come", grouped[1:], bare_grouped[1:], "/s"),
        say("  the writer's CPU a submit", statistics.median(writer[1:]), "µs"),
        say("  the caller's CPU a submit", statistics.median(caller[1:]), "µs"),
    ]


def spin(stop: threading.Event) -> None:
    """Hold the interpreter as a busy event loop does: 150 µs at a time."""
    while not stop.is_set():
        until = time.perf_counter() + 150e-6
        while time.perf_counter() < until:
            pass
        time.sleep(0)


def beside_a_busy_loop(pairs: int) -> list[dict[str, Any]]:
    """The rate while another thread holds the interpreter as an event loop does."""
    free: list[float] = []
    beside: list[float] = []
    with opened() as (records, _):
        for _ in range(pairs + 1):
            free.append(rate(1000, together, records, [submission() for _ in range(1000)]))
            waiting = [submission() for _ in range(1000)]
            stop = threading.Event()
            thread = threading.Thread(target=spin, args=(stop,))
            thread.start()
            beside.append(rate(1000, together, records, waiting))
            stop.set()
            thread.join()
    return [show("submits beside a busy loop; floor: alone", beside[1:], free[1:], "/s")]


def place(key: AttemptKey) -> Move:
    now = WallClock().now()
    said = JobEvent(now, "job-placed", {"nodes": "this"})
    return Move(key, Event.PLACE, now, (said,), tasks=(Task(0, "this"),))


def moved_alone(records: SqlRecords, wanted: list[Move]) -> None:
    assert all(records.move(one).result() is State.PLACED for one in wanted)


def moved_together(records: SqlRecords, wanted: list[Move]) -> None:
    futures = [records.move(one) for one in wanted]
    assert all(future.result() is State.PLACED for future in futures)


def moves(pairs: int) -> list[dict[str, Any]]:
    """A move is a guarded UPDATE, an event and a task."""
    rows = []
    with opened() as (records, floor):
        for name, count, ours, bare in (
            ("durable moves, one at a time", 100, moved_alone, floor.store),
            ("durable moves, as fast as they come", 1000, moved_together, floor.store_together),
        ):
            mine: list[float] = []
            base: list[float] = []
            for _ in range(pairs + 1):
                jobs = [submission() for _ in range(count)]
                together(records, jobs)
                mine.append(rate(count, ours, records, [place(one.attempt.key) for one in jobs]))
                base.append(rate(count, bare, count))
            rows.append(show(name, mine[1:], base[1:], "/s"))
    return rows


def timed(values: list[str], action: Callable[[str], object]) -> float:
    """The median time of `action` on one of `values`, in microseconds."""
    taken = []
    for value in values:
        began = time.perf_counter_ns()
        action(value)
        taken.append((time.perf_counter_ns() - began) / 1e3)
    return statistics.median(taken)


def reads(sizes: list[int], pairs: int) -> list[dict[str, Any]]:
    """Every size in one database that grows; half of its jobs have ended."""
    rows: list[dict[str, Any]] = []
    first: dict[str, float] = {}
    ids: list[str] = []
    running = JobQuery((Filter("state", "in", ["queued"]),))
    with opened() as (records, floor):
        asked: dict[str, Callable[[str], object]] = {
            "job": lambda job_id: records.job(WORKSPACE, job_id),
            "events": lambda job_id: records.events(WORKSPACE, job_id, EventQuery()),
            "find": lambda job_id: records.find(WORKSPACE, job_id[:8]),
            "page of 50": lambda _: records.jobs(WORKSPACE, JobQuery()),
            "page of 50 by state": lambda _: records.jobs(WORKSPACE, running),
        }
        for size in sizes:
            grow(records, floor, ids, size)
            at = random.Random(size)  # the same jobs every time
            ours: dict[str, list[float]] = {name: [] for name in asked}
            bare: list[float] = []
            for _ in range(pairs):
                for name, action in asked.items():
                    count = 40 if name.startswith("page") else READS
                    ours[name].append(timed([at.choice(ids) for _ in range(count)], action))
                bare.append(timed([at.choice(floor.ids) for _ in range(READS)], floor.find))
            for name, values in ours.items():
                row = show(f"{name}, {size:,} jobs", values, bare, "µs")
                row["growth"] = row["ours"] / first.setdefault(name, row["ours"])
                rows.append(row)
            began = time.perf_counter()
            live = len(records.live())
            rows.append(say(f"live(), {live:,} jobs", (time.perf_counter() - began) * 1e3, "ms"))
    for row in rows:
        if "growth" in row:
            print(f"{row['name']:44} {row['growth']:10.2f} × the time with {sizes[0]:,} jobs")
    return rows


def grow(records: SqlRecords, floor: Floor, ids: list[str], size: int) -> None:
    while len(ids) < size:
        more = [submission() for _ in range(min(2000, size - len(ids)))]
        together(records, more)
        stops = [Move(one.attempt.key, Event.STOP, 1) for one in more[::2]]
        for future in [records.move(stop) for stop in stops]:
            future.result()
        ids += [one.job.id for one in more]
        floor.store_together(len(more))


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    arguments.add_argument("--sizes", default="10,1000,10000,100000")
    arguments.add_argument("--pairs", type=int, default=5)
    arguments.add_argument("--json", type=Path)
    chosen = arguments.parse_args()
    print(f"{'figure':44} {'ours':>10} {'floor':>10}       SQLite {sqlite3.sqlite_version}")
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
