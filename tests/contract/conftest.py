"""What the contract suites run against."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.engines.memory import ManualClock
from danlu.ports.records import Records
from tests.contract.samples import Store
from tests.postgres import Server, postgres_server

__all__ = ["postgres_server"]

SQLITE = "sqlite"
POSTGRESQL = "postgresql"


@pytest.fixture(params=[SQLITE, pytest.param(POSTGRESQL, marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty database; `store.open()` opens records in it, as often as a test likes."""
    if request.param == SQLITE:
        where: str | Path = tmp_path / "records.db"
    else:
        server: Server = request.getfixturevalue("postgres_server")
        where = server.empty()
    made = Store(where, tmp_path / "records.key", ManualClock())
    yield made
    made.close()


@pytest.fixture
def records(store: Store) -> Records:
    """Open records in an empty database."""
    return store.open()
