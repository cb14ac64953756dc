"""Records on a bad day: no space, no permission, damage, a server that hangs up."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.engines.memory import ManualClock
from danlu.model.attempt import Event
from danlu.model.errors import PlatformError, Refused, Unavailable
from danlu.ports.records import JobQuery, Move
from danlu.stores.sql.database import Connection
from danlu.stores.sql.migrate import migrate
from danlu.stores.sql.opening import open_database, open_records
from danlu.stores.sql.postgres import Postgres
from danlu.stores.sql.records import SqlRecords
from danlu.stores.sql.schema import REVISIONS
from danlu.stores.sql.secrets import KeyFile
from danlu.stores.sql.sqlite import Sqlite
from tests.contract.samples import WAIT, WORKSPACE, Store, full_spec, submission, submitted
from tests.postgres import Server
from tests.services import offered

WS = WORKSPACE.id
ROOT = Path(__file__).resolve().parents[2]


READ_ONLY = {True: "PRAGMA query_only = {}", False: "SET default_transaction_read_only = {}"}


def writing(records: object) -> Connection:
    """The writer's own connection, for what only it can be made to feel."""
    assert isinstance(records, SqlRecords)
    connection = records._writer._connection
    assert connection is not None
    return connection


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "records.db", tmp_path / "records.key", ManualClock())
    yield store
    store.close()


# ---------------------------------------------------------------- no space, no permission


def test_a_full_disk_is_told_and_passes(file: Store) -> None:
    """(fault 19) Every waiting write gets 507, reads go on, and writes work when space is back."""
    records = file.open()
    submitted(records, submission())
    writing(records).execute("PRAGMA max_page_count = 1")

    futures = [records.submit(submission(full_spec())) for _ in range(100)]
    problems = [problem for future in futures if (problem := future.exception(WAIT))]

    assert len(problems) > 50, "the first ones may fit into pages that are there"
    for full in problems:
        assert isinstance(full, Refused)
        assert (full.key, full.http) == ("disk-full", 507)
        assert str(file.where) in str(full)
    made = 1 + len(futures) - len(problems)
    assert records.jobs(WS, JobQuery()).total == made
    writing(records).execute("PRAGMA max_page_count = 1000000")
    assert records.submit(submission()).result(WAIT).created
    assert records.jobs(WS, JobQuery()).total == made + 1


FULL_DISK = """
import sys
from pathlib import Path
from danlu.model.errors import Refused
from tests.contract.samples import *

folder = Path(sys.argv[1])
(folder / "ballast").write_bytes(bytes(1 << 20))
store = Store(folder / "records.db", folder / "records.key", ManualClock())
records = store.open()
made = 0
try:
    for _ in range(10_000):
        records.submit(submission(full_spec())).result(60)
        made += 1
except Refused as full:
    assert full.http == 507, full
else:
    raise AssertionError("the disk never filled up")
assert records.jobs("ws", JobQuery()).total == made
(folder / "ballast").unlink()
assert records.submit(submission()).result(60).created
assert records.jobs("ws", JobQuery()).total == made + 1
store.close()
assert store.open().jobs("ws", JobQuery()).total == made + 1
store.close()
print("made", made)
"""


def test_a_disk_that_really_is_full(tmp_path: Path) -> None:
    """(fault 19) On a file system of 4 MiB, in a mount namespace of its own."""
    enter = ["unshare", "--map-root-user", "--mount"]
    able = (
        shutil.which("unshare")
        and not subprocess.run(
            [*enter, "mount", "-t", "tmpfs", "none", str(tmp_path)],
            check=False,
            capture_output=True,
        ).returncode
    )
    offered(able, "a mount namespace (unshare --map-root-user --mount)")
    script = tmp_path.parent / "full_disk.py"
    script.write_text("from danlu.ports.records import JobQuery\n" + FULL_DISK)
    line = 'mount -t tmpfs -o size=4m none "$1" && shift && exec "$@"'
    inside = [sys.executable, str(script), str(tmp_path)]

    done = subprocess.run(
        [*enter, "sh", "-c", line, "sh", str(tmp_path), *inside],
        check=False,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        timeout=100,
    )

    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[1]) > 10


