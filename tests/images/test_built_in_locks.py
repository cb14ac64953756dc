"""The locks that the package carries are those of its definitions, and say what the matrix says."""

from __future__ import annotations

from importlib import resources

import pytest
from packaging.requirements import Requirement
from packaging.utils import parse_wheel_filename

from danlu.images import definition, lock, matrix
from danlu.images.definition import Definition
from danlu.images.lock import Lock
from danlu.images.pylock import Target
from danlu.model.errors import Missing
from danlu.model.image import CPU

EVERY = [(one, backend) for one in definition.built_in() for backend in one.backends]
CUDA = [pair for pair in EVERY if pair[1] != CPU]


def ids(pairs: list[tuple[Definition, str]]) -> list[str]:
    return [f"{one.id}.{backend}" for one, backend in pairs]


@pytest.fixture(params=EVERY, ids=ids(EVERY))
def found(request: pytest.FixtureRequest) -> tuple[Definition, Lock]:
    one, backend = request.param
    return one, lock.built_in(one, backend)


@pytest.fixture(params=CUDA, ids=ids(CUDA))
def cuda(request: pytest.FixtureRequest) -> tuple[Definition, Lock]:
    one, backend = request.param
    return one, lock.built_in(one, backend)


@pytest.fixture
def cpu() -> tuple[Definition, Lock]:
    ((one, backend),) = (pair for pair in EVERY if pair not in CUDA)
    return one, lock.built_in(one, backend)


def test_every_image_has_a_lock_and_there_is_no_other() -> None:
    files = (resources.files("danlu.images") / "locks").iterdir()
    assert {file.name for file in files} == {f"{one}.json" for one in ids(EVERY)}


def test_a_lock_is_that_of_its_definition(found: tuple[Definition, Lock]) -> None:
    """When this fails the definition or the matrix has changed: scripts/lock_images.py."""
    one, locked = found
    assert (locked.python, locked.runtime) == (one.python, one.runtime)
    assert locked.matrix == matrix.packaged().version
    versions = {wheel.name: wheel.version for wheel in locked.wheels}
    for text in definition.requirements(matrix.packaged(), one):
        wanted = Requirement(text)
        assert versions[definition.normal(wanted.name)] in wanted.specifier, text


def test_jupyterlab_and_its_chinese_are_of_one_release(found: tuple[Definition, Lock]) -> None:
    """A pack of another release leaves what is new since then in English."""
    _, locked = found
    versions = {wheel.name: wheel.version.split(".") for wheel in locked.wheels}
    assert versions["jupyterlab-language-pack-zh-cn"][:2] == versions["jupyterlab"][:2]


def test_what_is_locked_beside_torch_is_what_the_matrix_says(
    cuda: tuple[Definition, Lock],
) -> None:
    """The index's own metadata, resolved by uv, against a table that was read from wheels."""
    one, locked = cuda
    release = next(r for r in matrix.packaged().releases if r.torch == one.torch)
    versions = {wheel.name: wheel.version for wheel in locked.wheels}
    assert versions["nvidia-cudnn-cu12"] == release.cudnn
    assert versions["nvidia-nccl-cu12"] == release.nccl
    assert versions["nvidia-cuda-runtime-cu12"] == release.cuda_runtime
    assert versions["triton"] == release.triton
    assert versions["torchvision"] == release.torchvision
    assert versions["torchaudio"] == release.torchaudio


def test_only_one_major_version_of_cuda_is_locked(cuda: tuple[Definition, Lock]) -> None:
    majors = {name[-4:] for name in (wheel.name for wheel in cuda[1].wheels) if "-cu1" in name}
    assert majors == {"cu12"}


def test_every_wheel_fits_the_system_that_the_image_is_for(found: tuple[Definition, Lock]) -> None:
    one, locked = found
    ranks = Target(one.python, "2.28", locked.arch).ranks
    for wheel in locked.wheels:
        assert parse_wheel_filename(wheel.filename)[3] & ranks.keys(), wheel.filename


def test_without_cuda_nothing_of_it_is_locked(cpu: tuple[Definition, Lock]) -> None:
    """Neither NVIDIA's libraries, nor a companion that was compiled for them."""
    one, locked = cpu
    versions = {wheel.name: wheel.version for wheel in locked.wheels}
    assert versions["torch"] == f"{one.torch}+cpu"
    assert not [name for name in versions if name.startswith(("nvidia-", "cuda-", "triton"))]
    assert "torchvision" not in versions


def test_an_image_without_a_lock_says_so() -> None:
    one = next(iter(definition.built_in()))
    with pytest.raises(Missing) as caught:
        lock.built_in(one, "cu999")
    assert one.id in str(caught.value)
