"""The six shapes in which public scripts for ModelArts are written run as they are, on obs://."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import moxing as mox
from tests.faces.cli.house import House, opened, until
from tests.services import torch_python

SHAPES = Path(__file__).parent / "shapes"
DATA = {"1.jpg": b"one", "2.jpg": b"two", "labels.txt": b"a b", "deep/3.jpg": b"three"}


def filled(house: House, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a test's objects lie: the administrator puts the data there and looks at results."""
    ready = json.loads((house.data / "server.json").read_text())
    monkeypatch.setenv("DANLU_OBS_ENDPOINT", ready["obs"])
    monkeypatch.setenv("DANLU_OBS_ACCESS_KEY", ready["access_key"])
    monkeypatch.setenv("DANLU_OBS_SECRET_KEY", ready["secret_key"])
    monkeypatch.delenv("MOXING_OBS_DIR", raising=False)
    for name, content in DATA.items():
        mox.file.write(f"obs://danlu/shapes/data/{name}", content)
    if mox.file.exists("obs://danlu/shapes/out"):
        mox.file.remove("obs://danlu/shapes/out", recursive=True)
    return "obs://danlu/shapes"


@pytest.fixture
def storage(house: House, monkeypatch: pytest.MonkeyPatch) -> str:
    return filled(house, monkeypatch)


def run(house: House, storage: str, *what: str) -> str:
    """A job that is told of the storage by its arguments."""
    return house.good(
        "run", "--param", f"data_url={storage}/data", "--param", f"train_url={storage}/out", *what
    )


def found(storage: str) -> dict[str, bytes]:
    """What lies below the output."""
    out = f"{storage}/out"
    return {
        name: mox.file.read(f"{out}/{name}", binary=True)
        for name in mox.file.list_directory(out, recursive=True)
        if not mox.file.is_directory(f"{out}/{name}")
    }


def test_data_to_the_cache_and_results_back(house: House, storage: str) -> None:
    said = run(
        house, storage, "--param", "init_method=tcp://127.0.0.1:1", "--param", "num_gpus=0",
        "--param", "epochs=2", str(SHAPES / "detector.py"),
    )  # fmt: skip
    assert "trained on ['1.jpg', '2.jpg'] with 0 GPUs" in said
    assert {name: len(data) for name, data in found(storage).items()} == {
        "epoch_0.weights": 2000,
        "epoch_1.weights": 2000,
    }


def test_one_rank_brings_the_data_for_all(house: House, storage: str) -> None:
    said = run(house, storage, "--code", str(SHAPES), "--", 'bash "$MA_CODE_DIR/ranks.sh"')

    names = b"1.jpg 2.jpg deep labels.txt"
    assert found(storage) == {f"rank_{rank}.log": names for rank in range(4)}
    assert said.count("from path: ") == 2


def test_the_file_module_by_its_own_import(house: House, storage: str) -> None:
    assert "accuracy 0.9" in run(house, storage, str(SHAPES / "lab.py"))
    assert sorted(found(storage)) == ["labels.txt", "metric.json", "model/saved_model.pb"]


def test_plain_python_after_a_shift(house: House, storage: str) -> None:
    said = run(house, storage, str(SHAPES / "shifted.py"))

    assert "['m.bin', 'total.txt']" in said
    assert found(storage)["total.txt"] == b"9\n"


def test_a_script_that_asks_where_it_is(house: House, storage: str) -> None:
    run(house, storage, str(SHAPES / "marker.py"))

    assert found(storage) == {"names.txt": b"1.jpg 2.jpg deep labels.txt"}


def test_what_lies_in_an_output_is_delivered_too(house: House, storage: str) -> None:
    """Channels are staged by the platform, and the script reads more by itself."""
    script = house.script(
        "import os, sys, moxing as mox\n"
        "more, data, out = (one.partition('=')[2] for one in sys.argv[1:])\n"
        "mox.file.copy_parallel(more, os.path.join(out, 'more'))\n"
        "print(sorted(os.listdir(data)))\n"
    )
    said = house.good(
        "run", "--param", f"more={storage}/data", "--input", f"data={storage}/data/",
        "--output", f"out={storage}/out/", script,
    )  # fmt: skip
    assert "['1.jpg', '2.jpg', 'deep', 'labels.txt']" in said
    delivered = {name for name in found(storage) if not name.startswith(".danlu/")}
    assert delivered == {f"more/{name}" for name in DATA}


