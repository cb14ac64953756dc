"""Many callers at once, other processes, and what is left after an end: nothing lost, no locks."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from danlu.model.attempt import Event, State
from danlu.model.errors import Unavailable
from danlu.model.event import JobEvent
from danlu.model.identity import AccessKey, Secret, User
from danlu.ports.records import EventQuery, JobQuery, Move, Records
from danlu.stores.sql import postgres, sqlite, writer
from danlu.stores.sql.opening import open_database
from tests.contract.samples import (
    USER,
    WAIT,
    WORKSPACE,
    Store,
    full_spec,
    spec,
    submission,
    submitted,
)

WS = WORKSPACE.id
ROOT = Path(__file__).resolve().parents[2]

SECOND_WRITER = """
import sys
from pathlib import Path
from tests.contract.samples import *
where, key, count = sys.argv[1:]
where = where if "://" in where else Path(where)
store = Store(where, Path(key), ManualClock())
records = store.open()
print("open", flush=True)
sys.stdin.readline()
for _ in range(int(count)):
    wanted = submission(spec("second"))
    assert records.submit(wanted).result(60).created
    assert records.move(Move(wanted.attempt.key, Event.PLACE, 1)).result(60) is State.PLACED
store.close()
"""


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_hundred_threads_write_and_read(records: Records) -> None:
    """(case 103) (case 104) Not one of them meets a locked database."""
    start = threading.Barrier(100)

    def work(number: int) -> list[Any]:
        start.wait(WAIT)
        wanted = submission(spec(f"n{number}"), token=f"t{number % 50}")
        done = records.submit(wanted).result(WAIT)
        key = records.job(WS, done.job.id).attempt.key
        moved = records.move(Move(key, Event.PLACE, 1, (JobEvent(1, "job-placed"),))).result(WAIT)
        records.jobs(WS, JobQuery())
        return [done.created, moved]

    with ThreadPoolExecutor(100) as pool:
        found = list(pool.map(work, range(100)))

    assert sum(created for created, _ in found) == 50
    # Two threads share each job: one of them finds it placed already.
    assert sorted(str(moved) for _, moved in found) == ["None"] * 50 + ["placed"] * 50
    assert records.jobs(WS, JobQuery()).total == 50
    assert len(records.live()) == 50


def test_threads_come_and_go(store: Store) -> None:
    """A thread's connection goes with it."""
    records = store.open()
    submitted(records, submission())
    before = open_files()

    for _ in range(60):
        thread = threading.Thread(target=lambda: records.jobs(WS, JobQuery()))
        thread.start()
        thread.join(WAIT)

    assert open_files() < before + 20


