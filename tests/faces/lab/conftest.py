"""One server for the tests of this directory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.faces.http.live import live
from tests.faces.lab.house import House
from tests.jupyter import jupyter

__all__ = ["jupyter"]


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with live(tmp_path_factory.mktemp("server")) as running:
        yield House(running)
