"""A job runs in the environment of its image: made when it is wanted, and not before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from danlu.images import known, lock, seal
from danlu.images.store import ImageStore, digits
from danlu.node import namespaces
from tests.faces.cli.house import House, opened, until
from tests.images import small

pytestmark = pytest.mark.timeout(300)

TELL = """
import sys, torch
print("torch", torch.__version__, "in", sys.prefix)
try:
    open(torch.__file__, "a").write("# mine")
except OSError as error:
    print("cannot write:", type(error).__name__)
"""


@dataclass
class Site:
    """A server, its images, and the directory from which it has wheels."""

    house: House
    store: ImageStore
    wheels: Path
    id: str

    def events(self, job: str) -> list[dict[str, Any]]:
        lines = self.house.good("events", job, "--json").splitlines()
        return [json.loads(line) for line in lines]

    def keys(self, job: str) -> list[str]:
        return [one["key"] for one in self.events(job)]

    def environment(self, image_id: str = "") -> Path:
        """Where an image's packages are."""
        place = self.store.environment(image_id or self.id)
        return place / "lib" / f"python{small.PYTHON}" / "site-packages"

    def submit(self, script: str, *options: str) -> str:
        return self.house.good("run", "-d", *options, self.house.script(script)).strip()

    def ended(self, job: str) -> dict[str, Any]:
        def final() -> bool:
            return self.house.state(job) in ("succeeded", "failed", "cancelled", "lost")

        until(final)
        found: dict[str, Any] = self.house.json("show", job)
        return found


@pytest.fixture
def apart() -> None:
    """Where tasks have a view of their own."""
    if not namespaces.offered().kind:
        pytest.skip("no namespaces here")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    wheels = tmp_path / "wheels"
    found = [small.wheel(wheels, name, version) for name, version in small.PACKAGES.items()]
    # What these wheels hold is no torch: nobody would let it start.
    own = {"PIP_FIND_LINKS": str(wheels), "PIP_NO_INDEX": "1", "DANLU_IMAGE_VERIFY": "off"}
    with opened(tmp_path, own) as house:
        store = ImageStore(house.data / "images")
        image = known.register(store, "small", small.locked(found))
        yield Site(house, store, wheels, image.id)


def test_its_interpreter_runs_the_task_and_nobody_writes_to_it(site: Site) -> None:
    """By name, by id and by the beginning of one; made once, then used."""
    said = site.house.good("run", "--image", "small", site.house.script(TELL))

    assert f"torch 2.13.0+cpu in {site.store.environment(site.id)}" in said
    assert "# mine" not in (site.environment() / "torch/__init__.py").read_text()
    for word in (site.id, site.id[:19]):
        assert "2.13.0+cpu" in site.house.good("run", "--image", word, site.house.script(TELL))
    jobs = sorted(site.house.json("ps", "-a")["jobs"], key=lambda one: int(one["created_at"]))
    first, second = (site.keys(one["id"]) for one in jobs[:2])
    assert "image-ready" in first
    assert not [key for key in second if key.startswith("image-")]


