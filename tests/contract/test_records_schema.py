"""Making and changing the schema: all or nothing, whoever else does it at the same time."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

import danlu
from danlu.engines.memory import ManualClock
from danlu.model.errors import Refused
from danlu.ports.records import EventQuery, Filter, JobQuery
from danlu.stores.sql import listing, moves, reads, schema, submissions
from danlu.stores.sql.migrate import SCRIPTS, migrate, upgrade
from danlu.stores.sql.opening import open_database, open_records
from danlu.stores.sql.records import SqlRecords
from tests.contract.samples import WORKSPACE, Store, full_spec, submission, submitted
from tests.contract.schemas import NEXT, described, emptied, next_version

WS = WORKSPACE.id
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def store(empty_store: Store) -> Store:
    return empty_store


def where(store: Store) -> str:
    return str(store.where)


def test_migrations_and_metadata_make_the_same_schema(store: Store) -> None:
    database = open_database(where(store))
    migrate(database)
    created = described(where(store))
    emptied(where(store))
    with database.engine() as core:
        upgrade(core)

    assert described(where(store)) == created
    kinds = {row[0] for row in created}
    assert {"index", "trigger", "revision"} <= kinds


def test_the_program_knows_every_revision_there_is() -> None:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    scripts = ScriptDirectory.from_config(config)

    found = [script.revision for script in scripts.walk_revisions()]

    assert tuple(reversed(found)) == schema.REVISIONS


def test_opening_a_new_or_a_current_database_does_not_import_alembic(store: Store) -> None:
    program = (
        "import sys; from pathlib import Path;"
        "from danlu.engines.memory import ManualClock;"
        "from danlu.stores.sql import open_records;"
        "open_records(sys.argv[1], Path(sys.argv[2]), ManualClock()).close();"
        "sys.exit('alembic' in sys.modules)"
    )
    for _ in range(2):
        command = [sys.executable, "-c", program, where(store), str(store.key_file)]
        assert subprocess.run(command, check=False, cwd=ROOT).returncode == 0


def test_an_older_database_is_brought_up_to_date_with_its_rows(
    store: Store, tmp_path: Path
) -> None:
    """(case 105) (case 109) By itself, in one transaction; the older program then refuses it."""
    scripts = next_version(tmp_path / "100 % new")
    wanted = submission(full_spec())
    submitted(store.open(), wanted)
    store.close()
    database = open_database(where(store))

    migrate(database, (*schema.REVISIONS, NEXT), scripts)

    with contextlib.closing(database.connect(writing=True)) as connection:
        assert connection.execute("SELECT colour FROM jobs").fetchall() == [("blue",)]
        assert connection.execute("SELECT id FROM shelves").fetchall() == [(wanted.job.id,)]
        assert database.revision(connection) == NEXT
    with pytest.raises(Refused) as refused:
        store.open()
    kept = "-kept" if store.is_sqlite else ""
    assert (refused.value.key, refused.value.params["found"]) == (f"database-newer{kept}", NEXT)
    assert refused.value.params["version"] == danlu.__version__
    migrate(database, (*schema.REVISIONS, NEXT), scripts)


def test_a_step_that_fails_changes_nothing(store: Store, tmp_path: Path) -> None:
    """(case 106) Neither its own statements nor those of the steps before it are left behind."""
    scripts = next_version(tmp_path / "broken")
    step = scripts / "versions" / f"{NEXT}_colours.py"
    step.write_text(step.read_text() + '    op.drop_table("nowhere")\n')
    submitted(store.open(), submission())
    store.close()
    before = described(where(store))

    with pytest.raises(Exception, match="nowhere"):
        migrate(open_database(where(store)), (*schema.REVISIONS, NEXT), scripts)

    assert described(where(store)) == before
    assert store.open().jobs(WS, JobQuery()).total == 1


@pytest.mark.long
@pytest.mark.parametrize("what", ["create", "upgrade"])
def test_a_migration_killed_at_any_statement_is_done_again(
    store: Store, tmp_path: Path, what: str
) -> None:
    """(case 106) (fault 30) SIGKILL as each statement begins: the old schema or the new one."""
    scripts = next_version(tmp_path / "scripts")
    program = [sys.executable, "-m", "tests.contract.killed_migration"]

    done = subprocess.run(
        [*program, what, where(store), str(SCRIPTS), str(scripts)],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=110,
    )

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > (30 if what == "create" else 10)


def test_many_openers_at_once_make_one_database(store: Store) -> None:
    """(case 105) (case 111) Whoever is later waits and finds it made."""
    start = threading.Barrier(8)
    opened: list[Any] = []
    failed: list[BaseException] = []

    def open_it() -> None:
        start.wait(60)
        try:
            opened.append(open_records(where(store), store.key_file, ManualClock()))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert failed == []
    for records in opened:
        submitted(records, submission())
    assert opened[0].jobs(WS, JobQuery()).total == 8
    for records in opened:
        records.close()


UPGRADE = """
import sys; from pathlib import Path
from danlu.stores.sql.migrate import migrate
from danlu.stores.sql.opening import open_database
import alembic.command
database = open_database(sys.argv[1])
print("ready", flush=True); sys.stdin.readline()
migrate(database, tuple(sys.argv[3:]), Path(sys.argv[2]))
"""


def test_two_upgrades_at_once_do_it_once(store: Store, tmp_path: Path) -> None:
    """(case 105) (case 111) Two processes, as after a restart of two servers."""
    scripts = next_version(tmp_path / "scripts")
    submitted(store.open(), submission())
    store.close()
    both = [
        subprocess.Popen(
            [sys.executable, "-c", UPGRADE, where(store), str(scripts), *schema.REVISIONS, NEXT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        for _ in range(2)
    ]
    for one in both:
        assert one.stdout is not None
        assert one.stdout.readline() == b"ready\n"
    for one in both:
        assert one.stdin is not None
        one.stdin.write(b"\n")
        one.stdin.flush()

    for one in both:
        with one:
            one.communicate(timeout=60)
        assert one.returncode == 0
    database = open_database(where(store))
    with contextlib.closing(database.connect(writing=True)) as connection:
        assert connection.execute("SELECT count(*) FROM shelves").fetchall() == [(1,)]
        assert database.revision(connection) == NEXT


def test_no_frequent_query_walks_through_a_table(tmp_path: Path) -> None:
    """An index serves each of them, so that they take as long with a million jobs as with ten."""
    store = Store(tmp_path / "records.db", tmp_path / "key", ManualClock())
    records = store.open()
    assert isinstance(records, SqlRecords)
    submitted(records, *(submission(token=f"t{i}") for i in range(200)))
    database = records._reads._database
    made = database.statements
    statements = [made[clause] for clause in (reads.JOB, reads.ATTEMPTS, reads.IDS, reads.UNSWEPT)]
    statements += [made[reads.LIVE], made[moves.KNOWN], made[submissions._BY_TOKEN[64]]]
    statements += [made[clause] for event in moves._UPDATES.values() for _, clause in event]
    for query in (
        JobQuery(),
        JobQuery(sort_by="name", descending=False),
        JobQuery((Filter("state", "in", ["running"]),)),
        JobQuery((Filter("name", "in", ["a"]),)),
        JobQuery((Filter("created_at", "between", [1, 2]),)),
    ):
        shape, _ = listing._shape(query)
        statements.append(listing.paging(made.dialect, shape))
        statements.append(listing.counting(made.dialect, shape.filters))
    statements.append(listing.telling(made.dialect, None, (False, False)))
    records.events(WS, records.live()[0].job.id, EventQuery())

    with contextlib.closing(database.connect(writing=False)) as connection:
        for statement in statements:
            empty = [None] * len(statement._names)
            plan = connection.execute(f"EXPLAIN QUERY PLAN {statement.sql}", empty).fetchall()
            for *_, step in plan:
                walks = step.startswith("SCAN") and "INDEX" not in step
                assert not walks or step in ("SCAN page", "SCAN found"), (step, statement.sql)
    store.close()
