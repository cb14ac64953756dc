"""The built-in image without CUDA as a container: it passes its checks, opens for whom it should,
and holds what the environment of the same lock holds.

It takes some minutes and three gigabytes, so it runs where TEST_IMAGES names a place to keep them.
"""

from __future__ import annotations

import http.client
import json
import os
import platform
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pip
import pytest

from danlu.images import known, verify
from danlu.images.oci import build as oci
from danlu.images.oci import builder as builders
from danlu.images.realise import Making
from danlu.images.store import ImageStore
from danlu.model.image import Built
from danlu.node.places import RUNTIME
from tests.containers import Podman, podman

__all__ = ["podman"]

NAME = "pytorch-2.13-cpu"
IMAGE = next(one for one in known.built_in() if one.name == NAME)
PLACE = os.environ.get("TEST_IMAGES", "")
TOKEN = "of-the-test"
pytestmark = [
    pytest.mark.long,
    pytest.mark.enable_socket,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not PLACE, reason="TEST_IMAGES names no place to keep it"),
    pytest.mark.skipif(platform.machine() != IMAGE.lock.arch, reason="for another processor"),
]


@pytest.fixture(scope="module")
def made(podman: Podman) -> Iterator[Built]:
    patch = pytest.MonkeyPatch()
    for name, value in podman.variables().items():
        patch.setenv(name, value)
    store = ImageStore(Path(PLACE))
    store.keep(IMAGE.lock)
    builder = builders.find("podman")
    making = Making(variables=tuple(os.environ.items()))
    found = oci.build(store, IMAGE, builder, oci.Wish(podman.image, "base"), making)
    yield found
    builder.remove(found.oci_id)
    patch.undo()


def test_it_passes_every_check_that_needs_no_gpu(
    podman: Podman, made: Built, tmp_path: Path
) -> None:
    """Without rights, as the container engine starts tasks. Rows about GPUs are skipped."""
    config = verify.expected(ImageStore(Path(PLACE)), IMAGE.id, verify.CONTAINER, [])
    config |= {"full": True, "nonce": "n", "gpus": [], "memory_mb": 4096, "mounts": ["/out"],
               "prefix": "/opt/danlu/environment"}  # fmt: skip
    told, out = tmp_path / "told", tmp_path / "out"
    told.mkdir()
    out.mkdir()
    out.chmod(0o777)
    for place in (tmp_path, *tmp_path.parents):
        if place.owner() == "root" and place.is_relative_to("/tmp"):
            place.chmod(place.stat().st_mode | 0o055)
    (told / "config").write_text(json.dumps(config))
    (told / "word").write_text("n go\n")

    said = podman.run(
        "run", "--rm", "--shm-size=2g", "--cap-drop=ALL", "--security-opt=no-new-privileges",
        "-v", f"{RUNTIME}:/opt/danlu/runtime:ro", "-v", f"{told}:/told:ro", "-v", f"{out}:/out",
        made.oci_id, "python", "-I", "/opt/danlu/runtime/danlu_verify", "/told/config",
        "/out/report", "/told/word", "--", "echo", "the program",
    )  # fmt: skip

    rows = json.loads((out / "report").read_text())["results"]
    failed = [one for one in rows if one["status"] == "FAIL"]
    assert not failed
    assert said.strip() == "the program"
    skipped = {one["number"] for one in rows if one["status"] == "SKIPPED"}
    assert {25, 26, 27, 28} <= skipped
    assert {3, 4, 15, 18, 19, 20, 23, 24} <= {n["number"] for n in rows if n["status"] == "PASS"}


def test_pip_finds_the_same_in_both(podman: Podman, made: Built, tmp_path: Path) -> None:
    own = Path(pip.__file__).parent
    (tmp_path / "pip").symlink_to(own)
    freeze = ("-m", "pip", "freeze", "--all", "--exclude", "pip")
    python = ImageStore(Path(PLACE)).environment(IMAGE.id) / "bin" / "python"
    here = subprocess.run(
        [python, *freeze],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        check=True,
        text=True,
    ).stdout
    there = podman.run("run", "--rm", "--network=none", "-v", f"{own}:/pip/pip:ro", "-e",
                       "PYTHONPATH=/pip", made.oci_id, "python", *freeze)  # fmt: skip

    assert there == here
    assert "torch==2.13.0+cpu" in here


def test_jupyterlab_wants_the_token_and_ends_with_the_container(
    podman: Podman, made: Built
) -> None:
    name = f"danlu-test-{uuid4().hex[:8]}"
    podman.run("run", "--detach", "--name", name, "--env", f"JUPYTER_TOKEN={TOKEN}", made.oci_id)
    try:
        form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        address = podman.run("inspect", "--format", form, name).strip()
        end = time.monotonic() + 180
        while _asked(address, TOKEN) != 200:
            assert time.monotonic() < end, podman.run("logs", name)
            time.sleep(0.5)

        assert _asked(address, "") == 403
        assert _asked(address, "another") == 403
        assert TOKEN not in podman.run("logs", name)
        podman.run("stop", "--time", "60", name)
        assert podman.run("wait", name).strip() == "0"
    finally:
        podman.run("rm", "--force", "--time", "0", name)


def _asked(address: str, token: str) -> int:
    door = http.client.HTTPConnection(address, 8888, timeout=10)
    try:
        headers = {"Authorization": f"token {token}"} if token else {}
        door.request("GET", "/api/contents", headers=headers)
        return door.getresponse().status
    except OSError:
        return 0
    finally:
        door.close()
