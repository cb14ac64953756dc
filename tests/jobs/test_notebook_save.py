"""What was installed by hand in a notebook becomes an image, in which another one has the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from danlu.faces.cli import local
from danlu.faces.cli.client import Client
from danlu.faces.cli.failure import Failure
from danlu.images import known
from danlu.images.store import ImageStore
from danlu.node import namespaces
from tests.faces.cli.house import House, opened
from tests.images import small
from tests.jobs.test_images import Site

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

SMALL = ("--flavor", "danlu.cpu.1u")
LAB = """
import http.server, socket, socketserver, sys
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"[]")
    def address_string(self):
        return "server"
class Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
if sys.argv[0] == "-m":
    (place,) = [one.partition("=")[2] for one in sys.argv if one.startswith("--ServerApp.sock=")]
    Server(place, Answers).serve_forever()
"""
"""Answers as JupyterLab does when it is asked how it is, and is a hundred packages less."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    if not namespaces.offered().kind:
        pytest.skip("no namespaces here: a task cannot change its environment")
    wheels = tmp_path / "wheels"
    found = [small.wheel(wheels, name, version) for name, version in small.PACKAGES.items()]
    found += [small.with_pip(wheels), small.wheel(wheels, "jupyterlab", "4.0", body=LAB)]
    small.wheel(wheels, "tqdm", "4.67.0")
    own = {"PIP_FIND_LINKS": str(wheels), "PIP_NO_INDEX": "1", "DANLU_IMAGE_VERIFY": "off"}
    with opened(tmp_path, own) as house:
        store = ImageStore(house.data / "images")
        image = known.register(store, "small", small.locked(found))
        try:
            yield Site(house, store, wheels, image.id)
        finally:
            for name in house.good("notebook", "ls", "-q").split():
                house.run("notebook", "rm", name, "--yes")


def install(house: House, made: Any, package: str) -> None:
    line = f'exec "$MA_SCRIPT_INTERPRETER" -m pip install -q {package}'
    house.good("exec", made["danlu"]["job_id"], "--", "bash", "-c", line)


def version(house: House, made: Any, package: str) -> str:
    ask = f"import {package}; print({package}.__version__)"
    line = f"exec \"$MA_SCRIPT_INTERPRETER\" -c '{ask}'"
    return house.good("exec", made["danlu"]["job_id"], "--", "bash", "-c", line).strip()


def test_what_was_installed_by_hand_is_an_image_for_notebooks_and_jobs(site: Site) -> None:
    house = site.house
    made = house.json("notebook", "create", "mine", "--image", "small", *SMALL)
    refused = house.run("notebook", "save", "mine", "none")
    assert refused.returncode == 5
    install(house, made, "tqdm")

    saved = house.json("notebook", "save", "mine", "mine-1.2")

    assert saved["parent"] == site.id
    assert saved["changes"] == [{"package": "tqdm", "before": "", "after": "4.67.0"}]
    # By its name as by its job's id, and once more it is the same image.
    for ref in ("mine", made["id"], made["danlu"]["job_id"]):
        assert house.json("image", "freeze", ref, "mine-1.2")["id"] == saved["id"]
    assert saved["id"] in house.good("image", "ls", "--json")
    events = house.good("notebook", "events", "mine")
    assert "image mine-1.2 made of what is installed in it" in events
    assert house.json("notebook", "show", "mine")["status"] == "RUNNING"
    house.good("notebook", "stop", "mine")
    other = house.json("notebook", "create", "other", "--image", "mine-1.2", *SMALL)
    assert version(house, other, "tqdm") == "4.67.0"
    script = house.script("import tqdm; print(tqdm.__version__)")
    assert house.good("run", *SMALL, "--image", "mine-1.2", script) == "4.67.0\n"


def test_create_image_is_answered_as_an_image_of_the_project(site: Site) -> None:
    house = site.house
    made = house.json("notebook", "create", "mine", "--image", "small", *SMALL)
    install(house, made, "tqdm")
    body = {"name": "team", "namespace": "org", "tag": "1.0", "description": "ours"}

    image = create_image(house, made["id"], body)

    assert (image["status"], image["type"]) == ("ACTIVE", "DEDICATED")
    assert (image["name"], image["description"]) == ("team-1.0", "ours")
    house.good("notebook", "stop", "mine")
    with pytest.raises(Failure) as refused:
        create_image(house, made["id"], body)
    assert refused.value.exit_status == 5
    assert "cannot create-image now" in str(vars(refused.value))


def create_image(house: House, notebook_id: str, body: object) -> Any:
    """ModelArts' call, signed as its clients sign."""
    ready = local.read_ready(str(house.data))
    assert ready is not None
    client = Client(local.endpoint(ready, str(house.data)), "en")
    try:
        path = ("", "v1", ready["project_id"], "notebooks", notebook_id, "create-image")
        return client.post(*path, body=body)
    finally:
        client.close()
