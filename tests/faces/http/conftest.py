"""One server for the tests of this directory: starting one costs more than most tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faces.http.live import Live, live


@pytest.fixture(scope="session")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def shared(standing: Live) -> Iterator[Live]:
    """The server, without a job that lives: the next test may need the whole node."""
    yield standing
    standing.clear()
