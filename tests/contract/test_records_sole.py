"""One server a PostgreSQL schema: nothing else keeps a second one on another machine away."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import psycopg
import pytest

from danlu.engines.memory import ManualClock
from danlu.model.errors import PlatformError, Refused
from danlu.ports.records import Records
from danlu.stores.sql import open_records, postgres
from tests.postgres import Server

pytestmark = pytest.mark.postgres
WAIT = 30


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "HOLD_S", 0.3)


def opened(url: str, key: Path, *, sole: bool = True) -> Records:
    return open_records(url, key, ManualClock(), sole=sole)


def cut(url: str) -> None:
    """What a restart of PostgreSQL does to every session."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name LIKE 'danlu %' AND pid <> pg_backend_pid()"
        )


def test_a_second_server_is_refused_and_told_whose_it_is(
    postgres_server: Server, tmp_path: Path
) -> None:
    url, key = postgres_server.empty(), tmp_path / "key"
    first = opened(url, key)
    with pytest.raises(Refused) as refused:
        opened(url, key)
    assert refused.value.key == "database-other-server"
    assert f"{socket.gethostname()}:{os.getpid()}" in str(refused.value)
    looking = opened(url, key, sole=False)
    looking.close()
    beside = opened(postgres_server.empty(), tmp_path / "other")
    beside.close()
    first.close()
    opened(url, key).close()


def test_a_newer_program_does_not_touch_the_schema_under_a_server(
    postgres_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, key = postgres_server.empty(), tmp_path / "key"
    first = opened(url, key)
    monkeypatch.setattr(
        "danlu.stores.sql.opening.migrate", lambda _: pytest.fail("it was looked at")
    )
    with pytest.raises(Refused, match="in use"):
        opened(url, key)
    first.close()


def test_a_server_whose_session_was_cut_holds_the_lock_again(
    postgres_server: Server, tmp_path: Path
) -> None:
    url, key = postgres_server.empty(), tmp_path / "key"
    first = opened(url, key)
    cut(url)
    assert first.set_setting("a", "1").result(WAIT)
    with pytest.raises(Refused, match="in use"):
        opened(url, key)
    first.close()


def test_a_server_that_was_replaced_writes_no_more(postgres_server: Server, tmp_path: Path) -> None:
    """It lost its session, and before it wrote again another one had begun."""
    url, key = postgres_server.empty(), tmp_path / "key"
    first = opened(url, key)
    cut(url)
    second = opened(url, key)
    with pytest.raises(PlatformError, match="in use"):
        first.set_setting("a", "first").result(WAIT)
    assert second.set_setting("a", "second").result(WAIT)
    assert second.setting("a") == "second"
    first.close()
    second.close()
