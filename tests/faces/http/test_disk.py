"""What clients see when the server's disk is full, read-only or held by somebody else."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from pathlib import Path

import pytest

from danlu.engines.memory_script import Script
from danlu.stores.sql import sqlite
from danlu.stores.sql.records import SqlRecords
from tests import mounts
from tests.faces.http.live import Answer, Live, create_body, live


def submit(served: Live, name: str) -> Answer:
    return served.call("POST", "/v2/{p}/training-jobs", create_body(name))


def test_a_full_disk_refuses_submits_and_nothing_else(tmp_path: Path) -> None:
    """(fault 19) 507 with the path and the bytes; reads and ends go on; it recovers by itself."""
    with mounts.tmpfs(tmp_path / "disk", "size=64m") as disk, live(disk / "data") as served:
        served.script("long", Script(duration_s=None, on_term_s=0))
        running = served.submit("long")
        served.until(running, "running")
        ballast = mounts.fill(disk)
        answer = submit(served, "more")
        while answer.status == 201:
            answer = submit(served, "more")

        assert (answer.status, answer.key) == (507, "disk-full")
        assert str(disk / "data" / "danlu.sqlite") in answer.json["error_msg"]
        assert "bytes are free" in answer.json["error_msg"]
        health = served.call("GET", "/danlu/v1/health").json
        assert (health["status"], health["problem"]) == ("degraded", "disk-full")
        assert "is full" in served.call("GET", "/danlu/v1/{p}/status").json["problem"]
        stop = served.call("POST", f"/v2/{{p}}/training-jobs/{running}/actions",
                           {"action_type": "terminate"})  # fmt: skip
        assert stop.status == 202
        ended = served.until(running, "cancelled")
        assert ended["reason"]["code"] == "stopped"
        assert submit(served, "one-more").status == 507

        ballast.unlink()

        assert submit(served, "after").status == 201
        health = served.call("GET", "/danlu/v1/health").json
        assert (health["status"], health["problem"]) == ("ok", "")


def test_what_waits_says_that_the_disk_is_full_and_starts_when_it_is_not(tmp_path: Path) -> None:
    """(fault 19) A job that was accepted is not started into a full disk, and not lost."""
    with mounts.tmpfs(tmp_path / "disk", "size=64m") as disk, live(disk, turning=False) as served:
        waiting = served.submit("waits")
        ballast = mounts.fill(disk)
        while submit(served, "x").status == 201:
            pass
        served.running.board.load()
        served.running.loop.turn()
        path = f"/danlu/v1/{{p}}/jobs/{waiting}/why"
        why = served.call("GET", path)
        assert why.status == 200
        assert "is full" in str(why.json)
        assert served.call("GET", f"/danlu/v1/{{p}}/jobs/{waiting}").json["state"] == "queued"

        ballast.unlink()
        served.running.loop.turn()

        job = served.call("GET", f"/danlu/v1/{{p}}/jobs/{waiting}").json
        assert job["state"] in ("placed", "launching", "running")


def test_a_read_only_database_is_a_degraded_server(tmp_path: Path) -> None:
    """(fault 22) 503 with the reason; reads go on; it notices by itself when it may write again."""
    with live(tmp_path) as served:
        records = served.running.platform.records
        assert isinstance(records, SqlRecords)
        connection = records._writer._connection
        assert connection is not None
        connection.execute("PRAGMA query_only = on")

        answer = submit(served, "a")

        assert (answer.status, answer.key) == (503, "database-read-only")
        assert "retry-after" in answer.headers
        assert served.call("GET", "/danlu/v1/health").json["problem"] == "database-read-only"
        assert served.call("GET", "/v2/{p}/training-job-flavors").status == 200
        connection.execute("PRAGMA query_only = off")
        while served.call("GET", "/danlu/v1/health").json["status"] != "ok":
            time.sleep(0.02)
        assert submit(served, "b").status == 201


def test_a_writer_that_holds_the_lock_is_a_503_and_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """(fault 29) (case 103) Another program's transaction lasts longer than anyone waits."""
    monkeypatch.setattr(sqlite, "BUSY_S", 0.3)
    with live(tmp_path) as served:
        path = tmp_path / "danlu.sqlite"
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            for _ in range(3):
                answer = submit(served, "a")
                assert (answer.status, answer.key) == (503, "busy")
                assert int(answer.headers["retry-after"]) >= 1
                assert served.call("GET", "/danlu/v1/{p}/jobs").status == 200
            other.execute("ROLLBACK")
        assert submit(served, "b").status == 201
