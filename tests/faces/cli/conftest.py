"""One server for all tests that ask for `house`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faces.cli.house import House, opened


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with opened(tmp_path_factory.mktemp("house")) as made:
        yield made
