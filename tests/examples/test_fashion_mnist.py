"""The example trains, is interrupted, and goes on; by itself, as a person would run it."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import struct
import subprocess
from pathlib import Path

import pytest

from tests.services import ROOT, torch_python

pytestmark = [pytest.mark.torch, pytest.mark.long]

SCRIPT = ROOT / "examples" / "fashion_mnist" / "train.py"


def start(output: Path, *args: str) -> subprocess.Popen[str]:
    command = [str(torch_python()), str(SCRIPT), "--output", str(output), *args]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )


def run(output: Path, *args: str) -> str:
    process = start(output, *args)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    assert err == ""
    return out


def read_metrics(output: Path) -> dict[str, object]:
    metrics: dict[str, object] = json.loads((output / "metrics.json").read_text())
    return metrics


def fail(output: Path, *args: str) -> str:
    process = start(output, *args)
    _, err = process.communicate(timeout=100)
    assert process.returncode == 1
    return err


def write_idx(path: Path, shape: tuple[int, ...], content: bytes) -> None:
    whole = bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + content
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(whole) if path.suffix == ".gz" else whole)


def write_tiny_fashion(folder: Path, part: str, *, suffix: str, count: int = 200) -> None:
    """Pictures whose brightness is their class: learnable, and in the real files' format."""
    chance = random.Random(7)
    labels = bytes(chance.randrange(10) for _ in range(count))
    pixels = b"".join(bytes([25 * label]) * 784 for label in labels)
    write_idx(folder / f"{part}-images-idx3-ubyte{suffix}", (count, 28, 28), pixels)
    write_idx(folder / f"{part}-labels-idx1-ubyte{suffix}", (count,), labels)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Two whole epochs on the digits: the output directory and the log."""
    output = tmp_path_factory.mktemp("finished")
    return output, run(output, "--epochs", "2")


def copy_of(output: Path, place: Path) -> Path:
    return Path(shutil.copytree(output, place))


def test_digits_are_learned_and_said_to_be_digits(finished: tuple[Path, str]) -> None:
    output, log = finished

    assert "bundled digits" in log
    score = read_metrics(output)["test_accuracy"]
    assert isinstance(score, float)
    assert score > 0.85
    assert log.endswith(f"test accuracy: {score:.4f}\n")
    assert (output / "model.pt").stat().st_size > 100_000
    newest = max(one.name for one in output.glob("checkpoint-*"))
    assert (output / "latest").read_text() == f"{newest}\n"


def test_idx_files_are_found_compressed_or_not_here_or_one_level_below(tmp_path: Path) -> None:
    write_tiny_fashion(tmp_path / "data", "train", suffix="")
    write_tiny_fashion(tmp_path / "data" / "below", "t10k", suffix=".gz")

    args = ("--epochs", "1", "--workers", "1", "--data_url", str(tmp_path / "data"))
    log = run(tmp_path / "out", *args)

    assert "Fashion-MNIST: 200 pictures to learn, 200 to test" in log
    assert read_metrics(tmp_path / "out")["data"] == "Fashion-MNIST"


def test_a_data_file_cut_short_is_named(tmp_path: Path) -> None:
    write_tiny_fashion(tmp_path, "train", suffix="")
    images = tmp_path / "train-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:-1])

    err = fail(tmp_path / "out", "--data", str(tmp_path))

    assert f"{images} is no IDX file of bytes, or was cut short" in err


def test_a_run_in_two_parts_ends_in_the_same_model(
    finished: tuple[Path, str], tmp_path: Path
) -> None:
    run(tmp_path, "--epochs", "2", "--max-steps", "15")
    log = run(tmp_path, "--epochs", "2")

    assert "resuming after step 15 from checkpoint-00000015.pt" in log
    # To the last bit: weights, optimizer, order and chance all came back.
    assert (tmp_path / "model.pt").read_bytes() == (finished[0] / "model.pt").read_bytes()


def test_a_truncated_checkpoint_falls_back_to_the_one_before(
    finished: tuple[Path, str], tmp_path: Path
) -> None:
    output = copy_of(finished[0], tmp_path / "out")
    newest = output / "checkpoint-00000024.pt"
    newest.write_bytes(newest.read_bytes()[:10_000])

    log = run(output, "--epochs", "2")

    assert "checkpoint-00000024.pt cannot be read" in log
    assert "resuming after step 12 from checkpoint-00000012.pt" in log
    assert "epoch 2/2" in log


def test_a_checkpoint_of_other_settings_is_refused(
    finished: tuple[Path, str], tmp_path: Path
) -> None:
    err = fail(copy_of(finished[0], tmp_path / "out"), "--epochs", "2", "--seed", "2")

    assert "Give the same values, or another --output" in err


def test_sigterm_saves_at_a_step_border(tmp_path: Path) -> None:
    """(case 68) The handler only sets a flag."""
    process = start(tmp_path, "--epochs", "1000", "--workers", "1")
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("epoch 1/"):
            break
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)

    assert process.returncode == 128 + signal.SIGTERM, err
    step = int(out.partition("stopped after step ")[2].partition(" ")[0])
    assert (tmp_path / "latest").read_text() == f"checkpoint-{step:08d}.pt\n"