def test_a_second_process_writes_the_same_database(store: Store) -> None:
    """(case 103) Both wait for each other; every row of both is there, numbered once."""
    records = store.open()
    count = 60
    arguments = [str(store.where), str(store.key_file), str(count)]
    second = subprocess.Popen(
        [sys.executable, "-c", SECOND_WRITER, *arguments],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert second.stdout is not None
    assert second.stdin is not None
    with second:
        assert second.stdout.readline() == b"open\n"
        second.stdin.write(b"go\n")
        second.stdin.close()
        for _ in range(count):
            wanted = submission(spec("first"))
            assert records.submit(wanted).result(WAIT).created
            moved = records.move(Move(wanted.attempt.key, Event.PLACE, 1)).result(WAIT)
            assert moved is State.PLACED

    assert second.returncode == 0
    page = records.jobs(WS, JobQuery(limit=1000))
    assert page.total == 2 * count
    assert {view.attempt.state for view in page.jobs} == {State.PLACED}
    assert len({view.job.sequence for view in page.jobs}) == 2 * count


def test_a_writer_of_another_program_is_waited_for(store: Store) -> None:
    """(case 103) A lock held for a moment delays a write and does not fail it."""
    records = store.open()
    other = open_database(store.where)
    connection = other.connect(writing=True)
    other.begin(connection)
    future = records.submit(submission())
    time.sleep(0.2)

    assert not future.done()
    assert records.jobs(WS, JobQuery()).total == 0, "reading does not wait"
    other.finish(connection)
    connection.close()
    assert future.result(WAIT).created


def test_a_lock_that_lasts_is_told_to_the_caller(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unavailable (try again), not an error of the server; the next write goes through."""
    monkeypatch.setattr(sqlite, "BUSY_S", 0.1)
    monkeypatch.setattr(postgres, "BUSY_S", 0.1)
    records = store.open()
    other = open_database(store.where)
    connection = other.connect(writing=True)
    other.begin(connection)

    futures = [records.submit(submission()) for _ in range(20)]

    for future in futures:
        with pytest.raises(Unavailable) as busy:
            future.result(WAIT)
        assert busy.value.retry
    other.undo(connection)
    connection.close()
    assert records.submit(submission()).result(WAIT).created
    assert records.jobs(WS, JobQuery()).total == 1


def test_too_many_waiting_writes_are_refused(
    records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MOST_WAITING", 0)

    with pytest.raises(Unavailable) as busy:
        records.submit(submission())

    assert busy.value.key == "busy"
    assert records.jobs(WS, JobQuery()).total == 0


def test_everything_is_there_after_a_restart(store: Store) -> None:
    records = store.open()
    records.add_workspace(WORKSPACE).result(WAIT)
    records.add_user(USER).result(WAIT)
    records.add_access_key(AccessKey("AK", Secret("sk"), USER)).result(WAIT)
    records.set_setting("k", "v").result(WAIT)
    key = submitted(records, submission(full_spec(), token="t"))[0]
    records.move(Move(key, Event.PLACE, 1)).result(WAIT)
    before = (
        records.job(WS, key.job_id),
        records.events(WS, key.job_id, EventQuery()),
        records.attempts(WS, key.job_id),
        records.workspaces(),
        records.user("alice"),
        records.setting("k"),
    )
    store.close()

    again = store.open()

    assert before == (
        again.job(WS, key.job_id),
        again.events(WS, key.job_id, EventQuery()),
        again.attempts(WS, key.job_id),
        again.workspaces(),
        again.user("alice"),
        again.setting("k"),
    )
    pair = again.access_key("AK")
    assert pair is not None
    assert pair.secret.reveal() == "sk"
    assert again.submit(submission()).result(WAIT).job.sequence > before[0].job.sequence


def test_close_writes_what_waits(store: Store) -> None:
    records = store.open()
    futures = [records.submit(submission()) for _ in range(300)]

    records.close()

    assert all(future.done() and future.result().created for future in futures)
    assert store.open().jobs(WS, JobQuery()).total == 300


CALLS: list[Callable[[Records], Any]] = [
    lambda records: records.submit(submission()),
    lambda records: records.job(WS, "x"),
    lambda records: records.jobs(WS, JobQuery()),
    lambda records: records.find(WS, "x"),
    lambda records: records.live(),
    lambda records: records.swept(),
    lambda records: records.user("x"),
    lambda records: records.setting("x"),
    lambda records: records.add_user(User("a", "b", "c", "d")),
    lambda records: records.first_use("sig", 1, 2),
    lambda records: records.forget("x"),
]


@pytest.mark.parametrize("call", range(len(CALLS)))
@pytest.mark.parametrize("used", [True, False])
def test_closed_records_say_so(store: Store, call: int, *, used: bool) -> None:
    records = store.open()
    if used:
        records.live()
    records.close()
    records.close()

    with pytest.raises(Unavailable) as closed:
        CALLS[call](records)

    assert closed.value.key == "records-closed"


def test_closing_closes_every_connection(store: Store) -> None:
    """Also those of threads that still live, which then get an answer and no crash."""
    before = open_files()
    records = store.open()
    submitted(records, submission())
    going, stop = threading.Semaphore(0), threading.Event()
    ended: list[BaseException] = []

    def read() -> None:
        try:
            while not stop.is_set():
                records.jobs(WS, JobQuery())
                going.release()
        except Unavailable as closed:
            ended.append(closed)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(80):
        assert going.acquire(timeout=WAIT)
    records.close()
    left = open_files()
    for thread in threads:
        thread.join(WAIT)
    stop.set()

    assert len(ended) == 8
    assert left <= before


def test_a_future_is_done_when_the_write_is_on_disk(store: Store) -> None:
    """What another process reads then, not only what this one remembers."""
    records = store.open()
    other = store.open()
    for _ in range(30):
        wanted = submission()
        records.submit(wanted).result(WAIT)
        assert other.job(WS, wanted.job.id).job.spec == wanted.job.spec


def test_a_failing_callback_does_not_stop_the_writer(records: Records) -> None:
    def broken(future: Future[Any]) -> None:
        raise ValueError("a caller's own mistake")

    first = records.submit(submission())
    first.add_done_callback(broken)

    assert first.result(WAIT).created
    assert records.submit(submission()).result(WAIT).created
