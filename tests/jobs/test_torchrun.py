"""A real torchrun over two tasks of one job: gloo finds its rendezvous through our variables."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faces.cli.house import House, opened
from tests.services import ROOT, torch_python

pytestmark = [pytest.mark.torch, pytest.mark.long]


@pytest.fixture(scope="module")
def torch_house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    environment = torch_python().parent.parent
    root = tmp_path_factory.mktemp("torch")
    (root / "data" / "environments").mkdir(parents=True)
    (root / "data" / "environments" / "default").symlink_to(environment)
    with opened(root) as made:
        yield made


COMMAND = (
    "torchrun --nnodes=$MA_NUM_HOSTS --node_rank=$VC_TASK_INDEX --nproc_per_node=1"
    " --master_addr=${VC_WORKER_HOSTS%%,*} --master_port=$MA_RENDEZVOUS_PORT"
    " $MA_CODE_DIR/train.py"
)


def test_two_tasks_train_one_model(torch_house: House) -> None:
    house = torch_house
    code = str(ROOT / "examples" / "ddp")
    done = house.run(
        "run", "--code", code, "--nodes", "2", "--flavor", "danlu.cpu.1u", "--param", "steps=20",
        "--env", "OMP_NUM_THREADS=1", "--", COMMAND,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode() + done.stdout.decode()
    job = house.json("show", "@last")
    assert [task["exit_code"] for task in job["tasks"]] == [0, 0]
    logs = [house.good("logs", job["id"], "--task", f"worker-{i}") for i in (0, 1)]
    assert any("agree" in log for log in logs), logs


def test_the_environment_of_the_job_is_the_one_with_torch(torch_house: House) -> None:
    script = torch_house.script("import sys, torch; print(sys.prefix, torch.__version__)")
    said = torch_house.good("run", script)
    assert os.path.realpath(said.split()[0]) == os.path.realpath(Path(torch_python()).parent.parent)
