"""`danlu image build, push, save, load, sbom`: from a name to a registry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from danlu.faces.cli.main import main
from danlu.images import known
from tests.containers import Podman, podman
from tests.fakes.registry import registry
from tests.images.small import World

__all__ = ["podman"]

pytestmark = [pytest.mark.timeout(600), pytest.mark.enable_socket]


class Cli:
    """The command line on one data directory."""

    def __init__(self, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._data = data
        self._capsys = capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        status = main(["--lang", "en", "--data", str(self._data), "image", *words])
        said = self._capsys.readouterr()
        return status, said.out, said.err


@pytest.fixture
def world(podman: Podman, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    found = World(tmp_path)
    own = {"DANLU_IMAGE_BASE": podman.image, "DANLU_IMAGE_APT_SOURCES": "base"}
    for name, value in {**found.variables, **podman.variables(), **own}.items():
        monkeypatch.setenv(name, value)
    known.register(found.store, "small", found.lock)
    return found


@pytest.mark.long
def test_an_image_is_built_shown_and_sent_to_a_registry(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cli = Cli(tmp_path, capsys)
    assert "danlu image build small" in cli("push", "small", "localhost:1/a:1")[2]

    status, out, err = cli("build", "small", "--json")
    assert status == 0, err
    made = json.loads(out)
    assert (made["id"], made["name"]) == (world.id, "small")
    assert json.loads(cli("show", "small", "--json")[1])["oci_id"] == made["oci_id"]
    bill = json.loads(cli("sbom", "small")[1])
    assert {"torch", "openssh-server"} <= {one["name"] for one in bill["components"]}

    with registry() as there:
        status, _, err = cli("push", "small", f"{there.address}/team/small:1", "--insecure")
        assert status == 0, err
        manifest = json.loads(there.manifests["team/small", "1"])
        assert manifest["config"]["digest"] == made["oci_id"]
        config = json.loads(there.blobs[made["oci_id"]])
        assert config["config"]["Labels"]["io.danlu.image"] == world.id
        assert config["config"]["User"] == "1000:100"


def test_what_cannot_be_is_said(
    world: World,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cli = Cli(world.store.root.parent, capsys)
    assert cli("load", str(tmp_path / "none.tar"))[0] == 4
    assert "'two words'" in cli("build", "small", "--base", "two words")[2]
    monkeypatch.setenv("PATH", str(tmp_path))
    status, _, err = cli("build", "small")
    assert status == 75
    assert "apt install podman" in err
