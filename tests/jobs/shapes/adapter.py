"""A decorator around main: one rank brings the data while the others wait for its lock file."""

import argparse
import functools
import os
import time

import moxing as mox

parser = argparse.ArgumentParser()
parser.add_argument("--data_url", default="")
parser.add_argument("--train_url", default="")
parser.add_argument("--enable_modelarts", default="True")
config, _ = parser.parse_known_args()
config.data_path, config.output_path = "/cache/data", "/cache/train"

_global_sync_count = 0


def get_device_id():
    return int(os.getenv("DEVICE_ID", "0"))


def get_rank_size():
    return int(os.getenv("RANK_SIZE", "1"))


def sync_data(from_path, to_path):
    global _global_sync_count
    sync_lock = "/tmp/copy_sync.lock" + str(_global_sync_count)
    _global_sync_count += 1
    if get_device_id() % min(get_rank_size(), 8) == 0 and not os.path.exists(sync_lock):
        print("from path: ", from_path, flush=True)
        mox.file.copy_parallel(from_path, to_path)
        try:
            os.mknod(sync_lock)
        except OSError:
            pass
    while True:
        if os.path.exists(sync_lock):
            break
        time.sleep(0.05)


def moxing_wrapper(run_func):
    @functools.wraps(run_func)
    def wrapped_func(*args, **kwargs):
        if config.enable_modelarts == "True":
            sync_data(config.data_url, config.data_path)
            os.makedirs(config.output_path, exist_ok=True)
        run_func(*args, **kwargs)
        if config.enable_modelarts == "True" and config.train_url:
            sync_data(config.output_path, config.train_url)

    return wrapped_func


@moxing_wrapper
def main():
    rank = int(os.getenv("RANK_ID", "0"))
    names = sorted(os.listdir(config.data_path))
    with open(os.path.join(config.output_path, f"rank_{rank}.log"), "w") as file:
        file.write(" ".join(names))
    # Every rank's results are there before the first one takes them away.
    while len(os.listdir(config.output_path)) < get_rank_size():
        time.sleep(0.05)


if __name__ == "__main__":
    main()
