"""Ranks that agree by gloo; each brings its data, the first one stores the result."""

import argparse
import os

import moxing as mox
import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--data_url")
parser.add_argument("--train_url")
parser.add_argument("--note", default="")
args = parser.parse_args()

dist.init_process_group("gloo")
rank = dist.get_rank()
local = os.path.join("/cache", f"data_{rank}")
mox.file.copy_parallel(args.data_url, local)
count = torch.tensor([float(len(os.listdir(local)))])
dist.all_reduce(count)
if rank == 0:
    mox.file.write(os.path.join(args.train_url, "count.txt"), f"{int(count)} {args.note}")
dist.barrier()
dist.destroy_process_group()
os._exit(0)  # see `leave` of examples/ddp/train.py
