"""What a program runs on, read from what installers leave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from danlu.model.resources import Gpu
from danlu.model.script import TaskPlan
from danlu.node.seen import Inside, seen, sentence

VERSION = """\
from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']
__version__ = '2.8.0+cu128'
debug = False
cuda: Optional[str] = '12.8'
git_version = 'a1cb3cc05d46d198467bebbb6e8fba50a325d4e7'
hip: Optional[str] = None
"""


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    packages = tmp_path / "env" / "lib" / "python3.11" / "site-packages"
    for name in ("torch-2.8.0+cu128", "nvidia_cudnn_cu12-9.10.2.21", "nvidia_nccl_cu12-2.27.3"):
        (packages / f"{name}.dist-info").mkdir(parents=True)
    (packages / "torch").mkdir()
    (packages / "torch" / "version.py").write_text(VERSION)
    (tmp_path / "env" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.7\n")
    return tmp_path / "env"


def with_gpus(*models: str) -> TaskPlan:
    gpus = tuple(Gpu(f"GPU-{i}", i, model, None) for i, model in enumerate(models))
    return TaskPlan("j", 1, 0, "t", "n", command="true", gpus=gpus)


def test_versions_and_devices_are_found_without_importing(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    (tmp_path / "sys/module/nvidia/version").write_text("570.86.15\n")
    task = with_gpus("NVIDIA H200", "NVIDIA H200", "Tesla T4")
    found = seen(task, [str(prefix / "bin" / "python")], tmp_path)
    assert found == {
        "python": "3.11.7",
        "torch": "2.8.0+cu128",
        "cuda": "12.8",
        "cudnn": "9.10.2.21",
        "nccl": "2.27.3",
        "driver": "570.86.15",
        "gpus": "2 × NVIDIA H200, 1 × Tesla T4",
    }
    assert sentence(found) == (
        "Python 3.11.7 · torch 2.8.0+cu128 · CUDA 12.8 · cuDNN 9.10.2.21 · NCCL 2.27.3"
        " · driver 570.86.15 · 2 × NVIDIA H200, 1 × Tesla T4"
    )


def test_what_is_not_there_is_left_out_and_not_guessed(prefix: Path, tmp_path: Path) -> None:
    version = prefix / "lib/python3.11/site-packages/torch/version.py"
    version.write_text(VERSION.replace("'12.8'", "None"))
    found = seen(with_gpus(), [str(prefix / "bin" / "python")], tmp_path)
    assert "cuda" not in found
    assert "driver" not in found, "without a GPU it is none of its business"
    assert seen(with_gpus(), [str(tmp_path / "none" / "bin" / "python")], tmp_path) == {}
    version.write_bytes(b"\xff\xfe cuda = 12")
    assert "cuda" not in seen(with_gpus(), [str(prefix / "bin" / "python")], tmp_path)


def test_of_two_installed_versions_neither_is_believed(prefix: Path, tmp_path: Path) -> None:
    (prefix / "lib/python3.11/site-packages/torch-2.7.0.dist-info").mkdir()
    assert "torch" not in seen(with_gpus(), [str(prefix / "bin" / "python")], tmp_path)


def test_an_environment_of_requirements_goes_before_the_one_that_it_sees(
    prefix: Path, tmp_path: Path
) -> None:
    own = tmp_path / "own"
    (own / "lib/python3.11/site-packages/torch-2.7.1.dist-info").mkdir(parents=True)
    found = seen(with_gpus(), [f"{own}/bin/python", f"{prefix}/bin/python"], tmp_path)
    assert (found["torch"], found["nccl"]) == ("2.7.1", "2.27.3")


def test_of_a_container_nothing_is_read_outside_of_its_root(prefix: Path, tmp_path: Path) -> None:
    """Its links are its own, a pipe in it is not waited for, and Debian's Python has its places."""
    root = tmp_path / "root"
    packages = root / "usr/local/lib/python3.11/dist-packages"
    packages.mkdir(parents=True)
    (packages / "torch-2.8.0.dist-info").mkdir()
    (packages / "torch").symlink_to(prefix / "lib/python3.11/site-packages/torch")
    (root / "usr/lib").mkdir()
    (root / "usr/lib/python3.11").mkdir()
    tree = Inside(str(root))
    python = ["/usr/bin/python3"]
    assert seen(with_gpus(), python, tmp_path, tree) == {"python": "3.11", "torch": "2.8.0"}

    (packages / "torch").unlink()
    (root / "opt/torch").mkdir(parents=True)
    (root / "opt/torch/version.py").write_text(VERSION)
    (packages / "torch").symlink_to("/opt/torch")
    assert seen(with_gpus(), python, tmp_path, tree)["cuda"] == "12.8"

    (root / "opt/torch/version.py").unlink()
    os.mkfifo(root / "opt/torch/version.py")
    assert "cuda" not in seen(with_gpus(), python, tmp_path, tree)
