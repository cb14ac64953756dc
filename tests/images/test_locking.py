"""A definition becomes a lock: by metadata, of the build that is meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from danlu.images import definition, locking, matrix
from danlu.images.lock import Lock
from danlu.images.uv import Sources, Uv
from danlu.model.errors import Invalid, Refused
from tests.images import small

TEXT = """
schema = 1
name = "small"
version = "1"
[base]
image = "debian:bookworm"
apt_snapshot = "20261101T000000Z"
[python]
version = "3.11"
[torch]
version = "2.13.0"
companions = [{companions}]
backends = ["cpu", "cu126"]
[target]
channels = ["pypi", "index"]
[packages]
pinned = ["einops"]
"""


def make(folder: Path, companions: str = "", backend: str = "cpu") -> Lock:
    one = definition.parse(TEXT.format(companions=companions))
    sources = Sources(find_links=(str(folder / "wheels"),), no_index=True)
    return locking.make(matrix.packaged(), one, backend, Uv(folder / "cache", sources))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, version in (("torch", "2.13.0+cpu"), ("einops", "0.8.1"), ("einops", "0.8.2")):
        small.wheel(tmp_path / "wheels", name, version)
    return tmp_path


def test_a_wheel_that_lies_here_is_locked_with_its_own_digest(folder: Path) -> None:
    wheels = make(folder).wheels

    assert [(one.name, one.version) for one in wheels] == [
        ("einops", "0.8.2"),
        ("torch", "2.13.0+cpu"),
    ]
    assert wheels[0] == small.wheel(folder / "again", "einops", "0.8.2")


def test_an_earlier_lock_keeps_its_versions(folder: Path) -> None:
    one = definition.parse(TEXT.format(companions=""))
    tool = Uv(folder / "cache", Sources(find_links=(str(folder / "wheels"),), no_index=True))
    pin = small.wheel(folder / "again", "einops", "0.8.1")

    made = locking.make(matrix.packaged(), one, "cpu", tool, pins=[pin])

    assert pin in made.wheels


def test_a_companion_for_another_build_is_not_taken(folder: Path) -> None:
    """PyPI's torchvision is built for CUDA: it installs beside a torch without it, but does not
    load there.
    """
    small.wheel(folder / "wheels", "torchvision", "0.28.0")

    with pytest.raises(Refused) as caught:
        make(folder, '"torchvision"')

    assert caught.value.key == "image-unresolved"
    assert "torchvision==0.28.0+cpu" in str(caught.value)


def test_packages_that_cannot_be_had_together_are_refused_in_the_resolver_s_words(
    folder: Path,
) -> None:
    small.wheel(folder / "wheels", "einops", "0.9.0", requires=("torch<2",))
    for path in (folder / "wheels").glob("einops-0.8*"):
        path.unlink()

    with pytest.raises(Refused, match="einops"):
        make(folder)


def test_a_backend_that_the_definition_does_not_have_is_refused(folder: Path) -> None:
    with pytest.raises(Invalid, match="cu128"):
        make(folder, backend="cu128")


def test_no_other_build_is_taken_for_the_one_that_is_meant(folder: Path) -> None:
    with pytest.raises(Refused):
        make(folder, backend="cu126")