def test_a_read_only_database_is_told_and_passes(store: Store) -> None:
    """(fault 22) Writes are refused with the reason, reads go on."""
    records = store.open()
    submitted(records, submission())
    read_only = READ_ONLY[store.is_sqlite]
    writing(records).execute(read_only.format("on"))

    with pytest.raises(Unavailable) as refused:
        records.submit(submission()).result(WAIT)

    assert refused.value.key == "database-read-only"
    assert records.jobs(WS, JobQuery()).total == 1
    writing(records).execute(read_only.format("off"))
    assert records.submit(submission()).result(WAIT).created


def test_a_signature_is_owed_until_it_is_on_disk(store: Store) -> None:
    """Its row could not be written: it goes along with the next write that can be."""
    records = store.open()
    now = store.clock.now()
    read_only = READ_ONLY[store.is_sqlite]
    writing(records).execute(read_only.format("on"))
    assert records.first_use("signed", now, now + 1000)
    with pytest.raises(Unavailable):
        records.submit(submission()).result(WAIT)
    assert not records.first_use("signed", now, now + 1000)
    assert seen(store) == 0
    writing(records).execute(read_only.format("off"))

    records.submit(submission()).result(WAIT)

    assert seen(store) == 1
    assert not store.open().first_use("signed", now, now + 1000)


def seen(store: Store) -> int:
    """How many signatures are on disk."""
    with contextlib.closing(open_database(store.where).connect(writing=False)) as connection:
        count: int = connection.execute("SELECT count(*) FROM signatures").fetchall()[0][0]
    return count


class DiskGone(Sqlite):
    """The disk reports that it did not keep what was written."""

    def finish(self, connection: Connection) -> None:
        self.undo(connection)
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        raise error


class WriteFails(Sqlite):
    """The disk answers the next writes of a commit with EIO."""

    failures = 0

    def finish(self, connection: Connection) -> None:
        if self.failures:
            self.failures -= 1
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
            raise error
        super().finish(connection)


def test_an_error_of_the_disk_at_a_write_undoes_the_group_and_passes(tmp_path: Path) -> None:
    """(fault 23) 503 for each of them, nothing half stored; the next write is like any other."""
    database = WriteFails(tmp_path / "records.db")
    migrate(Sqlite(database.path))
    ended: list[PlatformError] = []
    records = SqlRecords(database, KeyFile(tmp_path / "key"), ManualClock(), ended.append)
    try:
        database.failures = 1
        failed = records.submit(submission()).exception(WAIT)
        assert isinstance(failed, Unavailable)
        assert (failed.key, failed.http) == ("database-unreachable", 503)
        assert records.jobs(WS, JobQuery()).total == 0
        assert records.submit(submission()).result(WAIT).created
        assert records.jobs(WS, JobQuery()).total == 1
        assert ended == []
    finally:
        records.close()


class Watched(Sqlite):
    """Knows whether its writer is inside a transaction."""

    inside: int | None = None

    def begin(self, connection: Connection) -> None:
        super().begin(connection)
        self.inside = threading.get_ident()

    def finish(self, connection: Connection) -> None:
        super().finish(connection)
        self.inside = None

    def undo(self, connection: Connection) -> None:
        super().undo(connection)
        self.inside = None


