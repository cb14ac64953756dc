"""A lock becomes an environment: once, whole, proved, and shared by whoever wants it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from danlu.images import seal
from danlu.images.realise import realise
from danlu.images.store import digits
from danlu.model.errors import Refused
from danlu.ports import crash
from tests.images import small
from tests.images.small import World

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def ask(world: World, code: str) -> str:
    python = world.environment() / "bin" / "python"
    return subprocess.run(
        [python, "-I", "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_it_holds_what_the_lock_says_and_nothing_else(world: World) -> None:
    made = world.realise()

    code = "from importlib.metadata import distributions as d; print(sorted(x.name for x in d()))"
    assert ask(world, code) == str(sorted(small.PACKAGES))
    assert ask(world, "import torch; print(torch.__version__)") == "2.13.0+cpu"
    assert (made.torch, made.packages) == ("2.13.0+cpu", 3)
    # What it is, and what it is not: the packages are the lock's, the system is the host's.
    assert (made.realisation, made.os) == ("venv", "host")
    assert made.python.startswith(small.PYTHON)
    assert made.system


def test_its_scripts_run_where_it_was_put(world: World) -> None:
    """It was made elsewhere: a script's first line must not say where."""
    world.realise()

    script = (world.environment() / "bin" / "run-torch").read_text()
    assert str(world.store.root) not in script
    assert script.startswith("#!")


def test_nobody_can_write_to_it_and_modules_are_compiled(world: World) -> None:
    world.realise()

    writable = [
        path
        for path in (world.environment(), *world.environment().rglob("*"))
        if not path.is_symlink() and path.stat().st_mode & 0o222
    ]
    assert not writable
    assert list(world.site().glob("torch/__pycache__/*.pyc"))


def test_a_second_one_is_made_offline_of_the_same_files(world: World) -> None:
    """What is cached is enough, and is linked, not copied."""
    first = world.realise()
    inode = (world.site() / "numpy" / "data.bin").stat().st_ino
    compiled = next(world.site().glob("torch/__pycache__/*.pyc")).stat().st_ino
    world.store.remove(world.id)
    world.said.clear()

    second = world.realise()

    assert second.digest == first.digest
    assert (world.site() / "numpy" / "data.bin").stat().st_ino == inode
    assert next(world.site().glob("torch/__pycache__/*.pyc")).stat().st_ino == compiled
    assert world.told() == ["image-realising", "image-ready"]


def test_equal_packages_are_equal_wherever_they_are_made(world: World, tmp_path: Path) -> None:
    """The digest of an environment says nothing of its place, its time or its cache."""
    other = World(tmp_path / "elsewhere")

    assert other.id == world.id
    assert other.realise().digest == world.realise().digest


def test_what_is_ready_is_not_made_again(world: World) -> None:
    first = world.realise()
    world.said.clear()

    assert world.realise() == first
    assert not world.said


def test_a_wheel_that_is_not_the_locked_one_is_refused(world: World) -> None:
    """Same name, same version, other bytes: no environment, and the package is named."""
    small.wheel(world.wheels, "einops", "0.8.1", body="import this\n")

    with pytest.raises(Refused) as caught:
        world.realise()

    assert caught.value.key == "image-not-realised-now"
    assert "einops" in str(caught.value)
    assert not world.environment().exists()
    assert not list((world.store.root / "making").iterdir())


def test_an_image_for_another_machine_is_refused(world: World) -> None:
    """(case A3)"""
    other = world.store.keep(replace(world.lock, arch="s390x"))

    with pytest.raises(Refused, match="s390x"):
        world.realise(other)


def test_a_byte_that_changed_in_the_cache_is_found_named_and_mended(world: World) -> None:
    """The environment that is made next would have it too: all are links to one file."""
    world.realise()
    victim = world.site() / "numpy" / "data.bin"
    _flip(victim)
    world.store.remove(world.id)
    world.said.clear()

    world.realise()

    damage = [params for key, params in world.said if key == "image-damaged"]
    assert [(one["package"], Path(one["file"]).name) for one in damage] == [("numpy", "data.bin")]
    assert (world.site() / "numpy" / "data.bin").read_text().startswith("numpy 2.4.0")


def test_a_change_is_found_too_where_nothing_was_sealed(world: World) -> None:
    """A wheel lists its own files: that is enough for whoever never saw it before."""
    world.realise()
    _flip(world.site() / "torch" / "data.bin")
    other = world.store.keep(replace(world.lock, wheels=world.lock.wheels[:1]))

    world.said.clear()
    world.realise(other)

    assert [params["package"] for key, params in world.said if key == "image-damaged"] == ["torch"]


def test_what_cannot_be_mended_is_refused_by_name(world: World) -> None:
    """Its wheel is gone, so the damaged package cannot be fetched again."""
    world.realise()
    _flip(world.site() / "numpy" / "data.bin")
    world.store.remove(world.id)
    small.wheel(world.wheels, "numpy", "2.4.0", body="other = 1\n")

    with pytest.raises(Refused) as caught:
        world.realise()

    assert "numpy" in str(caught.value)
    assert not world.environment().exists()


