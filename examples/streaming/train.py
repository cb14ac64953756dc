"""Trains a small classifier on shards that are read from object storage while it learns.

    python train.py --data_url s3://bucket/shards --epochs 2

Several processes (torchrun) and several workers of the loader share the shards between them. See
shards.py for the reader, and for making shards to try with.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import shards
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

FEATURES = 8


class Streamed(IterableDataset[Any]):
    """The samples of all shards below an address, each once in an epoch."""

    def __init__(self, url: str, buffer: int) -> None:
        self._url = url
        self._buffer = buffer
        self.epoch = 0

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        # Opened here, and so in each worker: connections do not outlive a fork.
        storage, address = shards.storage_of(self._url)
        found = storage.list(address)
        worker = get_worker_info()
        own = shards.mine(
            found,
            rank=int(os.environ.get("RANK", "0")),
            world=int(os.environ.get("WORLD_SIZE", "1")),
            worker=0 if worker is None else worker.id,
            workers=1 if worker is None else worker.num_workers,
        )
        stream = shards.samples(storage, own)
        for sample in shards.shuffled(stream, self._buffer, seed=self.epoch):
            told = json.loads(sample["json"])
            yield torch.tensor(told["x"]), torch.tensor(float(told["label"]))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--data_url", required=True, help="where the shards lie")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--buffer", type=int, default=1000, help="samples that are shuffled at once"
    )
    options = parser.parse_args()

    torch.manual_seed(0)
    data = Streamed(options.data_url, options.buffer)
    model = nn.Linear(FEATURES, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for epoch in range(options.epochs):
        data.epoch = epoch
        right = count = 0
        for inputs, labels in DataLoader(
            data, batch_size=options.batch_size, num_workers=options.workers
        ):
            logits = model(inputs).squeeze(1)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int(((logits > 0) == (labels > 0.5)).sum())
            count += len(labels)
        if not count:
            raise SystemExit(f"no samples below {options.data_url}")
        print(f"epoch {epoch + 1}: {count} samples, accuracy {right / count:.3f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