def test_nothing_is_called_over_a_network_inside_a_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(case 104) Nor is a process started there: a slow one would hold up every writer."""
    database = Watched(tmp_path / "records.db")
    migrate(Sqlite(database.path))
    called: list[str] = []
    seen: list[bool] = []

    def audited(event: str, _: object) -> None:
        if event in CALLS and database.inside == threading.get_ident():
            called.append(event)

    sys.addaudithook(audited)
    finish = Watched.finish

    def noting(self: Watched, connection: Connection) -> None:
        seen.append(self.inside == threading.get_ident())
        finish(self, connection)

    monkeypatch.setattr(Watched, "finish", noting)
    records = SqlRecords(database, KeyFile(tmp_path / "key"), ManualClock())
    try:
        (key,) = submitted(records, submission())
        for event in (Event.PLACE, Event.LAUNCH, Event.STARTED, Event.EXITED, Event.OK):
            records.move(Move(key, event, 1)).result(WAIT)
        records.delete(WS, key.job_id).result(WAIT)
        records.add_workspace(WORKSPACE).result(WAIT)
        records.set_setting("a", "b").result(WAIT)
    finally:
        records.close()
        database.inside = None
    assert called == []
    assert seen
    assert all(seen)


CALLS = frozenset(
    {"socket.connect", "socket.getaddrinfo", "socket.sendto", "subprocess.Popen", "os.fork"}
)


def test_a_chore_that_meets_a_failed_fsync_ends_the_server_too(tmp_path: Path) -> None:
    """(fault 23) Nobody waits for it, so nobody else would hear of it."""
    clock, told = ManualClock(), threading.Event()
    database = Sqlite(tmp_path / "records.db")
    migrate(database)
    writes = 0

    class SecondGone(DiskGone):
        def finish(self, connection: Connection) -> None:
            nonlocal writes
            writes += 1
            (Sqlite if writes == 1 else DiskGone).finish(self, connection)

    keys = KeyFile(tmp_path / "key")
    records = SqlRecords(SecondGone(database.path), keys, clock, lambda _: told.set())
    try:
        clock.advance(1000)
        assert records.submit(submission()).result(WAIT).created
        assert told.wait(WAIT)
    finally:
        records.close()


def test_after_a_failed_fsync_nothing_is_acknowledged_any_more(tmp_path: Path) -> None:
    """(fault 23) The kernel may call the same pages written the next time it is asked."""
    database = DiskGone(tmp_path / "records.db")
    migrate(Sqlite(database.path))
    ended: list[PlatformError] = []
    told = threading.Event()

    def end(problem: PlatformError) -> None:
        ended.append(problem)
        told.set()

    records = SqlRecords(database, KeyFile(tmp_path / "key"), ManualClock(), end)
    try:
        with pytest.raises(Unavailable) as failed:
            records.submit(submission()).result(WAIT)
        assert failed.value.key == "database-failed"
        assert told.wait(WAIT)
        assert [problem.key for problem in ended] == ["database-failed"]
        with pytest.raises(Unavailable) as later:
            records.submit(submission())
        assert later.value.key == "database-failed"
        assert records.jobs(WS, JobQuery()).total == 0
    finally:
        records.close()


# ---------------------------------------------------------------- what is opened


@pytest.mark.parametrize(
    "content", [b"not a database at all, only text" * 40, b"SQLite format 3\0junk"]
)
def test_a_file_that_is_no_database_is_refused(file: Store, content: bytes) -> None:
    Path(file.where).write_bytes(content)

    with pytest.raises(Refused) as refused:
        file.open()

    assert refused.value.key == "database-damaged"
    assert Path(file.where).read_bytes() == content


def test_a_damaged_page_stops_the_start(file: Store) -> None:
    """(fault 26) Found before anything is built upon it."""
    records = file.open()
    submitted(records, *(submission(full_spec()) for _ in range(200)))
    file.close()
    path = Path(file.where)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 8192] = bytes(b"\xa5" * 8192)
    path.write_bytes(content)

    with pytest.raises(Refused) as refused:
        file.open()

    assert refused.value.key == "database-damaged"
    assert str(path) in str(refused.value)
    assert "danlu restore" in str(refused.value)


def test_a_database_of_another_program_is_left_alone(file: Store) -> None:
    with contextlib.closing(sqlite3.connect(file.where)) as other:
        other.execute("CREATE TABLE moz_places (id INTEGER)")
        other.commit()

    with pytest.raises(Refused) as refused:
        file.open()

    assert refused.value.key == "database-foreign"


def test_a_newer_database_is_refused_with_both_versions(store: Store) -> None:
    """(case 107) And stays as it was."""
    submitted(store.open(), submission())
    store.close()
    database = open_database(store.where)
    ahead = "UPDATE danlu_revision SET version_num = '9999'"
    with contextlib.closing(database.connect(writing=True)) as connection:
        connection.execute(ahead)

    with pytest.raises(Refused) as refused:
        store.open()

    assert refused.value.key == "database-newer"
    assert refused.value.params["found"] == "9999"
    assert "9999" in str(refused.value)
    with contextlib.closing(database.connect(writing=True)) as connection:
        connection.execute(ahead.replace("9999", REVISIONS[-1]))
    assert store.open().jobs(WS, JobQuery()).total == 1


def test_a_directory_that_is_not_there_is_made_and_closed_to_others(tmp_path: Path) -> None:
    where = tmp_path / "a b" / "数据" / "records.db"
    records = open_records(str(where), where.with_name("key"), ManualClock())
    records.close()

    assert where.stat().st_mode & 0o777 == 0o600
    assert where.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("where", ["/proc/no/such/records.db", "/dev/null/records.db"])
def test_a_place_that_cannot_be_is_told(where: str, tmp_path: Path) -> None:
    with pytest.raises(PlatformError) as refused:
        open_records(where, tmp_path / "key", ManualClock())

    assert where in str(refused.value)


def test_a_server_that_is_not_there_is_told_without_its_password(tmp_path: Path) -> None:
    url = f"postgresql://danlu:canary-word@/records?host={tmp_path}"
    with pytest.raises(Unavailable) as refused:
        open_records(url, tmp_path / "key", ManualClock())

    assert refused.value.key == "database-unreachable"
    assert "canary-word" not in str(refused.value)
    assert "records" in str(refused.value)


def test_a_url_that_cannot_be_read_is_told_without_its_password(tmp_path: Path) -> None:
    with pytest.raises(PlatformError) as refused:
        open_records("postgresql://danlu:canary-word@h:port:x/%zz", tmp_path / "key", ManualClock())

    assert "canary-word" not in str(refused.value)


# ---------------------------------------------------------------- PostgreSQL hangs up

HANG_UP = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = 'danlu' AND pid <> pg_backend_pid()"""


