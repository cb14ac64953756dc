"""Trains a small convolutional network on Fashion-MNIST; may be stopped and resumed at any time.

    python train.py --data /usr/share/datasets/fashion-mnist --output ./model --epochs 3

The two convolutions end in 16 maps of 7 x 7: 784 numbers, the input of the plain 784-wide
classifier that this example grew from. Without --data it learns scikit-learn's bundled
handwritten digits.

Output: checkpoint-NNNNNNNN.pt (the number is the step), `latest` (the newest one's name), model.pt
and metrics.json. Started again with the same --output, it goes on from the newest whole checkpoint.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import pickle
import signal
import struct
import sys
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

# On a machine that others use too, threads that spin while they wait cost several times the CPU
# time and take longer. OpenMP reads this once, when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

SIDE = 28
CLASSES = 10
KEPT_CHECKPOINTS = 3
IDX_FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


# ---------------------------------------------------------------- arguments


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", "--data_url", type=Path, help="directory with the IDX files")
    parser.add_argument(
        "--output", "--train_url", "--model", type=Path, default=Path("output"), help="results"
    )
    parser.add_argument("--epochs", type=positive, default=3)
    parser.add_argument(
        "--max-steps", "--max_steps", type=positive, help="save and end after so many"
    )
    parser.add_argument("--batch-size", "--batch_size", type=positive, default=128)
    parser.add_argument("--lr", type=float, default=3e-3, help="highest learning rate")
    parser.add_argument("--workers", type=int, default=None, help="processes that load batches")
    parser.add_argument("--device", default=None, help="cuda, mps or cpu (default: the best here)")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return number


def allowed_cpus() -> int:
    """CPUs that this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def choose_device(name: str | None) -> torch.device:
    if name:
        return torch.device(name)
    if torch.cuda.is_available():
        return torch.device("cuda")
    return torch.device("mps" if torch.backends.mps.is_available() else "cpu")


# ---------------------------------------------------------------- data


@dataclass(frozen=True)
class Images:
    """Pictures as bytes (n, 28, 28) and their classes (n,)."""

    pixels: Tensor
    labels: Tensor


class Batches(Dataset[tuple[Tensor, Tensor]]):
    """One item is a whole batch: indexing a tensor once beats stacking 128 single pictures."""

    def __init__(self, images: Images, mean: float, deviation: float) -> None:
        self.images, self.mean, self.deviation = images, mean, deviation

    def __len__(self) -> int:
        return len(self.images.labels)

    def __getitem__(self, places: Tensor) -> tuple[Tensor, Tensor]:
        pixels = self.images.pixels[places].float().div_(255)
        return pixels.sub_(self.mean).div_(self.deviation).unsqueeze_(1), self.images.labels[places]


class Order:
    """The batches of one epoch: shuffled by seed and epoch, so that a resumed run sees the same."""

    def __init__(self, count: int, batch_size: int, seed: int) -> None:
        self.count, self.batch_size, self.seed = count, batch_size, seed
        self.epoch, self.skip, self.shuffle = 0, 0, True

    def __len__(self) -> int:
        return math.ceil(self.count / self.batch_size)

    def __iter__(self) -> Iterator[Tensor]:
        if self.shuffle:
            generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
            places = torch.randperm(self.count, generator=generator)
        else:
            places = torch.arange(self.count)
        yield from list(places.split(self.batch_size))[self.skip :]


def find_idx(folder: Path, name: str) -> Path:
    """The file in the folder or one level below, compressed or not."""
    for pattern in (name, f"{name}.gz", f"*/{name}", f"*/{name}.gz"):
        for path in sorted(folder.glob(pattern)):
            return path
    sys.exit(f"train.py: {folder} holds no {name}[.gz], nor does a directory in it")


def read_idx(path: Path) -> Tensor:
    """An IDX file: magic number with the number of axes, their lengths, then bytes."""
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        axes = content[3]
        shape = struct.unpack_from(f">{axes}I", content, 4)
    except (OSError, EOFError, IndexError, struct.error, zlib.error) as error:
        sys.exit(f"train.py: cannot read {path}: {error}")
    start = 4 + 4 * axes
    if content[:3] != b"\x00\x00\x08" or len(content) - start != math.prod(shape):
        sys.exit(f"train.py: {path} is no IDX file of bytes, or was cut short")
    return torch.from_numpy(np.frombuffer(content, np.uint8, offset=start).reshape(shape).copy())


def load_fashion(folder: Path) -> tuple[Images, Images]:
    found = []
    for images, labels in IDX_FILES.values():
        pixels, classes = read_idx(find_idx(folder, images)), read_idx(find_idx(folder, labels))
        if pixels.shape != (len(classes), SIDE, SIDE):
            sys.exit(f"train.py: {folder}: pictures {tuple(pixels.shape)}, labels {len(classes)}")
        found.append(Images(pixels, classes.long()))
    return found[0], found[1]


