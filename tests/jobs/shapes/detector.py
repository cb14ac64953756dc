"""Arguments by argparse; data to /cache before the training, results to the storage after it."""

import argparse
import os

import moxing as mox

parser = argparse.ArgumentParser()
parser.add_argument("--data_url", type=str, required=True)
parser.add_argument("--train_url", type=str, required=True)
parser.add_argument("--init_method", default="tcp://127.0.0.1:9999")
parser.add_argument("--num_gpus", type=int, default=1)
parser.add_argument("--epochs", type=int, default=1)
opt = parser.parse_args()

local_data, local_out = "/cache/dataset", "/cache/output"
mox.file.copy_parallel(opt.data_url, local_data)
os.makedirs(local_out, exist_ok=True)
images = sorted(name for name in os.listdir(local_data) if name.endswith(".jpg"))
for epoch in range(opt.epochs):
    with open(os.path.join(local_out, f"epoch_{epoch}.weights"), "wb") as file:
        file.write(b"w" * 1000 * len(images))
mox.file.copy_parallel(local_out, opt.train_url)
print("trained on", images, "with", opt.num_gpus, "GPUs, found by", opt.init_method)
