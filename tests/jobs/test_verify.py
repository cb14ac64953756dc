"""An image is verified where its jobs run, before the first of them on a flavor; the others do not
wait for it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from danlu.images import known, verified
from danlu.images.store import ImageStore
from danlu.model.verification import Status
from tests.faces.cli.house import House, opened, until
from tests.images import small

pytestmark = pytest.mark.timeout(300)

SAYS = "import sys; print('user code in', sys.prefix, sys.argv[1:])\n"


class Site:
    """A server, and an image of its own for each test: two packages, neither of which is torch."""

    def __init__(self, house: House, wheels: Path, number: int) -> None:
        self.house = house
        self.wheels = wheels
        self.store = ImageStore(house.data / "images")
        self.name = f"small-{number}"
        found = [small.wheel(wheels, name, f"1.{number}") for name in ("alpha", "beta")]
        self.id = known.register(self.store, self.name, small.locked(found)).id

    def run(self, *options: str) -> tuple[str, dict[str, Any]]:
        """A job in the image: its id, and what is known of it once it has ended."""
        script = self.house.script(SAYS)
        job = self.house.good("run", "-d", "--image", self.name, *options, script).strip()
        final = ("succeeded", "failed", "cancelled", "lost")
        until(lambda: self.house.state(job) in final)
        found: dict[str, Any] = self.house.json("show", job)
        return job, found

    def verify(self) -> tuple[int, dict[str, Any]]:
        """What the command gives: its exit status, and the report."""
        done = self.house.run("image", "verify", self.name, "--json")
        found: dict[str, Any] = json.loads(done.stdout)
        return done.returncode, found

    def events(self, job: str) -> dict[str, dict[str, Any]]:
        lines = self.house.good("events", job, "--json").splitlines()
        return {one["key"]: one for one in map(json.loads, lines)}

    def package(self, name: str) -> Path:
        """Where the environment keeps its packages."""
        return next(self.store.environment(self.id).glob("lib/python3*/site-packages")) / name


NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, Path]]:
    root = tmp_path_factory.mktemp("verify")
    wheels = root / "wheels"
    with opened(root, {"PIP_FIND_LINKS": str(wheels), "PIP_NO_INDEX": "1"}) as house:
        yield house, wheels


@pytest.fixture
def site(server: tuple[House, Path]) -> Site:
    return Site(*server, next(NUMBERS))


def test_the_first_job_verifies_and_the_second_does_not(site: Site) -> None:
    first, shown = site.run()

    assert shown["state"] == "succeeded"
    assert "user code in" in site.house.good("logs", first)
    assert "image-verified" in site.events(first)
    report = shown["verification"]
    assert (report["ok"], report["job"], report["image"]) == (True, first, site.id)
    assert [one["number"] for one in report["checks"]] == list(range(1, 29))

    second, again = site.run()

    keys = site.events(second)
    assert "image-verifying" not in keys
    assert keys["image-verified-before"]["params"]["job"] == first
    # The report is that of the first, and is with every job that uses the image there.
    assert again["verification"] == report
    listed = json.loads(site.house.good("image", "show", site.name, "--json"))
    assert listed["verifications"] == [report]


def test_a_job_with_packages_of_its_own_has_the_report_of_what_it_ran_in(site: Site) -> None:
    """Not that of the image below it, which may be verified or not."""
    small.wheel(site.wheels, "gamma", "1.0")
    plain, below = site.run()

    first, shown = site.run("--with", "gamma")
    second, again = site.run("--with", "gamma")

    assert below["verification"]["job"] == plain
    report = shown["verification"]
    assert (report["ok"], report["job"]) == (True, first)
    assert report["image"] not in ("", site.id)
    assert report["image"] == site.events(first)["requirements-installed"]["params"]["image"]
    assert site.events(second)["image-verified-before"]["params"]["job"] == first
    assert again["verification"] == report


def test_without_a_gpu_no_row_about_one_passes(site: Site) -> None:
    """Nothing is proved that was not looked at. (cases 2, 5)"""
    site.run()

    (report,) = verified.every(site.store, site.id)
    found = {one.number: one for one in report.findings}
    assert {found[number].status for number in range(25, 29)} == {Status.SKIPPED}
    assert not report.on_gpus
    # Noise of programs is no part of it, and what the image does not have is not proved either.
    assert found[4].status is Status.SKIPPED
    assert found[1].status is Status.PASS
    assert found[2].status is Status.PASS


def test_a_changed_file_keeps_the_program_from_starting(site: Site) -> None:
    """Whoever changed it: the checks run where the job would, and name the file."""
    site.run()
    victim = site.package("beta") / "data.bin"
    victim.chmod(0o644)
    victim.write_text("other")

    status, report = site.verify()

    assert (status, report["ok"]) == (1, False)
    assert "beta/data.bin" in report["checks"][2]["detail"]
    # What did not pass is tried again before the next job, which does not start.
    job, shown = site.run()
    assert shown["reason"]["code"] == "image-unverified"
    assert "beta/data.bin" in shown["reason"]["sentence"]
    assert "user code" not in site.house.good("logs", job)
    assert shown["attempt"] == 1


@pytest.mark.long
def test_a_package_that_is_not_locked_is_found(site: Site) -> None:
    site.run()
    site.package("").chmod(0o755)
    info = site.package("gamma-2.0.dist-info")
    info.mkdir()
    (info / "METADATA").write_text("Name: gamma\nVersion: 2.0\n")

    _, report = site.verify()

    row = report["checks"][1]
    assert (row["status"], "gamma 2.0 (not locked)" in row["detail"]) == ("FAIL", True)


@pytest.mark.long
def test_verify_is_a_job_like_others_and_prints_its_report(site: Site) -> None:
    done = site.house.run("image", "verify", site.name)

    assert done.returncode == 0, done.stderr.decode()
    assert b"PASS" in done.stdout
    assert b"nothing is said about GPUs" in done.stderr
    (kept,) = verified.every(site.store, site.id)
    assert site.house.state(kept.job) == "succeeded"
    # Whoever asks gets it made again.
    assert site.verify()[1]["job"] != kept.job


def test_a_job_can_be_stopped_while_its_image_is_verified(site: Site) -> None:
    """It was not the image that failed."""
    job = site.house.good("run", "-d", "--image", site.name, site.house.script(SAYS)).strip()
    until(lambda: "image-verifying" in site.events(job))

    site.house.good("stop", "--wait", job)

    # The checks may just have ended.
    assert site.house.json("show", job)["state"] in ("cancelled", "succeeded")