def load_digits() -> tuple[Images, Images]:
    """The 1,797 digits of scikit-learn, stretched from 8 x 8; every sixth is kept for testing."""
    from sklearn.datasets import load_digits as bundled

    digits = bundled()
    small = torch.from_numpy(digits.images).float().unsqueeze(1) * (255 / 16)
    pixels = nn.functional.interpolate(small, size=(SIDE, SIDE), mode="bilinear").squeeze(1)
    labels = torch.from_numpy(digits.target).long()
    testing = torch.arange(len(labels)) % 6 == 0
    whole = pixels.round().to(torch.uint8)
    return Images(whole[~testing], labels[~testing]), Images(whole[testing], labels[testing])


def ignore_signals(_worker: int) -> None:
    """A loading process ends when the training ends, not when the whole group is told to stop."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def make_loader(batches: Batches, order: Order, workers: int, device: torch.device) -> Any:
    return DataLoader(
        batches,
        sampler=order,
        batch_size=None,
        num_workers=workers,
        persistent_workers=workers > 0,
        pin_memory=device.type == "cuda",
        worker_init_fn=ignore_signals,
        # Of its own: an iterator draws a number when it starts, which would shift the chance that a
        # resumed run has taken over.
        generator=torch.Generator(),
    )


# ---------------------------------------------------------------- model


class Classifier(nn.Module):
    """Two convolutions in front of the 784-wide classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            # The stride halves the picture at once: two thirds of the time of pooling alone.
            nn.Conv2d(1, 16, 5, stride=2, padding=2), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, CLASSES)
        )

    def forward(self, pixels: Tensor) -> Tensor:
        logits: Tensor = self.classifier(self.features(pixels))
        return logits


# ---------------------------------------------------------------- checkpoints


def publish(path: Path, write: Any) -> None:
    """A reader sees the old file or the whole new one, also if this process dies in between."""
    fresh = path.with_name(f".{path.name}.tmp")
    with fresh.open("wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def checkpoints(folder: Path) -> list[Path]:
    """Newest first: the number in the name is the step, padded so that names sort."""
    return sorted(folder.glob("checkpoint-*.pt"), reverse=True)


class Stop:
    """The signal that asked for an end, or 0. Asked for at any time, kept between two steps."""

    def __init__(self) -> None:
        self.signal = 0
        signal.signal(signal.SIGTERM, self.note)
        signal.signal(signal.SIGINT, self.note)

    def note(self, number: int, _frame: FrameType | None) -> None:
        # Only a note: the step in progress ends first, so that what is saved is whole.
        self.signal = number


class Training:
    """Everything that a checkpoint holds."""

    def __init__(
        self, options: argparse.Namespace, facts: dict[str, Any], device: torch.device
    ) -> None:
        self.options, self.facts, self.device = options, facts, device
        self.model = Classifier().to(device)
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(), lr=options.lr, weight_decay=0.01
        )
        self.scaler = torch.amp.GradScaler("cuda", enabled=device.type == "cuda")
        self.step = 0
        self.history: list[dict[str, float]] = []

    def save(self) -> None:
        state = {
            "facts": self.facts,
            "step": self.step,
            "history": self.history,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state_all() if self.device.type == "cuda" else [],
        }
        folder = self.options.output
        path = folder / f"checkpoint-{self.step:08d}.pt"
        publish(path, lambda file: torch.save(state, file))
        publish(folder / "latest", lambda file: file.write(f"{path.name}\n".encode()))
        for old in checkpoints(folder)[KEPT_CHECKPOINTS:]:
            old.unlink(missing_ok=True)

    def resume(self) -> None:
        """Takes up the newest checkpoint that can be read."""
        for path in checkpoints(self.options.output):
            try:
                state = torch.load(path, map_location=self.device, weights_only=True)
            except (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError) as error:
                why = (str(error).splitlines() or [type(error).__name__])[0]
                print(f"{path.name} cannot be read ({why}), trying the one before")
                continue
            if state["facts"] != self.facts:
                sys.exit(
                    f"train.py: {path} was made with {state['facts']}, this run has {self.facts}."
                    " Give the same values, or another --output"
                )
            self.restore(state)
            print(f"resuming after step {self.step} from {path.name}")
            return

    def restore(self, state: dict[str, Any]) -> None:
        self.step, self.history = state["step"], state["history"]
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scaler.load_state_dict(state["scaler"])
        torch.set_rng_state(state["rng"].cpu())
        if self.device.type == "cuda" and state["cuda_rng"]:
            torch.cuda.set_rng_state_all([one.cpu() for one in state["cuda_rng"]])


