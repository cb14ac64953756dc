"""The same script for a laptop and for the platform: a variable says where it is."""

import argparse
import os

parser = argparse.ArgumentParser()
parser.add_argument("--data_url", default="data")
parser.add_argument("--train_url", default="out")
args = parser.parse_args()

if os.environ.get("MA_VJ_NAME"):
    import moxing as mox

    job = os.environ["MA_VJ_NAME"].replace("ma-job", "modelarts-job")
    log_dir = os.path.join(os.environ["MA_LOG_DIR"], job, "worker-0")
    os.makedirs(log_dir, exist_ok=True)
    data_dir, out_dir = "/cache/data", "/cache/out"
    mox.file.copy_parallel(args.data_url, data_dir)
else:
    data_dir, out_dir, log_dir = args.data_url, args.train_url, "."

os.makedirs(out_dir, exist_ok=True)
with open(os.path.join(out_dir, "names.txt"), "w") as file:
    file.write(" ".join(sorted(os.listdir(data_dir))))
if os.environ.get("MA_VJ_NAME"):
    mox.file.copy_parallel(out_dir, args.train_url)
