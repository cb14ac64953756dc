"""Trains one linear layer on several processes, and shows that they stay one model.

torchrun --standalone --nproc_per_node=2 train.py --steps 200

Each rank draws its own part of a synthetic regression; DistributedDataParallel averages the
gradients. At the end every rank compares its parameters with those of rank 0. gloo carries the
messages on CPUs, NCCL between GPUs.
"""

from __future__ import annotations

import argparse
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

FEATURES = 16


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", "--batch_size", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def spread(model: nn.Module) -> float:
    """The largest difference between this rank's parameters and those of rank 0."""
    mine = torch.cat([one.detach().flatten() for one in model.parameters()])
    first = mine.clone()
    dist.broadcast(first, src=0)
    return float((mine - first).abs().max())


def train(options: argparse.Namespace, device: torch.device) -> tuple[nn.Module, float]:
    truth = torch.linspace(-1, 1, FEATURES, device=device).unsqueeze(1)
    # Another seed on each rank: what makes them agree is the averaging, not the start.
    torch.manual_seed(options.seed + dist.get_rank())
    layer = nn.Linear(FEATURES, 1).to(device)
    model = DistributedDataParallel(layer, device_ids=[device] if device.type == "cuda" else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    loss = torch.zeros(())
    for _ in range(options.steps):
        inputs = torch.randn(options.batch_size, FEATURES, device=device)
        loss = nn.functional.mse_loss(model(inputs), inputs @ truth)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    return model, float(loss.detach())


def run(options: argparse.Namespace, device: torch.device) -> bool:
    """Train and say how it went; whether all ranks have the same parameters."""
    model, loss = train(options, device)
    difference = spread(model)
    agree = "agree" if difference == 0 else f"differ by {difference:g}"
    # One write a line: the ranks share one log.
    sys.stdout.write(
        f"rank {dist.get_rank()} of {dist.get_world_size()}: loss {loss:.6f}, "
        f"parameters {agree} with rank 0\n"
    )
    sys.stdout.flush()
    # Who is done first does not close connections under the others.
    dist.barrier()
    return difference == 0


def leave(status: int) -> None:
    """End at once. A thread of torch that asks for the interpreter while that shuts down is unwound
    by CPython before 3.14, and C++ takes that for a crash: now and then a run that had done all of
    its work would end with SIGABRT ("terminate called without an active exception").
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main() -> int:
    options = parse_arguments()
    if "RANK" not in os.environ:
        sys.exit("train.py: start it with torchrun, which tells each process its rank")
    cuda = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    try:
        agree = run(options, device)
    finally:
        dist.destroy_process_group()
    return 0 if agree else 1


if __name__ == "__main__":
    leave(main())
