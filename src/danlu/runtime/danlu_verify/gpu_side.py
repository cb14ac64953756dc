"""Checks that need a GPU. Without one they are skipped, never passed."""

from __future__ import annotations

import ctypes
import re
import stat
from pathlib import Path
from typing import Any

from danlu_verify.checks import FAIL, PASS, SKIPPED, WARN, Check, Config, Result, numbers, wheel
from danlu_verify.torch_side import all_reduce

NVML = "libnvidia-ml.so.1"


def count(wanted: list[str]) -> tuple[int, str]:
    """How many of the GPUs with these UUIDs can be reached here, and how that was found out."""
    try:
        library = ctypes.CDLL(NVML)
    except OSError:
        nodes = [path for path in Path("/dev").glob("nvidia[0-9]*") if _is_device(path)]
        return len(nodes), "devices in /dev"
    if library.nvmlInit_v2() != 0:
        return 0, "the driver's library does not start"
    found = 0
    for uuid in wanted:
        handle = ctypes.c_void_p()
        found += library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(handle)) == 0
    library.nvmlShutdown()
    return found, "the driver's library"


def _is_device(path: Path) -> bool:
    try:
        return stat.S_ISCHR(path.stat().st_mode)
    except OSError:
        return False


def gpu_count(config: Config) -> Result:
    """As many GPUs as were asked for; to the driver, and to torch where it can use them."""
    wanted = len(config["gpus"])
    found, how = count(config["gpus"])
    if found != wanted:
        return FAIL, f"{found} of {wanted} GPUs by {how}"
    if config["full"] and wheel(config, "torch") and config["backend"] != "cpu":
        import torch

        if not torch.cuda.is_available() or torch.cuda.device_count() != wanted:
            return FAIL, f"{torch.cuda.device_count()} of {wanted} GPUs by torch"
    return PASS, f"{found} by {how}"


def _driver(config: Config) -> Result:
    version = _driver_version()
    if not version:
        return FAIL, "no driver says its version"
    if not config["driver_floor"]:
        return SKIPPED, f"driver {version}; the image has no CUDA"
    said = f"driver {version}, needs {config['driver_floor']}"
    if numbers(version) < numbers(config["driver_floor"]):
        return FAIL, said
    if numbers(version) < numbers(config["driver_full"]):
        return WARN, f"{said}, for all features {config['driver_full']}"
    return PASS, said


def _driver_version() -> str:
    for place in ("/sys/module/nvidia/version", "/proc/driver/nvidia/version"):
        try:
            found = re.search(r"\d+\.\d+(\.\d+)?", Path(place).read_text("ascii", "replace"))
        except OSError:
            continue
        if found:
            return found[0]
    try:
        library = ctypes.CDLL(NVML)
    except OSError:
        return ""
    text = ctypes.create_string_buffer(96)
    if library.nvmlInit_v2() != 0 or library.nvmlSystemGetDriverVersion(text, 96) != 0:
        return ""
    return text.value.decode("ascii", "replace")


def _cuda(config: Config) -> Any:
    if config["backend"] == "cpu":
        return None
    import torch

    return torch


def _kernel(config: Config) -> Result:
    torch = _cuda(config)
    if torch is None:
        return FAIL, "a build without CUDA on a flavor with GPUs"
    said = []
    for index in range(torch.cuda.device_count()):
        value = torch.arange(4096, device=f"cuda:{index}", dtype=torch.float32)
        total = float((value * 2).sum())
        torch.cuda.synchronize(index)
        if total != 4096 * 4095:
            return FAIL, f"GPU {index} gives {total}"
        said.append("sm_{}{}".format(*torch.cuda.get_device_capability(index)))
    return PASS, ", ".join(said)


def _training(config: Config) -> Result:
    torch = _cuda(config)
    if torch is None:
        return FAIL, "a build without CUDA on a flavor with GPUs"
    kinds = [torch.float16] + ([torch.bfloat16] if torch.cuda.is_bf16_supported() else [])
    said = []
    for kind in kinds:
        layer = torch.nn.Linear(64, 64, device="cuda")
        with torch.autocast("cuda", dtype=kind):
            loss = layer(torch.ones(8, 64, device="cuda")).float().square().mean()
        loss.backward()
        if not bool(torch.isfinite(layer.weight.grad).all()):
            return FAIL, f"{kind} gives no finite gradients"
        said.append(str(kind).rpartition(".")[2])
    twice = torch.compile(lambda x: torch.sin(x) * 2)
    given = torch.linspace(0, 1, 512, device="cuda")
    if not torch.allclose(twice(given), torch.sin(given) * 2, atol=1e-5):
        return FAIL, "torch.compile gives other values"
    said.append("compile")
    if torch.cuda.device_count() >= 2:
        status, detail = all_reduce("nccl")
        if status != PASS:
            return status, detail
        said.append("nccl")
    return PASS, ", ".join(said)


COUNT: dict[int, Check] = {25: gpu_count}
GPUS: dict[int, Check] = {25: gpu_count, 26: _driver, 27: _kernel, 28: _training}
"""The first is made again before every job."""
