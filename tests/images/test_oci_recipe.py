"""What a container image is made of, as text: pure."""

from __future__ import annotations

import json
import platform
import re
from dataclasses import replace
from pathlib import Path

import pytest

from danlu.images import known
from danlu.images.known import Image
from danlu.images.oci import layout, recipe
from danlu.model.errors import Invalid, Refused
from tests.images.small import World, wheel


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_built_in_image_has_its_definitions_base_and_archive() -> None:
    image = next(one for one in known.built_in() if one.name == "pytorch-cuda-2.8")

    found = recipe.of(image, "", "snapshot")

    assert found.base.startswith("debian:")
    assert re.fullmatch(r"\d{8}T\d{6}Z", found.snapshot)
    assert {"git", "openssh-server", "tini"} <= set(found.apt)


def test_base_and_sources_can_be_others(world: World) -> None:
    image = Image(world.id, "small", world.lock)

    found = recipe.of(image, "registry.example/base@sha256:" + "a" * 64, "base")

    assert (found.base, found.snapshot) == ("registry.example/base@sha256:" + "a" * 64, "")


@pytest.mark.parametrize(
    ("base", "sources"), [("two words", "base"), ("--x", "base"), ("a", "ftp")]
)
def test_what_is_no_base_is_refused(world: World, base: str, sources: str) -> None:
    with pytest.raises(Invalid):
        recipe.of(Image(world.id, "small", world.lock), base, sources)


def test_large_layers_come_first_and_only_where_there_is_something_in_them(world: World) -> None:
    found = recipe.of(Image(world.id, "small", world.lock), "base", "base")

    text = recipe.containerfile(world.lock, found, {"a": 'x "y"'}, {"nvidia", "torch", "rest"})
    copies = re.findall(r"^COPY --chown=0:0 (\w+)/", text, re.MULTILINE)
    fewer = recipe.containerfile(world.lock, found, {}, {"rest"})

    assert copies == ["nvidia", "torch", "rest", "entry"]
    assert re.findall(r"^COPY --chown=0:0 (\w+)/", fewer, re.MULTILINE) == ["rest", "entry"]
    assert 'LABEL a="x \\"y\\""' in text
    assert "USER 1000:100" in text
    assert 'ENTRYPOINT ["tini", "--", "/opt/danlu/start"]' in text


def test_the_first_layer_is_the_same_for_images_of_equal_systems(world: World) -> None:
    """Else none would be shared."""
    found = recipe.of(Image(world.id, "small", world.lock), "base", "base")
    other = replace(world.lock, wheels=world.lock.wheels[:1])

    texts = [recipe.containerfile(one, found, {}, {"rest"}) for one in (world.lock, other)]

    runs = [[line for line in text.splitlines() if line.startswith("RUN")] for text in texts]
    assert runs[0] == runs[1]
    words = json.loads(runs[0][0].partition("ca.crt ")[2])
    assert words[3:] == ["prepare", world.lock.python, "ma-user", "1000", "100", "", *found.apt]


@pytest.mark.parametrize(
    ("package", "layer"),
    [("nvidia-cudnn-cu12", "nvidia"), ("triton", "nvidia"), ("cuda-toolkit", "nvidia"),
     ("torch", "torch"), ("torchvision", "torch"), ("torchmetrics", "rest"), ("numpy", "rest")],
)  # fmt: skip
def test_wheels_are_in_the_layer_of_what_they_change_with(package: str, layer: str) -> None:
    assert recipe.layer_of(package) == layer


def test_a_package_with_a_driver_is_refused(world: World, tmp_path: Path) -> None:
    """ModelArts mounts the machine's; a second one in the image would be found first."""
    made = wheel(world.wheels, "odd", "1.0")
    lock = replace(world.lock, wheels=(*world.lock.wheels, made))
    world.realise(world.store.keep(lock))
    environment = world.environment(world.store.keep(lock))
    folder = world.site(world.store.keep(lock)) / "odd"
    folder.chmod(0o755)
    (folder / "libcuda.so.1").write_bytes(b"")

    with pytest.raises(Refused, match=r"libcuda\.so\.1"):
        layout.lay_out(environment, lock, tmp_path / "context")


def test_what_says_when_and_where_stays_out(world: World, tmp_path: Path) -> None:
    world.realise()
    context = tmp_path / "context"

    parts = layout.lay_out(world.environment(), world.lock, context)

    assert parts == {"torch", "rest"}
    names = {path.name for path in context.rglob("*")}
    assert not names & {"pyvenv.cfg", "uv_cache.json", "danlu-image.json", "__pycache__"}
    assert "run-torch" in names
    for record in context.rglob("RECORD"):
        assert ".pyc" not in record.read_text()
        assert "uv_cache" not in record.read_text()
    assert platform.machine() == world.lock.arch
    assert (context / "torch" / "bin" / "run-torch").is_file()
    assert (context / "rest" / "bin" / "run-numpy").is_file()


def test_what_a_package_carries_of_another_stays_as_it_is(world: World, tmp_path: Path) -> None:
    """Some packages hold whole installed ones, list included; that is a file like others."""
    world.realise()
    inside = world.site() / "numpy" / "_vendor" / "other-1.0.dist-info"
    (world.site() / "numpy").chmod(0o755)
    inside.mkdir(parents=True)
    (inside / "RECORD").write_text("z.py,sha256=x,1\na.pyc,,\n")

    layout.lay_out(world.environment(), world.lock, tmp_path / "context")

    (kept,) = (tmp_path / "context").rglob("other-1.0.dist-info/RECORD")
    assert kept.read_text() == "z.py,sha256=x,1\na.pyc,,\n"
