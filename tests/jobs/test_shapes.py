"""Scripts in the shapes in which public ModelArts scripts are written run unmodified."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.faces.cli.house import House, until

ARGPARSE = """
import argparse, json, os
parser = argparse.ArgumentParser()
parser.add_argument("--data_url")
parser.add_argument("--train_url")
parser.add_argument("--lr", type=float)
parser.add_argument("--num_gpus", type=int, default=0)
args = parser.parse_args()
names = sorted(os.listdir(args.data_url))
with open(os.path.join(args.train_url, "metric.json"), "w") as file:
    json.dump({"inputs": names, "lr": args.lr}, file)
os.makedirs(os.path.join(args.train_url, "model"))
open(os.path.join(args.train_url, "model", "weights.bin"), "wb").write(b"w" * 1000)
print("trained on", names)
"""

SHELL = """#!/bin/bash
set -e
echo "hosts=$VC_WORKER_HOSTS index=$VC_TASK_INDEX of=$MA_NUM_HOSTS gpus=$MA_NUM_GPUS"
cd "$MA_CODE_DIR"
exec python child.py "$@"
"""

MARKER = """
import os
name = os.environ.get("MA_VJ_NAME")
assert name and name.startswith("ma-job-"), name
log = os.path.join(os.environ["MA_LOG_DIR"], name.replace("ma-job", "modelarts-job"), "worker-0")
os.makedirs(log, exist_ok=True)
print("on ModelArts:", os.environ["DANLU_JOB_ID"] in name)
"""

ONE_RANK_SYNCS = """
import os, shutil, sys, time
rank = int(os.environ["VC_TASK_INDEX"])
shared = sys.argv[1].partition("=")[2]
lock = os.path.join(shared, "synced")
if rank == 0:
    time.sleep(0.3)
    open(lock, "w").close()
while not os.path.exists(lock):
    time.sleep(0.01)
print("rank", rank, "goes on")
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "数据 set"
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    (folder / "空 格.txt").write_text("b")
    return folder


def test_data_url_and_train_url(house: House, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    house.good(
        "run", "--input", f"data_url={data}", "--output", f"train_url={out}", "--param", "lr=0.1",
        house.script(ARGPARSE),
    )  # fmt: skip
    assert json.loads((out / "metric.json").read_text()) == {
        "inputs": ["a.txt", "空 格.txt"],
        "lr": 0.1,
    }
    assert (out / "model" / "weights.bin").read_bytes() == b"w" * 1000


def test_a_second_job_reads_what_the_first_one_wrote_to_storage(house: House, data: Path) -> None:
    place = "obs://danlu/shapes/first/"
    house.good(
        "run", "--input", f"data_url={data}", "--output", f"train_url={place}",
        house.script(ARGPARSE),
    )  # fmt: skip
    said = house.good(
        "run", "--input", f"data_url={place}", "--output", "train_url", house.script(ARGPARSE)
    )
    assert "['metric.json', 'model']" in said


def test_a_shell_script_that_hands_its_arguments_on(house: House) -> None:
    script = house.script("import sys; print(sys.argv[1:])", "child.py")
    (Path(script).parent / "run.sh").write_text(SHELL)
    folder = str(Path(script).parent)
    said = house.good(
        "run", "--code", folder, "--param", "name=a b", "--", 'bash "$MA_CODE_DIR/run.sh"'
    )
    assert "hosts=127.0.0.1 index=0 of=1 gpus=0" in said
    assert "['--name=a b']" in said


def test_a_command_that_changes_directory_first(house: House) -> None:
    script = house.script("import os, sys; print(os.getcwd(), sys.argv[1:])")
    folder = str(Path(script).parent)
    said = house.good(
        "run", "--code", folder, "--param", "x=$HOME `id`", "--",
        "cd $MA_CODE_DIR && python train.py",
    )  # fmt: skip
    assert "['--x=$HOME `id`']" in said
    assert f"/{Path(folder).name} [" in said


def test_the_marker_variable_says_where_it_runs(house: House) -> None:
    assert "on ModelArts: True" in house.good("run", house.script(MARKER))


def test_ranks_wait_for_the_first_one(house: House) -> None:
    done = house.run(
        "run", "--nodes", "2", "--flavor", "danlu.cpu.1u", "--param", f"shared={house.shared}",
        house.script(ONE_RANK_SYNCS),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    job = house.json("show", "@last")["id"]
    for rank in (0, 1):
        log = house.good("logs", job, "--task", f"worker-{rank}")
        assert log == f"rank {rank} goes on\n"


def test_one_failing_rank_ends_the_others_soon_and_is_named(house: House) -> None:
    """(case 64)"""
    script = house.script(
        "import os, sys, time\n"
        "if os.environ['VC_TASK_INDEX'] == '1':\n"
        "    time.sleep(0.3); sys.exit(9)\n"
        "time.sleep(600)\n"
    )
    done = house.run("run", "--nodes", "2", "--flavor", "danlu.cpu.1u", script)
    assert done.returncode == 1
    job = house.json("show", "@last")
    assert job["reason"]["params"] == {"task": "worker-1", "exit_code": 9}


def test_checkpoints_of_an_earlier_run_come_back(house: House) -> None:
    script = house.script(
        "import os, sys\n"
        "out = sys.argv[1].partition('=')[2]\n"
        "found = sorted(os.listdir(out))\n"
        "print('found', found)\n"
        "open(os.path.join(out, f'epoch-{len(found)}.pt'), 'w').write('x')\n"
    )
    body = {
        "kind": "job",
        "metadata": {"name": "resume"},
        "algorithm": {
            "command": f"python {shlex.quote(script)}",
            "outputs": [
                {
                    "name": "train_url",
                    "prefetch_to_local": True,
                    "remote": {"obs": {"obs_url": "obs://danlu/resume/"}},
                }
            ],
        },
        "spec": {"resource": {"flavor_id": "danlu.cpu.1u", "node_count": 1}},
    }
    file = house.home / "resume.json"
    file.write_text(json.dumps(body))
    for expected in ("[]", "['epoch-0.pt']", "['epoch-0.pt', 'epoch-1.pt']"):
        assert f"found {expected}" in house.good("run", "-f", str(file))
        until(lambda: house.state("@last") == "succeeded")
