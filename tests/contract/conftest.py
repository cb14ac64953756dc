"""What the contract suites run against."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.engines.memory import ManualClock
from danlu.ports.records import Records
from danlu.ports.task_directory import Isolation
from tests.containers import podman
from tests.contract.engines import ProcessHouse
from tests.contract.samples import Store
from tests.postgres import Server, postgres_server

__all__ = ["podman", "postgres_server"]

SQLITE = "sqlite"
POSTGRESQL = "postgresql"


KINDS = [SQLITE, pytest.param(POSTGRESQL, marks=pytest.mark.postgres)]


@pytest.fixture
def swift_path(tmp_path: Path) -> Iterator[Path]:
    """A directory in memory where there is one: what it holds need not outlive the test."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="danlu-", dir=memory) as name:
        yield Path(name)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[ProcessHouse]:
    """A process engine and what it needs."""
    made = ProcessHouse(tmp_path)
    yield made
    made.close()


@pytest.fixture
def bare_house(tmp_path: Path) -> Iterator[ProcessHouse]:
    """A process engine whose programs are kept from nothing."""
    made = ProcessHouse(tmp_path, isolation=Isolation(wanted=False))
    yield made
    made.close()


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, swift_path: Path) -> Iterator[Store]:
    """A database without rows; `store.open()` opens records in it, as often as a test likes."""
    if request.param == SQLITE:
        where: str | Path = swift_path / "records.db"
    else:
        server: Server = request.getfixturevalue("postgres_server")
        where = server.cleared()
    made = Store(where, swift_path / "records.key", ManualClock())
    yield made
    made.close()


@pytest.fixture(params=KINDS)
def empty_store(request: pytest.FixtureRequest, swift_path: Path) -> Iterator[Store]:
    """A database without tables."""
    if request.param == SQLITE:
        where: str | Path = swift_path / "records.db"
    else:
        server: Server = request.getfixturevalue("postgres_server")
        where = server.empty()
    made = Store(where, swift_path / "records.key", ManualClock())
    yield made
    made.close()


@pytest.fixture
def records(store: Store) -> Records:
    """Open records in a database without rows."""
    return store.open()
