"""danlu outputs: what was delivered is proved file by file, and what has changed since is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from danlu.model.manifest import HIDDEN
from danlu.stores.folder import FolderStore
from tests.faces.cli.house import House

SCRIPT = """
import argparse, pathlib
parser = argparse.ArgumentParser()
parser.add_argument("--model")
out = pathlib.Path(parser.parse_args().model)
for step in (100, 200):
    (out / f"step-{step}").mkdir(parents=True)
    (out / f"step-{step}" / "weights.bin").write_bytes(bytes(range(256)) * 400)
(out / "done.txt").write_text("ok")
"""


@pytest.fixture(scope="module", params=["folder", "objects"])
def delivered(
    request: pytest.FixtureRequest, house: House, tmp_path_factory: pytest.TempPathFactory
) -> tuple[House, str, Path | None]:
    """A job that has delivered, and its directory where it is one."""
    kept = tmp_path_factory.mktemp("kept") if request.param == "folder" else None
    wanted = f"model={kept}" if kept else "model"
    job = house.good("run", "-d", "--output", wanted, house.script(SCRIPT)).strip()
    house.good("logs", "-f", job)
    return house, job, kept


def damage(house: House, job: str, kept: Path | None, name: str, data: bytes | None) -> None:
    """Change (None = remove) a delivered file behind the platform's back."""
    if kept is not None:
        if data is None:
            (kept / name).unlink()
        else:
            (kept / name).write_bytes(data)
        return
    shown = json.loads(house.good("show", "--json", job))["outputs"][0]["url"]
    bucket, _, prefix = shown.removeprefix("obs://").partition("/")
    store = FolderStore(house.data / "objects")
    if data is None:
        store.delete(bucket, [f"{prefix.rstrip('/')}/{name}"])
    else:
        store.put(bucket, f"{prefix.rstrip('/')}/{name}", data)


def test_what_was_delivered_is_proved_and_what_changed_is_named(
    delivered: tuple[House, str, Path | None],
) -> None:
    """(faults 24, 25) a truncated file, a flipped bit, a missing file"""
    house, job, kept = delivered
    (one,) = [json.loads(line) for line in house.good("outputs", "--json", job).splitlines()]
    size = 2 * 256 * 400 + 2
    assert (one["state"], one["files"], one["bytes"], one["exit_code"]) == (
        "committed", 3, size, 0,
    )  # fmt: skip
    assert house.run("outputs", "--verify", job).returncode == 0
    whole = bytes(range(256)) * 400
    flipped = bytes([whole[0] ^ 1]) + whole[1:]
    for name, data, problem in (
        ("step-200/weights.bin", flipped, "content"),
        ("step-200/weights.bin", whole[:-1], "size"),
        ("done.txt", None, "missing"),
    ):
        damage(house, job, kept, name, data)
        done = house.run("outputs", "--verify", "--json", job)
        files = [json.loads(line) for line in done.stdout.splitlines()[1:]]
        assert done.returncode == 1
        assert {file["file"]: file["problem"] for file in files}[name] == problem
        assert {file["file"]: file["problem"] for file in files}["step-100/weights.bin"] == ""
    done = house.run("outputs", "--verify", job)
    assert b"done.txt  is not there" in done.stdout


def test_a_job_that_delivered_nothing_says_so(house: House) -> None:
    job = house.good("run", "-d", house.script("print('hi')")).strip()
    house.good("logs", "-f", job)
    assert house.good("outputs", "--json", job) == ""
    assert house.run("outputs", "--verify", job).returncode == 0


def test_the_platforms_directory_is_not_brought_to_a_script(house: House, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    house.good("run", "-q", "--output", f"model={kept}", house.script(SCRIPT))
    assert (kept / HIDDEN).is_dir()
    look = """
import argparse, os
parser = argparse.ArgumentParser()
parser.add_argument("--model")
print(sorted(os.listdir(parser.parse_args().model)))
"""
    said = house.good("run", "--prefetch", "--output", f"model={kept}", house.script(look))
    assert said.strip() == "['done.txt', 'step-100', 'step-200']"