@pytest.mark.postgres
def test_a_server_that_hung_up_is_called_again(postgres_server: Server, tmp_path: Path) -> None:
    """A restart of the server costs nothing but the connections."""
    store = Store(postgres_server.empty(), tmp_path / "key", ManualClock())
    records = store.open()
    submitted(records, submission())
    assert records.jobs(WS, JobQuery()).total == 1
    database = open_database(store.where)
    with contextlib.closing(database.connect(writing=True)) as other:
        other.execute(HANG_UP)

    assert records.jobs(WS, JobQuery()).total == 1
    assert records.submit(submission()).result(WAIT).created
    assert records.jobs(WS, JobQuery()).total == 2
    store.close()


class LineCut(Postgres):
    """The line is cut while the first commit is on its way."""

    cut = False

    def finish(self, connection: Connection) -> None:
        if not self.cut:
            self.cut = True
            connection.close()
        super().finish(connection)


@pytest.mark.postgres
def test_a_commit_whose_answer_is_lost_is_not_done_twice(
    postgres_server: Server, tmp_path: Path
) -> None:
    """(fault 36) The caller is told to try again; its client token keeps that from doubling."""
    url = postgres_server.empty()
    migrate(Postgres(url))
    records = SqlRecords(LineCut(url), KeyFile(tmp_path / "key"), ManualClock())
    wanted = submission(token="t")
    try:
        with pytest.raises(Unavailable):
            records.submit(wanted).result(WAIT)
        assert records.submit(wanted).result(WAIT).job.id == wanted.job.id
        assert records.jobs(WS, JobQuery()).total == 1
    finally:
        records.close()
