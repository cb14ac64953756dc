"""One server for the tests of this directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faces.http.live import live
from tests.faces.lab.house import TOKEN, House, jupyter_lab
from tests.jupyter import jupyter

__all__ = ["jupyter"]


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with live(tmp_path_factory.mktemp("server")) as running:
        yield House(running)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of the user whose Lab `lab` is."""
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="session")
def lab(jupyter: Path, folder: Path) -> Iterator[Path]:
    """A real JupyterLab; its socket."""
    with jupyter_lab(jupyter, folder, TOKEN) as path:
        yield path