@pytest.fixture(scope="module")
def torch_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    environment = torch_python().parent.parent
    root = tmp_path_factory.mktemp("torch")
    (root / "data" / "environments").mkdir(parents=True)
    (root / "data" / "environments" / "default").symlink_to(environment)
    with opened(root) as made:
        yield made


@pytest.mark.torch
@pytest.mark.long
def test_a_shell_script_that_calls_torchrun_on_two_nodes(
    torch_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = filled(torch_house, monkeypatch)

    run(
        torch_house, storage, "--param", "note=a b $HOME", "--code", str(SHAPES), "--nodes", "2",
        "--flavor", "danlu.cpu.1u", "--env", "OMP_NUM_THREADS=1",
        "--", 'bash "$MA_CODE_DIR/custom.sh"',
    )  # fmt: skip

    # Two ranks found four names each; the argument has come through two shells as it was.
    assert found(storage) == {"count.txt": b"8 a b $HOME"}


KEYS = """
import json, os, sys
names = [f"DANLU_OBS_{name}" for name in ("ACCESS_KEY", "SECRET_KEY", "ENDPOINT")]
with open(os.path.join(sys.argv[1].partition("=")[2], "keys.json"), "w") as file:
    json.dump({name: os.environ[name] for name in names}, file)
import moxing as mox
mox.file.write("obs://danlu/keys/mine", "x")
"""


def test_the_key_of_a_job_dies_with_it_and_is_nowhere_else(
    house: House, storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.good("run", "--output", f"out={tmp_path}/out", house.script(KEYS))
    told = json.loads((tmp_path / "out" / "keys.json").read_text())
    secret = told["DANLU_OBS_SECRET_KEY"]
    assert mox.file.read("obs://danlu/keys/mine") == "x"

    for name, value in told.items():
        monkeypatch.setenv(name, value)
    until(lambda: _refused("obs://danlu/keys/mine"))

    job = house.json("show", "@last")
    assert told["DANLU_OBS_ACCESS_KEY"] == f"job-{job['id']}-1"
    shown = [house.good(command, "@last") for command in ("show", "events", "logs")]
    assert secret not in "".join([*shown, json.dumps(job)])
    # The plan of the task, which only the server's user can read, has to name it.
    kept = [
        path for path in house.data.rglob("*") if path.is_file() and path.stat().st_size < 1 << 24
    ]
    holding = [path for path in kept if secret.encode() in path.read_bytes()]
    assert {path.name for path in holding} <= {"plan.json"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in holding)


def _refused(url: str) -> bool:
    try:
        mox.file.read(url)
    except PermissionError as error:
        assert "A job's key opens" in str(error)  # noqa: PT017 - it is waited for
        return True
    return False


MANY = """
import moxing as mox
for number in range(100):
    mox.file.write(f"obs://danlu/many/{number:03}", str(number))
assert len(mox.file.list_directory("obs://danlu/many")) == 100
mox.file.copy_parallel("obs://danlu/many", "/cache/many")
print("all there")
"""


def test_a_server_that_is_killed_and_comes_back_is_waited_for(
    own_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = own_house
    house.good("down")
    with (
        socket.create_server(("127.0.0.1", 0)) as free,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        house.env["DANLU_PORT"] = str(free.getsockname()[1])
        house.env["DANLU_OBS_PORT"] = str(other.getsockname()[1])
    house.good("up")
    filled(house, monkeypatch)
    house.good("run", "-d", house.script(MANY))
    until(lambda: mox.file.exists("obs://danlu/many/020"))

    house.kill_server()
    house.good("up")

    until(lambda: house.state("@last") in ("succeeded", "failed"))
    assert house.good("logs", "@last").endswith("all there\n")
