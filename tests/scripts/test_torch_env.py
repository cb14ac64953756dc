"""Which PyTorch a machine gets, and what it is told when it can get none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from scripts import torch_env
from scripts.torch_env import Failure, Item

PYTHON = Path("python")
OPTIONS_CPU = ("--extra-index-url", f"{torch_env.INDEX}/cpu")


class Pip:
    """Answers dry runs from a table: a requirement's text to the files, nothing to a refusal."""

    def __init__(self, table: dict[str, list[Item]], refusal: str = "ERROR: none") -> None:
        self.table, self.refusal = table, refusal
        self.asked: list[tuple[str, ...]] = []

    def resolve(
        self, _python: Path, wanted: list[str], options: tuple[str, ...]
    ) -> tuple[list[Item], str]:
        self.asked.append((wanted[0], *options))
        place = "local" if "--no-index" in options else wanted[0]
        items = self.table.get(place, [])
        return items, "" if items else self.refusal


LOCAL = Item("torch", "2.13.0+cpu", "file:///wheels/torch-2.13.0%2Bcpu-cp311.whl")
CPU = Item("torch", "2.13.0+cpu", "https://example.org/torch-2.13.0+cpu.whl")
CUDA = Item("torch", "2.13.0", "https://example.org/torch-2.13.0.whl")
NVIDIA = Item("nvidia-cublas", "13.1", "https://example.org/nvidia_cublas.whl")


def plan(
    monkeypatch: pytest.MonkeyPatch, pip: Pip, branch: int | None, platform: str = "linux"
) -> torch_env.Plan:
    monkeypatch.setattr(torch_env, "resolve", pip.resolve)
    monkeypatch.setattr(sys, "platform", platform)
    return torch_env.make_plan(PYTHON, branch, torch_env.INDEX)


def test_without_a_driver_the_file_on_disk_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    pip = Pip({"local": [LOCAL], f"torch @ {LOCAL.url}": [LOCAL]})

    chosen = plan(monkeypatch, pip, None)

    assert (chosen.torch, chosen.options, chosen.cuda) == ("2.13.0+cpu", (), False)
    # The package index, whose default build is the large one, was never asked for it.
    assert all("--no-index" in one for one in pip.asked if one[0] == "torch==2.13.0")


def test_without_a_driver_and_a_file_the_cpu_index_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chosen = plan(monkeypatch, Pip({"torch==2.13.0+cpu": [CPU]}), None)

    assert (chosen.torch, chosen.options) == ("2.13.0+cpu", OPTIONS_CPU)


def test_without_a_driver_a_cuda_file_on_disk_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    local = Item("torch", "2.13.0", "file:///wheels/torch-2.13.0-cp311.whl")
    table = {
        "local": [local],
        f"torch @ {local.url}": [local, NVIDIA],
        "torch==2.13.0+cpu": [CPU],
    }

    assert plan(monkeypatch, Pip(table), None).items == (CPU,)


def test_with_a_driver_the_cuda_build_is_taken_although_a_cpu_file_lies_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = {
        "torch==2.13.0": [LOCAL],
        "torch==2.13.0+cu130": [Item("torch", "2.13.0+cu130", CUDA.url), NVIDIA],
    }

    chosen = plan(monkeypatch, Pip(table), 580)

    assert (chosen.torch, chosen.cuda) == ("2.13.0+cu130", True)


def test_with_a_driver_but_out_of_reach_of_its_build_the_cpu_file_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = {"torch==2.13.0": [LOCAL], "local": [LOCAL], f"torch @ {LOCAL.url}": [LOCAL]}

    chosen = plan(monkeypatch, Pip(table), 580)

    assert (chosen.torch, chosen.why) == ("2.13.0+cpu", "no cu130 build can be reached from here")


def test_other_systems_have_one_build(monkeypatch: pytest.MonkeyPatch) -> None:
    pip = Pip({"torch==2.13.0": [CUDA]})

    assert plan(monkeypatch, pip, None, "darwin").options == ()
    assert pip.asked == [("torch==2.13.0",)]


@pytest.mark.parametrize(
    ("branch", "build"),
    [(None, None), (470, None), (525, "cu126"), (579, "cu126"), (580, "cu130"), (0, "cu130")],
)
def test_the_build_follows_the_driver(branch: int | None, build: str | None) -> None:
    assert torch_env.cuda_build(branch) == build


@pytest.mark.parametrize(
    ("file", "text", "branch"),
    [
        ("sys/module/nvidia/version", "580.65.06\n", 580),
        (
            "proc/driver/nvidia/version",
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\n",
            535,
        ),
        ("proc/driver/nvidia/version", "garbage", 0),
    ],
)
def test_the_driver_is_found(tmp_path: Path, file: str, text: str, branch: int) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(text)

    assert torch_env.driver_branch(tmp_path) == branch


def test_a_tool_without_a_driver_behind_it_is_no_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed' >&2\nexit 9\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    assert torch_env.driver_branch(tmp_path) is None


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        ("NewConnectionError: Failed to establish a new connection", "PIP_FIND_LINKS=/that/dir"),
        ("OSError: [Errno 28] No space left on device", "Free some space"),
        ("ERROR: No matching distribution found for torch==2.13.0+cpu", "PYTHON=python3.12"),
    ],
)
def test_what_pip_could_not_do_comes_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch, words: str, remedy: str
) -> None:
    with pytest.raises(Failure, match=remedy):
        plan(monkeypatch, Pip({}, words), None)


def test_a_disk_without_room_stops_it_before_any_download(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_env, "remote_size", lambda _url: 10**16)

    with pytest.raises(Failure, match=r"free, but \d+ GB are needed. Free some space"):
        torch_env.announce(torch_env.Plan((CPU,), (), "no NVIDIA driver found"), tmp_path)
    assert "to download" in capsys.readouterr().err


def test_a_size_that_nobody_tells_is_said_to_be_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_env, "remote_size", lambda _url: None)

    torch_env.announce(torch_env.Plan((CPU,), (), "no NVIDIA driver found"), tmp_path)

    assert "size unknown  torch 2.13.0+cpu  (example.org)" in capsys.readouterr().err


def test_somebodys_directory_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")

    with pytest.raises(Failure, match="not empty and no virtual environment"):
        torch_env.make_venv(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_an_environment_without_its_stamp_is_not_done(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    wanted: dict[str, object] = {"build": "cpu"}

    assert not torch_env.is_done(tmp_path, wanted)
    (tmp_path / torch_env.STAMP).write_text('{"wanted": {"build": "cpu"}}')
    assert torch_env.is_done(tmp_path, wanted)
    assert not torch_env.is_done(tmp_path, {"build": "cu130"})
