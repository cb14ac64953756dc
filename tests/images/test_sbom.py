"""A bill of materials says what the lock says, once, and the same every time."""

from __future__ import annotations

import json
from pathlib import Path

from danlu.images import definition, known, lock
from danlu.images.known import Image
from danlu.images.sbom import cyclonedx
from danlu.model.image import Built
from tests.images.small import World

BUILT = Built("", "", "r", f"sha256:{'b' * 64}", "debian", f"sha256:{'c' * 64}",
              ("git=1:2.39.5-0+deb12u3", "tini=0.19.0-1"), 1, "podman 4.3.1", 1, 1.0)  # fmt: skip


def test_every_wheel_is_in_it_with_its_digest(tmp_path: Path) -> None:
    world = World(tmp_path)
    image = Image(world.id, "small", world.lock)

    bill = json.loads(cyclonedx(image))

    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    found = {(one["name"], one["version"], one["hashes"][0]["content"])
             for one in bill["components"]}  # fmt: skip
    assert found == {(one.name, one.version, one.sha256) for one in world.lock.wheels}
    assert bill["metadata"]["component"]["version"] == world.id
    purls = {one["purl"] for one in bill["components"]}
    assert "pkg:pypi/torch@2.13.0%2Bcpu" in purls
    refs = [one["bom-ref"] for one in bill["components"]]
    assert len(refs) == len(set(refs))
    assert bill["dependencies"][0]["dependsOn"] == refs


def test_it_is_the_same_text_every_time(tmp_path: Path) -> None:
    world = World(tmp_path)
    image = Image(world.id, "small", world.lock)

    assert cyclonedx(image) == cyclonedx(image)
    assert cyclonedx(image, BUILT) == cyclonedx(image, BUILT)
    assert cyclonedx(image) != cyclonedx(image, BUILT)


def test_what_was_built_names_debians_packages_too(tmp_path: Path) -> None:
    world = World(tmp_path)

    bill = json.loads(cyclonedx(Image(world.id, "small", world.lock), BUILT))

    purls = {one["purl"] for one in bill["components"]}
    assert "pkg:deb/debian/git@1%3A2.39.5-0%2Bdeb12u3?arch=amd64" in purls


def test_the_built_in_images_have_one() -> None:
    for image in known.built_in():
        bill = json.loads(cyclonedx(image))
        assert len(bill["components"]) == len(image.lock.wheels)
    assert lock.built_in(next(definition.built_in()), "cpu").wheels
