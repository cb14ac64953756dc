"""Devices that must be there before a program starts, because it could not make them itself."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

MODPROBE = "nvidia-modprobe"
LIMIT_S = 10.0


def make_ready(dev: Path = Path("/dev")) -> None:
    """Have NVIDIA's memory device made. CUDA makes it by a program that gains root's rights, which
    no program of a task does, and the rules for its files name what is there at its start.
    """
    if not (dev / "nvidiactl").exists() or (dev / "nvidia-uvm").exists():
        return
    program = shutil.which(MODPROBE)
    if program is not None:
        with suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(
                [program, "-c0", "-u"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=LIMIT_S,
                check=False,
            )
