"""The checks by number: what each is called, and how one is written down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

PASS, WARN, FAIL, SKIPPED = "PASS", "WARN", "FAIL", "SKIPPED"
Config = dict[str, Any]
Result = tuple[str, str]
Check = Callable[[Config], Result]

NAMES = {
    1: "interpreter", 2: "installed", 3: "files", 4: "torch", 5: "cuda-libraries",
    6: "one-cuda", 7: "loaded-from", 8: "linked", 9: "glibc", 10: "numpy-bridge",
    11: "companions", 12: "opencv", 13: "architectures", 14: "shm", 15: "loader", 16: "user",
    17: "mounts", 18: "ssh", 19: "jupyter", 20: "first-process", 21: "leaks", 22: "size",
    23: "all-reduce", 24: "training", 25: "gpu-count", 26: "driver", 27: "kernel",
    28: "gpu-training",
}  # fmt: skip
GPU = (25, 26, 27, 28)
NEED_TORCH = (4, 5, 7, 8, 10, 11, 13, 15, 23, 24, 27, 28)
NO_TORCH = "the image has no torch"
NO_GPU = "the flavor has no GPU"


def result(number: int, status: str, detail: str) -> dict[str, Any]:
    """One line of the report."""
    return {"number": number, "name": NAMES[number], "status": status, "detail": detail[:500]}


def run(config: Config, checks: dict[int, Check]) -> Iterator[dict[str, Any]]:
    """The results of some checks, one after the other. What raises fails."""
    for number, check in checks.items():
        skipped = reason_to_skip(config, number)
        if skipped:
            yield result(number, SKIPPED, skipped)
            continue
        try:
            status, detail = check(config)
        except Exception as error:
            words = " ".join(str(error).split())
            status, detail = FAIL, f"{type(error).__name__}: {words}"
        yield result(number, status, detail)


def reason_to_skip(config: Config, number: int) -> str:
    """Why a check cannot be made here; empty where it can. A GPU's row never passes without one."""
    if number in GPU and not config["gpus"]:
        return NO_GPU
    if number in NEED_TORCH and not wheel(config, "torch"):
        return NO_TORCH
    return ""


def wheel(config: Config, name: str) -> str:
    """The locked version of a package; empty where it is not in the image."""
    return str(config["wheels"].get(name, ""))


def numbers(version: str) -> list[int]:
    """A version as numbers to compare: `9.10.2.21` and `535.104`."""
    found: list[int] = []
    for part in version.partition("+")[0].split("."):
        digits = "".join(c for c in part if c.isdigit())
        found.append(int(digits or 0))
    return found
