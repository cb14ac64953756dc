"""Checks of torch itself, and of training with it. Everything is imported when it is looked at."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from danlu_verify.checks import FAIL, PASS, SKIPPED, Check, Config, Result, numbers, wheel

LIBRARIES = re.compile(r"/lib(nccl|cudnn|cudart|torch_cpu|torch_cuda)[^/]*\.so[^/]*$")


def _torch() -> Any:
    import torch

    return torch


def _version(config: Config) -> Result:
    found = str(_torch().__version__)
    return (PASS if found == wheel(config, "torch") else FAIL), found


def _cuda_libraries(config: Config) -> Result:
    torch = _torch()
    tag = config["backend"]
    wanted = "" if tag == "cpu" else f"{tag[2:-1]}.{tag[-1]}"
    found = torch.version.cuda or ""
    said = [f"CUDA {found or 'none'}"]
    if found != wanted:
        return FAIL, f"CUDA {found or 'none'}, locked {wanted or 'none'}"
    if found:
        for name, own in (("cudnn", _cudnn(torch)), ("nccl", _nccl(torch))):
            locked = _of_nvidia(config, name)
            said.append(f"{name} {own}")
            if locked and numbers(own)[:3] != numbers(locked)[:3]:
                return FAIL, f"{name} {own}, locked {locked}"
    return PASS, ", ".join(said)


def _cudnn(torch: Any) -> str:
    number = int(torch.backends.cudnn.version() or 0)
    # 8902 is 8.9.2, 91002 is 9.10.2.
    big = 10_000 if number >= 90_000 else 1000
    return f"{number // big}.{number % big // 100}.{number % 100}"


def _nccl(torch: Any) -> str:
    return ".".join(str(part) for part in torch.cuda.nccl.version())


def _of_nvidia(config: Config, name: str) -> str:
    return next(
        (str(v) for n, v in config["wheels"].items() if n.startswith(f"nvidia-{name}-cu")), ""
    )


def _loaded_from(config: Config) -> Result:
    _torch()
    lines = Path("/proc/self/maps").read_text("utf-8", "replace").splitlines()
    paths = {line.split(None, 5)[-1] for line in lines if LIBRARIES.search(line)}
    prefix = str(Path(config["prefix"]).resolve())
    wrong = [path for path in sorted(paths) if not os.path.realpath(path).startswith(prefix)]
    return (FAIL, ", ".join(wrong)) if wrong else (PASS, f"{len(paths)} libraries")


def _linked(_config: Config) -> Result:
    folder = Path(_torch().__file__).parent / "lib"
    missing = []
    libraries = sorted(folder.glob("libtorch*.so")) + sorted(folder.glob("libc10*.so"))
    for library in libraries:
        said = subprocess.run(["ldd", str(library)], capture_output=True, text=True, check=False)
        missing += [
            f"{library.name}: {line.split()[0]}"
            for line in said.stdout.splitlines()
            if "not found" in line and not line.split()[0].startswith("libcuda.so")
        ]
    return (FAIL, ", ".join(missing[:5])) if missing else (PASS, f"{len(libraries)} libraries")


def _numpy(config: Config) -> Result:
    if not wheel(config, "numpy"):
        return SKIPPED, "the image has no numpy"
    import numpy as np

    torch = _torch()
    given = np.arange(6, dtype="float32").reshape(2, 3)
    back = torch.from_numpy(given).mul(2).numpy()
    return (PASS if (back == given * 2).all() else FAIL), f"numpy {np.__version__}"


def _companions(config: Config) -> Result:
    torch, said = _torch(), []
    for name in ("torchvision", "torchaudio"):
        if not wheel(config, name):
            continue
        module = __import__(name)
        if module.__version__ != wheel(config, name):
            return FAIL, f"{name} {module.__version__}, locked {wheel(config, name)}"
        said.append(f"{name} {module.__version__}")
        if name == "torchvision":
            boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 10, 10], [20, 20, 30, 30]])
            kept = module.ops.nms(boxes, torch.tensor([0.9, 0.8, 0.7]), 0.5).tolist()
            if kept != [0, 2]:
                return FAIL, f"torchvision's nms keeps {kept} instead of [0, 2]"
    return (PASS, ", ".join(said)) if said else (SKIPPED, "the image has neither")


def _architectures(config: Config) -> Result:
    if not config["sms"]:
        return SKIPPED, "no GPU whose kernels could be looked for"
    # What torch.cuda.get_arch_list() says, which needs a GPU to say it.
    flags = str(_torch()._C._cuda_getArchFlags() or "")  # noqa: SLF001 -- see above
    have = [int(one) for one in re.findall(r"sm_(\d+)", flags)]
    ptx = [int(one) for one in re.findall(r"compute_(\d+)", flags)]
    without = [sm for sm in config["sms"] if not any(h // 10 == sm // 10 and h <= sm for h in have)
               and not any(one <= sm for one in ptx)]  # fmt: skip
    if without:
        return FAIL, f"no kernels for {', '.join(f'sm_{sm}' for sm in without)}; there are {flags}"
    return PASS, flags


def _training(_config: Config) -> Result:
    torch = _torch()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    data = torch.randn(64, 8)
    wanted = data.sum(1, keepdim=True)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(60):
        optimiser.zero_grad()
        loss = torch.nn.functional.mse_loss(model(data), wanted)
        loss.backward()
        optimiser.step()
        losses.append(float(loss))
    kept = io.BytesIO()
    torch.save(model.state_dict(), kept)
    kept.seek(0)
    back = torch.load(kept, weights_only=True)
    same = all(torch.equal(back[name], value) for name, value in model.state_dict().items())
    if not losses[-1] < losses[0] / 2:
        return FAIL, f"the loss goes from {losses[0]:.3f} to {losses[-1]:.3f}"
    return (
        PASS if same else FAIL
    ), f"loss {losses[0]:.2f} to {losses[-1]:.2f}, checkpoint equal: {same}"


def _loader(_config: Config) -> Result:
    torch = _torch()
    data = torch.utils.data.TensorDataset(torch.arange(64).float().reshape(64, 1).expand(64, 4096))
    loader = torch.utils.data.DataLoader(data, batch_size=8, num_workers=2)
    rows = sum(len(batch[0]) for batch in loader)
    return (PASS if rows == 64 else FAIL), f"{rows} rows from 2 workers"


REDUCE = """\
import sys, torch, torch.distributed as dist
rank, file = int(sys.argv[1]), sys.argv[2]
dist.init_process_group(sys.argv[3], init_method=f"file://{file}", rank=rank, world_size=2)
place = f"cuda:{rank}" if sys.argv[3] == "nccl" else "cpu"
value = torch.full((1000,), float(rank + 1), device=place)
dist.all_reduce(value)
assert bool((value == 3).all()), value
dist.destroy_process_group()
"""


def all_reduce(backend: str) -> Result:
    """Two processes add up what they have."""
    with tempfile.TemporaryDirectory() as name:
        file = str(Path(name, "meeting"))
        pair = [
            subprocess.Popen(
                [sys.executable, "-I", "-c", REDUCE, str(rank), file, backend],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
            for rank in (0, 1)
        ]  # fmt: skip
        said = [one.communicate(timeout=180)[0] for one in pair]
    if any(one.returncode for one in pair):
        return FAIL, " ".join(" ".join(said).split())[-300:]
    return PASS, f"{backend}, two processes"


TORCH: dict[int, Check] = {
    4: _version, 5: _cuda_libraries, 7: _loaded_from, 8: _linked, 10: _numpy, 11: _companions,
    13: _architectures, 24: _training,
}  # fmt: skip
LOADER: dict[int, Check] = {15: _loader}
REDUCING: dict[int, Check] = {23: lambda _config: all_reduce("gloo")}
