"""What a script finds: arguments, environment and paths as on ModelArts."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from danlu.model.job import Access, EngineChoice, Input, Output, Parameter
from danlu.model.resources import Gpu
from danlu.model.script import Layout, TaskPlan, world
from danlu.model.url import LocalUrl, ObjectUrl

LITERAL = Layout("/home/ma-user", "/cache", "/tmp", "/usr/bin/python", "/usr/bin:/bin")
MAPPED = Layout("/w/home", "/w/cache", "/w/tmp", "/env/bin/python", "/env/bin:/usr/bin:/bin")
PLAN = TaskPlan(
    job_id="j",
    attempt=1,
    index=0,
    token="t",
    job_name="n",
    code=ObjectUrl("b", "code/1/app/"),
    boot_file="train.py",
    parameters=(Parameter("lr", "0.1"), Parameter("lr", "0.2")),
    inputs=(
        Input("data_url", ObjectUrl("b", "data/")),
        Input("extra", LocalUrl("/x"), Access.ENV),
    ),
    outputs=(Output("train_url", ObjectUrl("b", "out/")),),
)


def test_arguments_stand_at_the_end_in_order_duplicates_kept() -> None:
    assert world(PLAN, LITERAL).argv == (
        "/usr/bin/python",
        "/home/ma-user/modelarts/user-job-dir/app/train.py",
        "--lr=0.1",
        "--lr=0.2",
        "--data_url=/home/ma-user/modelarts/inputs/data_url_0",
        "--train_url=/home/ma-user/modelarts/outputs/train_url_0",
    )


def test_a_channel_by_environment_gets_a_variable_and_no_argument() -> None:
    found = world(PLAN, LITERAL)
    assert found.env["extra"] == "/home/ma-user/modelarts/inputs/extra_1"
    assert not any(arg.startswith("--extra") for arg in found.argv)


def test_a_command_is_a_shell_line_with_quoted_arguments_behind_its_last_program() -> None:
    plan = replace(
        PLAN, boot_file="", command="cd x && torchrun train.py", parameters=(Parameter("a", "b c"),)
    )
    found = world(plan, LITERAL)
    assert found.argv[:2] == ("/bin/bash", "-c")
    assert found.argv[2].startswith("cd x && torchrun train.py '--a=b c' --data_url=")
    assert found.cwd == "/home/ma-user"


@settings(deadline=None, max_examples=50)  # each example starts two programs
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_any_value_survives_the_shell_line(value: str) -> None:
    """(case 92) Quotes, `$HOME`, backticks, newlines and Chinese text reach the program."""
    show = "import sys, json; print(json.dumps(sys.argv[1:]))"
    line = f"{shlex.quote(sys.executable)} -I -S -c '{show}'"
    plan = replace(PLAN, boot_file="", command=line, parameters=(Parameter("v", value),), inputs=())
    argv = world(replace(plan, outputs=()), LITERAL).argv
    shell = ["/bin/sh", *argv[1:]]
    quiet = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(shell, check=True, capture_output=True, env=quiet)
    assert json.loads(done.stdout) == [f"--v={value}"]


def test_paths_follow_the_engine() -> None:
    found = world(PLAN, MAPPED)
    assert not MAPPED.literal
    assert LITERAL.literal
    assert found.code_dir == "/w/home/modelarts/user-job-dir/app"
    assert found.inputs == (
        "/w/home/modelarts/inputs/data_url_0",
        "/w/home/modelarts/inputs/extra_1",
    )
    assert found.cwd == found.code_dir
    moved = replace(
        PLAN,
        working_dir="/cache/run",
        local_code_dir="/home/ma-user/code",
        inputs=(Input("d", ObjectUrl("b", "d/"), local_dir="/cache/data"),),
    )
    found = world(moved, MAPPED)
    assert (found.cwd, found.code_dir, found.inputs) == (
        "/w/cache/run",
        "/w/home/code/app",
        ("/w/cache/data",),
    )


DOCUMENTED = [
    "MA_HOME",
    "MA_JOB_DIR",
    "MA_MOUNT_PATH",
    "MA_LOG_DIR",
    "MA_SCRIPT_INTERPRETER",
    "WORKSPACE",
    "MA_CODE_DIR",
    "MA_NUM_HOSTS",
    "VC_WORKER_NUM",
    "VC_TASK_INDEX",
    "VC_WORKER_HOSTS",
    "MA_NUM_GPUS",
    "MA_TASK_NAME",
    "MA_CURRENT_IP",
    "MA_CURRENT_INSTANCE_NAME",
    "MA_VJ_NAME",
    "MA_HJ_NAME",
    "MA_NAMESPACE",
    "MA_CURRENT_HOST_IP",
    "MA_JOB_KIND",
    "MA_INPUTS",
    "MA_OUTPUTS",
    "MA_RUN_METHOD",
]


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_documented_variable_is_set(name: str) -> None:
    assert world(PLAN, LITERAL).env[name]


def test_the_variables_of_a_gang() -> None:
    gang = replace(
        PLAN, node_count=2, index=1, hosts=("h0", "h1"), rendezvous_port=999, gpus=_gpus(2)
    )
    env = world(gang, LITERAL).env
    assert env["VC_WORKER_HOSTS"] == "h0,h1"
    assert env["VC_TASK_INDEX"] == "1"
    assert env["MA_NUM_HOSTS"] == "2"
    assert env["MA_NUM_GPUS"] == "2"
    assert env["CUDA_VISIBLE_DEVICES"] == "GPU-0,GPU-1"
    assert env["MA_VJ_NAME"] == "ma-job-j"
    assert env["MA_CURRENT_INSTANCE_NAME"] == "modelarts-job-j-worker-1"
    assert env["MA_CURRENT_IP"] == "h1"


def test_a_preset_engine_hands_its_boot_file_the_rendezvous() -> None:
    gang = replace(PLAN, node_count=2, hosts=("h0", "h1"), index=1, rendezvous_port=999)
    assert "--init_method" not in " ".join(world(gang, LITERAL).argv)
    preset = replace(gang, engine=EngineChoice(engine_id="pytorch"))
    assert world(preset, LITERAL).argv[-3:] == (
        "--init_method=tcp://h0:999",
        "--rank=1",
        "--world_size=2",
    )


def test_a_task_without_gpus_sees_none() -> None:
    env = world(PLAN, LITERAL).env
    assert env["CUDA_VISIBLE_DEVICES"] == ""
    assert env["MA_NUM_GPUS"] == "0"


def test_channels_are_listed_as_json() -> None:
    listed = json.loads(world(PLAN, LITERAL).env["MA_INPUTS"])
    assert [item["name"] for item in listed] == ["data_url", "extra"]
    assert listed[0]["remote"] == {"obs": {"obs_url": "obs://b/data/"}}


def _gpus(count: int) -> tuple[Gpu, ...]:
    return tuple(Gpu(f"GPU-{i}", i, "V100", 1) for i in range(count))


def test_a_notebook_is_executed_by_the_module_of_the_runtime() -> None:
    found = world(replace(PLAN, boot_file="a/train.ipynb"), replace(LITERAL, runtime="/runtime"))
    assert found.argv[:5] == (
        "/usr/bin/python",
        "-m",
        "danlu_run_notebook",
        "/home/ma-user/modelarts/user-job-dir/app/a/train.ipynb",
        "--lr=0.1",
    )
    assert found.env["PYTHONPATH"].endswith(":/runtime")
