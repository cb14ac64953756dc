"""What was installed by hand in a job becomes an image, and a job in that one has the same."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.images import definition, known, lock
from danlu.images.store import ImageStore
from danlu.node import namespaces
from tests.faces.cli.house import opened, until
from tests.images import small
from tests.jobs.test_images import Site

pytestmark = pytest.mark.timeout(300)

INSTALL = """
import pathlib, subprocess, sys, sysconfig, time
pip = [sys.executable, "-m", "pip"]
subprocess.run([*pip, "install", "-q", "tqdm", "einops==0.9.0"], check=True)
subprocess.run([*pip, "uninstall", "-q", "-y", "numpy"], check=True)
subprocess.run([*pip, "freeze", "--all"], check=True)
print("installed", flush=True)
while not pathlib.Path("/home/ma-user/go").exists():
    time.sleep(0.05)
"""
TELL = """
import subprocess, sys
subprocess.run([sys.executable, "-m", "pip", "freeze", "--all"], check=True)
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
[project]
name = "mine"
version = "1.0"
"""
BACKEND = """
import shutil
def build_wheel(folder, settings=None, metadata=None):
    return shutil.copy(PARTS + "/direct-1.0-py3-none-any.whl", folder).rpartition("/")[2]
def build_editable(folder, settings=None, metadata=None):
    return shutil.copy(PARTS + "/edited-1.0-py3-none-any.whl", folder).rpartition("/")[2]
