"""Two processes train one model."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.services import ROOT, torch_python


@pytest.mark.torch
@pytest.mark.long
def test_two_ranks_end_with_the_same_parameters() -> None:
    torchrun = torch_python().with_name("torchrun")
    script = ROOT / "examples" / "ddp" / "train.py"
    command = [str(torchrun), "--standalone", "--nproc_per_node=2", str(script), "--steps", "20"]

    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )

    assert done.returncode == 0, done.stderr
    assert sorted(line.partition(":")[0] for line in done.stdout.splitlines()) == [
        "rank 0 of 2",
        "rank 1 of 2",
    ]
    assert done.stdout.count("parameters agree with rank 0") == 2


@pytest.mark.torch
@pytest.mark.long
def test_without_torchrun_it_says_how_to_start_it() -> None:
    script = ROOT / "examples" / "ddp" / "train.py"
    command = [str(torch_python()), str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)

    assert done.returncode == 1
    assert "start it with torchrun" in done.stderr
