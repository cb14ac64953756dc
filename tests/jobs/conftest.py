"""One server for all tests of a module; the one that is killed gets one of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.containers import podman
from tests.faces.cli.house import House, opened

__all__ = ["podman"]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with opened(tmp_path_factory.mktemp("house")) as made:
        yield made


@pytest.fixture
def own_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with opened(tmp_path_factory.mktemp("own")) as made:
        yield made