def test_a_lock_s_file_is_an_image_too(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(lock.canonical(small.locked([small.wheel(site.wheels, "torch", "2.14.0")])))

    said = site.house.good("run", "--image", str(file), site.house.script(TELL))

    assert "torch 2.14.0 in" in said


def test_what_is_no_image_of_this_server_is_refused_at_submit(site: Site) -> None:
    """An image of a registry among it: this engine could not run it."""
    for word in ("docker.io/pytorch/pytorch:2.8.0-cuda12.8-cudnn9-runtime", "f" * 64, "smal"):
        done = site.house.run("run", "--image", word, site.house.script(TELL))
        assert done.returncode == 2
        assert b"small" in done.stderr
        assert word.encode() in done.stderr


def test_an_image_that_cannot_be_made_ends_the_job_with_its_own_reason(site: Site) -> None:
    """Not the user's fault, and told in the installer's words."""
    small.wheel(site.wheels, "einops", "0.8.1", body="import this\n")
    job = site.submit(TELL, "--image", "small", "--retry-on", "none")

    ended = site.ended(job)

    assert ended["state"] == "failed"
    assert (ended["reason"]["code"], ended["reason"]["blame"]) == ("environment-failed", "platform")
    assert "einops" in ended["reason"]["sentence"]
    assert not site.store.realised(site.id)


def test_what_a_running_job_uses_cannot_be_removed(site: Site) -> None:
    script = "import time, torch\nprint('ready', flush=True)\ntime.sleep(600)\n"
    job = site.submit(script, "--image", "small")
    until(lambda: "ready" in site.house.good("logs", job))

    refused = site.house.run("image", "rm", "small")
    assert refused.returncode == 5
    assert job.encode() in refused.stderr

    site.house.good("stop", "--wait", job)
    site.house.good("image", "rm", "small")
    again = site.submit(TELL, "--image", "small")
    assert site.ended(again)["state"] == "succeeded"
    assert "image-ready" in site.keys(again)


def test_two_jobs_that_want_it_at_once_have_it_made_once(site: Site) -> None:
    jobs = [site.submit(TELL, "--image", "small") for _ in range(2)]

    assert [site.ended(job)["state"] for job in jobs] == ["succeeded"] * 2
    told = [key for job in jobs for key in site.keys(job)]
    assert told.count("image-realising") == 1


# ---------------------------------------------------------------- packages of a job's own

ALSO = """
import sys, einops, torch
from importlib.util import find_spec
found = find_spec("tqdm") is not None
print("einops", einops.__version__, "torch", torch.__version__, "tqdm", found)
print("in", sys.prefix)
"""


def test_packages_of_a_job_s_own_come_on_top_of_the_image(site: Site) -> None:
    """From the code directory and from the command line; the next job finds them ready."""
    small.wheel(site.wheels, "tqdm", "4.67.0")
    small.wheel(site.wheels, "einops", "0.9.0")
    script = Path(site.house.script(ALSO))
    (script.parent / "pip-requirements.txt").write_text("einops>=0.9\n")
    words = ("run", "--image", "small", "--with", "tqdm", str(script))

    said = site.house.good(*words)

    assert "einops 0.9.0 torch 2.13.0+cpu tqdm True" in said
    assert site.house.good(*words).splitlines()[1:] == said.splitlines()[1:]
    jobs = sorted(site.house.json("ps", "-a")["jobs"], key=lambda one: int(one["created_at"]))
    first, second = (site.keys(one["id"]) for one in jobs)
    assert first.count("image-ready") == 2
    assert "image-ready" not in second
    # The image itself is as it was.
    assert "einops 0.8.1 torch 2.13.0+cpu tqdm False" in site.house.good(
        "run", "--image", "small", site.house.script(ALSO)
    )


INSTALLS = """
import importlib.metadata, os, subprocess, sys
subprocess.run(["pip", "install", "-q", "tqdm", "einops==0.9.0"], check=True)
subprocess.run([sys.executable, "-m", "pip", "uninstall", "-q", "-y", "numpy"], check=True)
subprocess.run(["run-tqdm"], stderr=subprocess.DEVNULL)
found = sorted(f"{one.name}={one.version}" for one in importlib.metadata.distributions())
print("now", *(one for one in found if not one.startswith("pip")))
"""


@pytest.fixture
def installing(site: Site) -> Site:
    """The site with an image that has pip, and more packages to install."""
    wheels = [small.wheel(site.wheels, *one) for one in small.PACKAGES.items()]
    small.wheel(site.wheels, "tqdm", "4.67.0")
    small.wheel(site.wheels, "einops", "0.9.0")
    known.register(site.store, "pip", small.locked([*wheels, small.with_pip(site.wheels)]))
    return site


@pytest.mark.usefixtures("apart")
def test_pip_install_in_a_job_just_works_and_nobody_else_sees_it(installing: Site) -> None:
    run = ("run", "--image", "pip", installing.house.script(INSTALLS))

    for _ in range(2):
        said = installing.house.good(*run)
        assert "now einops=0.9.0 torch=2.13.0+cpu tqdm=4.67.0\n" in said

    image = known.find(installing.store, "pip").id
    names = {path.name for path in installing.environment(image).iterdir()}
    assert {"numpy", "numpy-2.4.0.dist-info", "einops-0.8.1.dist-info"} <= names
    assert "tqdm" not in names
    sealed = seal.load(installing.store.part("seals") / f"{digits(image)}.json")
    assert seal.check_all(installing.store.environment(image), sealed) == []


@pytest.mark.parametrize("line", ["torch==2.7.1", "-e ."])
def test_packages_that_would_replace_torch_or_are_none_end_the_job(site: Site, line: str) -> None:
    script = Path(site.house.script(ALSO))
    (script.parent / "pip-requirements.txt").write_text(f"{line}\n")
    job = site.house.good("run", "-d", "--image", "small", str(script)).strip()

    ended = site.ended(job)

    assert ended["reason"]["code"] == "requirements-failed"
    assert ended["reason"]["blame"] == "user"
    assert line in ended["reason"]["sentence"]


def test_an_override_is_another_image(site: Site) -> None:
    small.wheel(site.wheels, "torch", "2.7.1")
    words = ("run", "--image", "small", "--with", "torch==2.7.1", site.house.script(TELL))

    assert site.house.run(*words).returncode == 1
    assert "torch 2.7.1 in" in site.house.good(words[0], "--override-image", *words[1:])


def test_what_is_no_package_is_refused_at_submit(site: Site) -> None:
    for word in ("--index-url=https://example.org", "./x", "a b", "x@https://example.org/x.whl"):
        done = site.house.run("run", "--image", "small", f"--with={word}", site.house.script(ALSO))
        assert done.returncode == 2
        assert b"danlu.packages[0]" in done.stderr


def test_a_replay_runs_in_the_image_that_the_name_meant_then(site: Site) -> None:
    site.house.good("run", "--name", "then", "--image", "small", site.house.script(TELL))
    first = site.house.json("ps", "--all")["jobs"][0]
    assert (first["image"], first["image_name"]) == (site.id, "small")
    assert site.id[:19] in site.house.good("show", first["id"])
    other = [
        small.wheel(site.wheels, "torch", "2.13.0+cpu"),
        small.wheel(site.wheels, "six", "1.0"),
    ]
    known.unregister(site.store, known.find(site.store, "small"))
    known.register(site.store, "small", small.locked(other))
    site.house.good("run", "--image", "small", site.house.script(TELL))
    assert site.house.json("ps", "--all")["jobs"][0]["image"] != site.id
    site.house.good("replay", first["id"])
    assert site.house.json("ps", "--all")["jobs"][0]["image"] == site.id
