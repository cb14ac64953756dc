"""A job's own packages make another image, in which torch is the one that was chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from danlu.images import extras
from danlu.images.realise import Making, realise
from danlu.images.uv import Sources, Uv
from danlu.model.errors import Invalid, PlatformError, Refused
from tests.images import small
from tests.images.small import World

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def world(tmp_path: Path) -> World:
    found = World(tmp_path)
    for name, version in (("tqdm", "4.67.0"), ("einops", "0.9.0"), ("numpy", "2.5.0")):
        small.wheel(found.wheels, name, version)
    return found


def derive(world: World, *wanted: str, override: bool = False) -> dict[str, str]:
    """What the derived image holds, by package."""
    return {
        one.name: one.version
        for one in world.store.lock(ask(world, *wanted, override=override)).wheels
    }


def ask(world: World, *wanted: str, override: bool = False) -> str:
    tool = Uv(world.store.part("cache"), Sources.of(world.variables))
    lines = [extras.normalised(one, "test") for one in wanted]
    return extras.derive(world.store, world.id, lines, tool, override=override)


def test_what_is_added_changes_nothing_else(world: World) -> None:
    """Newer releases of what the image has are there, and are not taken."""
    assert derive(world, "tqdm") == {**small.PACKAGES, "tqdm": "4.67.0"}


def test_what_is_there_already_is_the_same_image(world: World) -> None:
    assert ask(world, "numpy>=2", "torch") == world.id


def test_the_same_wish_is_resolved_once(world: World) -> None:
    """In any order and spelling, and when nothing can be asked any more."""
    first = ask(world, "TQDM >= 4", "Einops")
    for path in world.wheels.iterdir():
        path.unlink()

    assert ask(world, "einops", "tqdm>=4") == first


def test_a_package_of_the_image_changes_where_it_is_asked_for(world: World) -> None:
    assert derive(world, "einops>=0.9") == {**small.PACKAGES, "einops": "0.9.0"}


def test_what_a_new_package_needs_changes_as_little_as_can_be(world: World) -> None:
    small.wheel(world.wheels, "needy", "1.0", requires=("numpy>=2.5",))

    assert derive(world, "needy") == {**small.PACKAGES, "numpy": "2.5.0", "needy": "1.0"}


@pytest.mark.parametrize(
    "wanted", ["torch==2.12.0", "torch>2.13", "torchvision", "triton==3.4.0", "nvidia-nccl-cu12"]
)
def test_what_the_image_decides_is_refused_by_name(world: World, wanted: str) -> None:
    """Before anything is looked for."""
    with pytest.raises(Refused) as caught:
        derive(world, wanted)

    assert caught.value.key == "requirement-replaces"
    assert wanted.split("=", maxsplit=1)[0].split(">", maxsplit=1)[0] in str(caught.value)


def test_what_would_replace_torch_by_what_it_needs_is_refused(world: World) -> None:
    """The case that pip answers by another torch: the conflict is named."""
    small.wheel(world.wheels, "torch", "2.7.1")
    small.wheel(world.wheels, "old", "1.0", requires=("torch==2.7.1",))

    with pytest.raises(Refused) as caught:
        derive(world, "old")

    assert caught.value.key == "requirements-conflict"
    assert "torch==2.7.1" in str(caught.value)


def test_what_would_bring_a_companion_is_refused(world: World) -> None:
    """PyPI's torchvision is compiled for CUDA; beside this torch it would not load."""
    small.wheel(world.wheels, "torchvision", "0.28.0")
    small.wheel(world.wheels, "models", "1.0", requires=("torchvision",))

    with pytest.raises(Refused, match="torchvision"):
        derive(world, "models")


def test_an_override_makes_another_image(world: World) -> None:
    small.wheel(world.wheels, "torch", "2.7.1")

    assert derive(world, "torch==2.7.1", override=True)["torch"] == "2.7.1"


@pytest.mark.parametrize(
    "line",
    [
        "-e .", "--index-url https://example.org", "-r /etc/passwd", "./local.whl",
        "x @ https://example.org/x.whl", "x @ file:///etc/passwd", "git+https://example.org/x",
        "x; ;", "$(id)",
    ],
)  # fmt: skip
def test_what_is_no_package_is_refused_by_its_line(line: str) -> None:
    with pytest.raises(Invalid) as caught:
        extras.read(f"einops\n# fine\n{line}\n", "pip-requirements.txt")

    assert "pip-requirements.txt:3" in str(caught.value)


def test_a_file_is_read_as_pip_reads_it() -> None:
    text = "# a comment\n\nEinops >=0.8  # why\ntqdm[extra] \\\n  ==4.67.0\nx; python_version<'3'\n"

    assert extras.read(text, "f") == [
        "einops>=0.8",
        "tqdm[extra]==4.67.0",
        'x; python_version < "3"',
    ]


def test_too_much_is_refused() -> None:
    with pytest.raises(PlatformError):
        extras.read("x\n" * 1001, "f")
    with pytest.raises(PlatformError):
        extras.read("x" * (1 << 19), "f")


def test_it_is_made_of_the_files_of_its_parent(world: World) -> None:
    """Links, and modules that are compiled already: what is new is all that costs anything."""
    world.realise()
    image_id = ask(world, "tqdm")
    making = Making(variables=tuple(world.variables.items()), parent=world.id, extras=("tqdm",))

    made = realise(world.store, image_id, "small+tqdm", making)

    assert (made.parent, made.extras, made.packages) == (world.id, ("tqdm",), 4)
    for pattern in ("torch/data.bin", "torch/__pycache__/*.pyc"):
        ours, theirs = (next(world.site(one).glob(pattern)) for one in (image_id, world.id))
        assert ours.stat().st_ino == theirs.stat().st_ino
    assert list(world.site(image_id).glob("tqdm/__pycache__/*.pyc"))


def test_a_module_that_changed_is_compiled_anew(world: World) -> None:
    """Its compiled form is never held against its source again."""
    world.realise()
    image_id = ask(world, "einops>=0.9")

    realise(
        world.store,
        image_id,
        "x",
        Making(variables=tuple(world.variables.items()), parent=world.id),
    )

    ours, theirs = (
        next(world.site(one).glob("einops/__pycache__/*.pyc")) for one in (image_id, world.id)
    )
    assert b"0.9.0" in ours.read_bytes()
    assert b"0.8.1" in theirs.read_bytes()
