"""An image of ours runs in containers by its name or id, once it was built, and is verified there
before its first job.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from danlu.images import known
from danlu.images.known import Image
from danlu.images.oci import build as oci
from danlu.images.oci import builder as builders
from danlu.images.realise import Making
from danlu.images.store import ImageStore
from tests.containers import Podman, podman
from tests.faces.cli.house import House, opened, until
from tests.images import small

__all__ = ["podman"]

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.enable_socket]

SAYS = "import sys; print('user code in', sys.prefix)\n"


class Site:
    """A server whose jobs run in containers, and an image that is known to it."""

    def __init__(self, house: House, podman: Podman, wheels: Path) -> None:
        self.house = house
        self._podman = podman
        self._wheels = wheels
        self.store = ImageStore(house.data / "images")
        found = [small.wheel(wheels, name, "1.0") for name in ("alpha", "beta")]
        self.lock = small.locked(found)
        self.id = known.register(self.store, "small", self.lock).id

    def build(self, patch: pytest.MonkeyPatch) -> None:
        for name, value in self._podman.variables().items():
            patch.setenv(name, value)
        sources = {"PIP_FIND_LINKS": str(self._wheels), "PIP_NO_INDEX": "1"}
        making = Making(variables=tuple(sources.items()))
        image = Image(self.id, "small", self.lock)
        wish = oci.Wish(self._podman.image, "base")
        oci.build(self.store, image, builders.find("podman"), wish, making)

    def run(self, word: str) -> tuple[str, dict[str, Any]]:
        job = self.house.good("run", "-d", "--image", word, self.house.script(SAYS)).strip()
        final = ("succeeded", "failed", "cancelled", "lost")
        until(lambda: self.house.state(job) in final)
        found: dict[str, Any] = self.house.json("show", job)
        return job, found

    def keys(self, job: str) -> set[str]:
        lines = self.house.good("events", job, "--json").splitlines()
        return {json.loads(line)["key"] for line in lines}


@pytest.fixture
def site(podman: Podman, tmp_path: Path) -> Iterator[Site]:
    own = {"DANLU_ENGINE": "container", "DANLU_CONTAINER_SOCKET": podman.socket}
    with opened(tmp_path, own) as house:
        yield Site(house, podman, tmp_path / "wheels")


def test_it_runs_verified_once_it_was_built(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = site.house.run("run", "--image", "small", site.house.script(SAYS))
    assert refused.returncode == 4
    assert b"danlu image build small" in refused.stderr
    site.build(monkeypatch)

    first, shown = site.run("small")

    assert shown["state"] == "succeeded", shown["reason"]
    assert "user code in /opt/danlu/environment" in site.house.good("logs", first)
    report = shown["verification"]
    assert (report["ok"], report["job"], report["image"]) == (True, first, site.id)
    rows = {one["name"]: one for one in report["checks"]}
    # What is true of images alone: the user, the doors, the first process.
    for name in ("user", "ssh", "first-process", "mounts", "files", "installed", "size"):
        assert rows[name]["status"] == "PASS", rows[name]
    assert rows["gpu-count"]["status"] == "SKIPPED"

    second, again = site.run(site.id)

    assert again["state"] == "succeeded"
    assert "image-verifying" not in site.keys(second)
    assert again["verification"] == report