"""
SOURCE = """
import pathlib, subprocess, sys, sysconfig
home = pathlib.Path("/home/ma-user/mine")
home.mkdir()
(home / "pyproject.toml").write_text(PROJECT)
(home / "backend.py").write_text(f"PARTS = {PARTS!r}" + BACKEND)
pip = [sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps"]
subprocess.run([*pip, "-e", str(home)], check=True)
subprocess.run([*pip, str(home)], check=True)
subprocess.run([*pip, "tqdm"], check=True)
subprocess.run([*pip, f"{PARTS}/file-1.0-py3-none-any.whl"], check=True)
site = pathlib.Path(sysconfig.get_paths()["purelib"])
(site / "loose.py").write_text("x = 1")
with (site / "torch" / "__init__.py").open("a") as file:
    file.write("# changed")
(site / "numpy" / "data.bin").unlink()
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    if not namespaces.offered().kind:
        pytest.skip("no namespaces here: a task cannot change its environment")
    wheels = tmp_path / "wheels"
    found = [small.wheel(wheels, name, version) for name, version in small.PACKAGES.items()]
    found.append(small.with_pip(wheels))
    small.wheel(wheels, "tqdm", "4.67.0", requires=("colorama",))
    small.wheel(wheels, "colorama", "0.4.6")
    small.wheel(wheels, "einops", "0.9.0")
    own = {"PIP_FIND_LINKS": str(wheels), "PIP_NO_INDEX": "1", "DANLU_IMAGE_VERIFY": "off"}
    with opened(tmp_path, own) as house:
        store = ImageStore(house.data / "images")
        image = known.register(store, "small", small.locked(found))
        yield Site(house, store, wheels, image.id)


def installed(site: Site) -> str:
    """A job that has installed something, and runs."""
    job = site.submit(INSTALL, "--image", "small")
    until(lambda: "installed" in site.house.good("logs", job))
    return job


def test_a_running_job_s_environment_becomes_an_image(site: Site, tmp_path: Path) -> None:
    job = installed(site)
    words = ("image", "freeze", job, "mine-1.2", "--out", str(tmp_path), "--json")

    made = json.loads(site.house.good(*words))

    assert made["parent"] == site.id
    assert made["changes"] == [
        {"package": "colorama", "before": "", "after": "0.4.6"},
        {"package": "einops", "before": "0.8.1", "after": "0.9.0"},
        {"package": "numpy", "before": "2.4.0", "after": ""},
        {"package": "tqdm", "before": "", "after": "4.67.0"},
    ]
    locked = lock.parse((tmp_path / "mine-1.2.json").read_text())
    assert lock.image_id(locked) == made["id"]
    defined = definition.parse((tmp_path / "mine-1.2.toml").read_text())
    assert (defined.name, defined.version, defined.torch) == ("mine", "1.2", "2.13.0")
    assert {"tqdm==4.67.0", "einops==0.9.0", "colorama==0.4.6"} <= set(defined.packages)
    assert tomllib.loads(made["definition"])["torch"]["backends"] == ["cpu"]
    # Once more it is the same image.
    assert json.loads(site.house.good(*words))["id"] == made["id"]
    said = site.house.good("logs", job).partition("installed")[0]
    site.house.good("stop", job)
    # The same to the line, in a job of the new image.
    assert site.house.good("run", "--image", "mine-1.2", site.house.script(TELL)) == said


def test_of_a_job_that_has_ended_it_is_on_record(site: Site) -> None:
    job = site.submit(INSTALL.partition("while not")[0], "--image", "small")
    assert site.ended(job)["state"] == "succeeded"

    said = site.house.run("image", "freeze", job, "mine", "--lang", "zh")

    assert said.returncode == 0, said.stderr
    assert "einops：0.8.1 → 0.9.0" in said.stderr.decode()


def test_what_cannot_be_pinned_is_named_with_its_remedy_and_left_out_only_by_name(
    site: Site,
) -> None:
    parts = site.wheels / "parts"
    for name in ("edited", "direct", "file"):
        small.wheel(parts, name, "1.0")
    given = f"PARTS, PROJECT, BACKEND = {str(parts)!r}, {PROJECT!r}, {BACKEND!r}\n"
    job = site.submit(given + SOURCE, "--image", "small")
    assert site.ended(job)["state"] == "succeeded", site.house.good("logs", job)

    refused = site.house.run("image", "freeze", job, "mine")

    said = refused.stderr.decode()
    assert refused.returncode == 5
    assert "4 thing(s)" in said
    assert "edited 1.0 is installed where it is edited (file:///home/ma-user/mine)" in said
    assert "direct 1.0 was installed from a directory (file:///home/ma-user/mine)" in said
    assert f"file 1.0 was installed from a file (file://{parts}/file-1.0" in said
    assert "numpy/data.bin" in said
    assert "loose.py" in said
    assert "torch/__init__.py" in said
    words = [word for name in ("edited", "direct", "file", "files") for word in ("--without", name)]
    made = json.loads(site.house.good("image", "freeze", job, "mine", *words, "--json"))
    assert [one["package"] for one in made["left_out"]] == ["direct", "edited", "file", "files"]
    assert [one["package"] for one in made["changes"]] == ["tqdm"]


def test_a_wheel_that_was_changed_since_is_another_one(site: Site) -> None:
    """Its name, version and tags are the same, and its digest is what the lock would name."""
    job = installed(site)
    small.wheel(site.wheels, "tqdm", "4.67.0", requires=("colorama",), body="other = 1\n")

    refused = site.house.run("image", "freeze", job, "mine")

    assert refused.returncode == 5
    said = refused.stderr.decode()
    assert "tqdm 4.67.0 is not what the wheel of that version" in said
    (site.wheels / "einops-0.9.0-py3-none-any.whl").unlink()
    said = site.house.run("image", "freeze", job, "mine").stderr.decode()
    assert "einops 0.9.0 has no wheel on the server's indexes" in said
    site.house.good("stop", job)


def test_where_nothing_can_be_frozen_it_is_said_why(site: Site) -> None:
    plain = site.submit("print(1)")
    site.ended(plain)
    assert b"is not known" in site.house.run("image", "freeze", plain, "mine").stderr
    job = installed(site)
    for name in ("Mine", "small"):
        refused = site.house.run("image", "freeze", job, name)
        assert refused.returncode in (2, 5), refused
    site.house.good("stop", job)