def _flip(path: Path) -> None:
    """Change one byte in place, as a bad disk or a careless root would."""
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[7] ^= 1
    with path.open("r+b") as file:
        file.write(bytes(data))


@pytest.mark.parametrize("what", ["changed", "missing", "added"])
def test_verify_names_every_file_that_is_not_as_it_was_made(world: World, what: str) -> None:
    world.realise()
    victim = world.site() / "einops" / "__init__.py"
    victim.parent.chmod(0o755)
    if what == "changed":
        before = victim.stat()
        _flip(victim)
        os.utime(victim, ns=(before.st_atime_ns, before.st_mtime_ns))  # time and size say nothing
    elif what == "missing":
        victim.unlink()
    else:
        victim.with_name("extra.py").write_text("x = 1\n")
    sealed = seal.load(world.store.root / "seals" / f"{digits(world.id)}.json")

    damaged = seal.check_all(world.environment(), sealed)

    name = "extra.py" if what == "added" else "__init__.py"
    assert [Path(one.path).name for one in damaged] == [name]
    assert (damaged[0].package == "einops") is (what != "added")
    assert bool(damaged[0].found) is (what != "missing")


def test_many_at_once_make_each_environment_once(world: World) -> None:
    """The same image and another one, by eight threads that start together."""
    other = world.store.keep(replace(world.lock, wheels=world.lock.wheels[1:]))
    wanted = [world.id, other] * 4

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(world.realise, wanted))

    assert [one.id for one in made] == wanted
    assert world.told().count("image-realising") == 2


REALISE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.images.small import World
print(World(Path(sys.argv[1])).realise().id)
"""


def in_process(world: World, points: Path) -> subprocess.Popen[str]:
    root = Path(__file__).resolve().parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", REALISE, str(world.store.root.parent), str(root)],
        env={**os.environ, crash.VARIABLE: str(points)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_several_processes_take_turns(world: World, tmp_path: Path) -> None:
    runs = [in_process(world, tmp_path) for _ in range(3)]

    assert [run.communicate()[0].strip() for run in runs] == [world.id] * 3


@pytest.mark.parametrize("point", [one for one in crash.POINTS if one.startswith("image.")])
def test_killed_anywhere_it_leaves_no_half_environment(
    world: World, tmp_path: Path, point: str
) -> None:
    """kill -9 at each point; the next one finishes the work and sweeps what was left."""
    points = tmp_path / "points"
    points.mkdir()
    (points / point).write_text("kill\n")
    run = in_process(world, points)
    run.communicate()

    assert run.returncode == -signal.SIGKILL
    assert (world.store.realised(world.id) is not None) is (point == "image.after-publish")

    made = world.realise()
    assert ask(world, "import torch; print(torch.__version__)") == made.torch
    assert not list((world.store.root / "making").iterdir())


def test_killed_inside_uv_it_leaves_nothing_either(world: World, tmp_path: Path) -> None:
    """The orphaned uv keeps the turn: nobody makes the same place beside it."""
    for _ in range(3):
        run = in_process(world, tmp_path)
        deadline = run
        while deadline.poll() is None and not list(world.store.part("making").iterdir()):
            pass
        run.kill()
        run.communicate()

    world.realise()

    assert not list((world.store.root / "making").iterdir())
    assert ask(world, "import numpy; print(numpy.__version__)") == "2.4.0"


def test_what_is_not_wanted_any_more_stops(world: World) -> None:
    """`check` raises, as it does when a job is stopped: nothing is left of the work."""
    calls = iter(range(1000))

    def check() -> None:
        if next(calls) > 3:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        realise(world.store, world.id, "small", replace(world.making, check=check))

    assert not world.environment().exists()
    assert not list((world.store.root / "making").iterdir())
    world.realise()


def test_its_record_is_in_it(world: World) -> None:
    made = world.realise()
    data = json.loads((world.environment() / "danlu-image.json").read_text())

    assert data["id"] == made.id
    assert data["digest"] == made.digest


def other(world: World) -> str:
    """Another image that shares all but one package with the first."""
    wheels = [one for one in world.lock.wheels if one.name != "einops"]
    return world.store.keep(small.locked([*wheels, small.wheel(world.wheels, "tqdm", "4.67.0")]))


def module(world: World, image_id: str, name: str) -> Path:
    return next(world.site(image_id).glob(f"{name}/__pycache__/*.pyc"))


def test_modules_that_another_image_has_are_not_compiled_again(world: World) -> None:
    world.realise()
    second = other(world)
    world.realise(second)

    for name in ("torch", "numpy"):
        first = module(world, world.id, name).stat()
        assert module(world, second, name).stat().st_ino == first.st_ino
    assert module(world, second, "tqdm").is_file()


def test_a_compiled_module_that_was_changed_is_not_taken_over(world: World) -> None:
    """It is never held against its source again: whatever it says would run."""
    world.realise()
    changed = module(world, world.id, "torch")
    changed.chmod(0o644)
    changed.write_bytes(changed.read_bytes() + b"x")
    second = other(world)
    world.realise(second)

    assert module(world, second, "torch").stat().st_ino != changed.stat().st_ino
    assert module(world, second, "numpy").stat().st_ino == module(
        world, world.id, "numpy").stat().st_ino  # fmt: skip
