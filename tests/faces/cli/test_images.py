"""`danlu image ls, show, realise, rm, gc, lock`: what a person sees, and what a program reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from danlu.faces.cli.main import main
from danlu.images import known, lock
from tests.images.small import World

pytestmark = pytest.mark.timeout(300)


class Cli:
    """The command line on one data directory, whose images are the test's own."""

    def __init__(self, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.data = data
        self._capsys = capsys

    def __call__(self, *words: str, language: str = "en") -> tuple[int, str, str]:
        status = main(["--lang", language, "--data", str(self.data), "image", *words])
        said = self._capsys.readouterr()
        return status, said.out, said.err

    def lines(self, *words: str) -> list[dict[str, object]]:
        status, out, _ = self(*words, "--json")
        assert status == 0
        return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    found = World(tmp_path)
    for name, value in found.variables.items():
        monkeypatch.setenv(name, value)
    known.register(found.store, "small", found.lock)
    return found


@pytest.fixture
def cli(world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path, capsys)


def test_an_image_is_made_listed_verified_and_removed(cli: Cli, world: World) -> None:
    status, out, err = cli("realise", "small")
    assert (status, out.strip()) == (0, str(world.environment()))
    assert "making its environment of 3 packages" in err

    (ready,) = cli.lines("ls", "--ready")
    assert (ready["name"], ready["id"], ready["os"]) == ("small", world.id, "host")
    assert ready["used_at"]
    status, out, err = cli("show", world.id[:19], "--verify")
    assert status == 0
    assert "the system is the host's" in out
    assert "every file is as it was made" in err

    assert cli("rm", "small")[0] == 0
    assert cli.lines("ls", "--ready") == []
    assert {one["name"] for one in cli.lines("ls")} >= {"small", "pytorch-2.13-cpu"}


def test_a_file_that_was_changed_is_named(cli: Cli, world: World) -> None:
    cli("realise", "small")
    victim = world.site() / "numpy" / "__init__.py"
    victim.chmod(0o644)
    victim.write_text("changed\n")

    status, out, err = cli("show", "small", "--verify")

    assert status == 1
    assert "numpy/__init__.py (numpy) is not what it was" in out
    assert "1 file(s)" in err


def test_gc_says_first_what_it_would_do(cli: Cli) -> None:
    cli("realise", "small")

    assert cli("gc")[0] == 2
    status, out, err = cli("gc", "--budget", "0M", "--dry-run")
    assert (status, "small" in out, "would be removed" in err) == (0, True, True)
    (done,) = cli.lines("gc", "--unused-for", "0s", "--budget", "0M")
    assert done["removed"] == [World(cli.data).id]
    assert cli.lines("ls", "--ready") == []


def test_sizes_are_read_or_refused(cli: Cli) -> None:
    status, _, err = cli("gc", "--budget", "lots")
    assert (status, "20G" in err) == (2, True)


def test_an_image_that_there_is_not_is_said_so(cli: Cli) -> None:
    status, _, err = cli("show", "nothing")
    assert (status, "nothing" in err) == (4, True)
    status, _, err = cli("show", "nothing", language="zh")
    assert (status, "没有镜像" in err) == (4, True)


def test_a_lock_s_file_names_its_image(cli: Cli, world: World, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(lock.canonical(world.lock))

    assert cli.lines("show", str(file))[0]["id"] == world.id


def test_a_definition_is_locked_to_a_file(cli: Cli, tmp_path: Path) -> None:
    text = """
schema = 1
name = "small"
version = "1"
[base]
image = "debian:bookworm"
apt_snapshot = "20261101T000000Z"
[python]
version = "3.11"
[torch]
version = "2.13.0"
backends = ["cpu"]
[target]
channels = ["pypi", "index"]
"""
    (tmp_path / "small.toml").write_text(text)
    out = tmp_path / "small.json"

    (made,) = cli.lines("lock", str(tmp_path / "small.toml"), "-o", str(out))

    locked = lock.parse(out.read_text())
    assert made["id"] == lock.image_id(locked)
    assert [(one.name, one.version) for one in locked.wheels] == [("torch", "2.13.0+cpu")]
