"""A door and an instance for the tests of this directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faces.ssh.world import Instance, World, opened

ENV = {
    "PATH": f"/opt/of the job/bin:{os.environ['PATH']}",
    "HOME": "/nowhere",
    "SHELL": "/bin/bash",
    "MA_NUM_GPUS": "0",
    "ODD": 'it\'s "odd" $HOME\nand more',
    "TERM": "dumb",
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    # A path that is longer than a unix socket's may be, with what needs quoting.
    root = tmp_path / ("a long way with % and spaces " + "x" * 90)
    root.mkdir()
    with opened(root) as made:
        yield made


@pytest.fixture
def instance(world: World) -> Iterator[Instance]:
    made = Instance(world.root / "nb", ENV)
    world.learn("nb", made.host_key())
    try:
        yield made
    finally:
        made.stop()


@pytest.fixture
def key(world: World, instance: Instance) -> Path:
    """Alice's key; the instance is hers."""
    made = world.key("id")
    world.add("nb", instance.at)
    return made
