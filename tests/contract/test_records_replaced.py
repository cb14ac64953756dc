"""A SQLite file whose schema changes: on a copy, which takes its place only when it is right."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from pathlib import Path

import pytest

from danlu.engines.memory import ManualClock
from danlu.model.errors import Refused, Unavailable
from danlu.ports.records import JobQuery
from danlu.stores.sql import replacing, schema
from danlu.stores.sql.migrate import migrate
from danlu.stores.sql.opening import open_records
from danlu.stores.sql.sqlite import Sqlite
from tests import mounts
from tests.contract.samples import WORKSPACE, Store, full_spec, submission, submitted
from tests.contract.schemas import NEXT, described, next_version

LAST = schema.REVISIONS[-1]
REVISIONS = (*schema.REVISIONS, NEXT)


def filled(folder: Path, jobs: int = 3) -> Sqlite:
    """A database of this version, with a write-ahead log that was never brought home."""
    store = Store(folder / "records.db", folder / "key", ManualClock())
    submitted(store.open(), *(submission(full_spec()) for _ in range(jobs)))
    store.close()
    return Sqlite(folder / "records.db")


def test_the_old_file_is_kept_and_an_older_program_is_told_of_it(tmp_path: Path) -> None:
    """(case 107) (fault 31) The way back is a file that is there, with everything in it."""
    database = filled(tmp_path)
    before = described(database.path)

    migrate(database, REVISIONS, next_version(tmp_path / "scripts"))

    kept = tmp_path / f"records.db.before-{LAST}"
    with pytest.raises(Refused) as refused:
        open_records(database.path, tmp_path / "key", ManualClock())
    assert str(kept) in str(refused.value)
    assert described(kept) == before
    records = open_records(kept, tmp_path / "key", ManualClock())
    assert records.jobs(WORKSPACE.id, JobQuery()).total == 3
    records.close()
    assert stat.S_IMODE(database.path.stat().st_mode) == 0o600
    left = {path.name for path in tmp_path.iterdir()} - {"scripts", "key"}
    assert {name for name in left if not name.startswith((kept.name, "records.db-"))} == {
        "records.db", "records.db.last"
    }  # fmt: skip


def test_a_disk_too_small_for_the_copy_is_told_in_bytes(tmp_path: Path) -> None:
    """Before anything is changed; and with room again it is done."""
    scripts = next_version(tmp_path / "scripts")
    with mounts.tmpfs(tmp_path / "disk", "size=16m") as disk:
        database = filled(disk)
        before = described(database.path)
        ballast = mounts.fill(disk)
        os.truncate(ballast, ballast.stat().st_size - (2 << 20))

        with pytest.raises(Refused) as refused:
            migrate(database, REVISIONS, scripts)

        assert (refused.value.key, refused.value.http) == ("migration-room", 507)
        assert int(str(refused.value.params["needed_bytes"])) > database.path.stat().st_size
        assert str(refused.value.params["needed_bytes"]) in str(refused.value)
        assert not list(disk.glob("*.migrating*"))
        ballast.unlink()
        assert described(database.path) == before
        migrate(database, REVISIONS, scripts)
        assert described(database.path) != before


def test_a_disk_that_fills_up_in_between_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program may take the room that was there a moment ago."""
    monkeypatch.setattr(replacing, "SPARE_BYTES", -(1 << 40))
    scripts = next_version(tmp_path / "scripts")
    with mounts.tmpfs(tmp_path / "disk", "size=16m") as disk:
        database = filled(disk)
        ballast = mounts.fill(disk)
        with pytest.raises(Refused) as refused:
            migrate(database, REVISIONS, scripts)
        assert refused.value.http == 507
        ballast.unlink()
        records = open_records(database.path, disk / "key", ManualClock())
        assert records.jobs(WORKSPACE.id, JobQuery()).total == 3
        records.close()


def test_a_migration_that_loses_something_is_not_put_in_place(tmp_path: Path) -> None:
    """Rows are counted before and after."""
    scripts = next_version(tmp_path / "scripts")
    step = scripts / "versions" / f"{NEXT}_colours.py"
    loss = '    op.execute("DELETE FROM events WHERE sequence = 1")'
    step.write_text(f"{step.read_text()}{loss}\n")
    database = filled(tmp_path)
    before = described(database.path)

    with pytest.raises(Refused) as refused:
        migrate(database, REVISIONS, scripts)

    assert refused.value.key == "migration-failed"
    assert "events: 6 rows became 5" in str(refused.value)
    assert described(database.path) == before
    assert [path.name for path in tmp_path.glob("records.db.*")] == ["records.db.last"]


def test_a_database_that_somebody_has_open_is_not_replaced_under_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they wrote then would be written to a file without a name."""
    monkeypatch.setattr(replacing, "WAIT_S", 0.2)
    scripts = next_version(tmp_path / "scripts")
    database = filled(tmp_path)
    with contextlib.closing(sqlite3.connect(database.path)) as other:
        assert other.execute("SELECT count(*) FROM jobs").fetchone() == (3,)
        with pytest.raises(Unavailable) as refused:
            migrate(database, REVISIONS, scripts)
    assert refused.value.key == "database-in-use"
    migrate(database, REVISIONS, scripts)