# ---------------------------------------------------------------- the loop


def learning_rate(step: int, steps: int, highest: float) -> float:
    """Up in a straight line for the first tenth, then down along a cosine; from the step alone."""
    warm = max(steps // 10, 1)
    if step < warm:
        return highest * (step + 1) / warm
    return highest * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(steps - warm, 1)))


def train_epoch(training: Training, loader: Any, steps: int, stop: Stop) -> float | None:
    """The mean loss of the epoch, or nothing if the training is to stop here."""
    device, model = training.device, training.model
    model.train()
    total = torch.zeros((), device=device)
    count = 0
    for pixels, labels in loader:
        for group in training.optimizer.param_groups:
            group["lr"] = learning_rate(training.step, steps, training.options.lr)
        inputs = pixels.to(device, non_blocking=True)
        targets = labels.to(device, non_blocking=True)
        with torch.autocast(device.type, enabled=device.type == "cuda"):
            loss = nn.functional.cross_entropy(model(inputs), targets)
        training.optimizer.zero_grad(set_to_none=True)
        training.scaler.scale(loss).backward()
        training.scaler.step(training.optimizer)
        training.scaler.update()
        training.step += 1
        total += loss.detach() * len(targets)
        count += len(targets)
        if stop.signal or training.step == training.options.max_steps:
            return None
    return float(total / max(count, 1))


@torch.no_grad()
def accuracy(model: nn.Module, batches: Batches, device: torch.device) -> float:
    model.eval()
    right = 0
    for places in torch.arange(len(batches)).split(1000):
        pixels, labels = batches[places]
        right += int((model(pixels.to(device)).argmax(1) == labels.to(device)).sum())
    return right / len(batches)


def train(training: Training, images: Images, test: Batches, stop: Stop) -> None:
    options, device = training.options, training.device
    order = Order(len(images.labels), options.batch_size, options.seed)
    workers = options.workers
    if workers is None:
        # The pictures are in memory already: only a fast device waits for them.
        workers = min(2, allowed_cpus() - 1) if device.type == "cuda" else 0
    loader = make_loader(Batches(images, test.mean, test.deviation), order, workers, device)
    steps = options.epochs * len(order)
    while training.step < steps:
        order.epoch, order.skip = divmod(training.step, len(order))
        began = time.monotonic()
        loss = train_epoch(training, loader, steps, stop)
        if loss is None:
            training.save()
            print(f"stopped after step {training.step} of {steps}; run it again to go on")
            sys.exit(128 + stop.signal if stop.signal else 0)
        score = accuracy(training.model, test, device)
        training.history.append({"loss": round(loss, 4), "test_accuracy": round(score, 4)})
        training.save()
        print(
            f"epoch {order.epoch + 1}/{options.epochs}  loss {loss:.4f}  "
            f"test accuracy {score:.4f}  {time.monotonic() - began:.1f} s"
        )


def main() -> None:
    options = parse_arguments()
    stop = Stop()
    began = time.monotonic()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a job's log is watched
    options.output.mkdir(parents=True, exist_ok=True)
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(allowed_cpus())
    torch.manual_seed(options.seed)
    device = choose_device(options.device)

    if options.data:
        name, (images, testing) = "Fashion-MNIST", load_fashion(options.data)
    else:
        print("no --data given: training on scikit-learn's bundled digits instead of Fashion-MNIST")
        name, (images, testing) = "digits", load_digits()
    sample = images.pixels.float().div_(255)
    test = Batches(testing, float(sample.mean()), float(sample.std()))
    print(
        f"{name}: {len(images.labels)} pictures to learn, {len(testing.labels)} to test; {device}, "
        f"{torch.get_num_threads()} threads, PyTorch {torch.__version__}"
    )

    facts = {
        "data": name,
        "pictures": len(images.labels),
        "batch_size": options.batch_size,
        "seed": options.seed,
    }
    training = Training(options, facts, device)
    training.resume()
    train(training, images, test, stop)

    score = accuracy(training.model, test, device)
    weights = {key: value.cpu() for key, value in training.model.state_dict().items()}
    publish(options.output / "model.pt", lambda file: torch.save(weights, file))
    metrics = {
        **facts,
        "test_accuracy": round(score, 4),
        "epochs": options.epochs,
        "steps": training.step,
        "seconds": round(time.monotonic() - began, 1),
        "cpu_seconds": round(time.process_time(), 1),
        "device": str(device),
        "history": training.history,
    }
    text = json.dumps(metrics, indent=2) + "\n"
    publish(options.output / "metrics.json", lambda file: file.write(text.encode()))
    print(f"test accuracy: {score:.4f}")


if __name__ == "__main__":
    main()
