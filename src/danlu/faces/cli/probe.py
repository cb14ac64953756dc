"""Asks the interpreter of jobs for its PyTorch, in a process of its own: an import may crash."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import NamedTuple

MARK = "danlu-probe:"
TIMEOUT_S = 120.0

SCRIPT = f"""
import json, platform
found = {{"python": platform.python_version(), "version": "", "cuda": "", "available": False}}
try:
    import torch
    found.update(
        version=str(torch.__version__),
        cuda=str(torch.version.cuda or ""),
        available=bool(torch.cuda.is_available()),
    )
except ModuleNotFoundError:
    pass
print("\\n{MARK}" + json.dumps(found))
"""


class Torch(NamedTuple):
    """What the interpreter said; `problem` is set where it could not be asked."""

    python: str = ""
    version: str = ""
    cuda: str = ""
    available: bool = False
    problem: str = ""


def ask(python: Path, timeout_s: float = TIMEOUT_S) -> Torch:
    """What `python` says of itself and its torch. Other lines on stdout, and stderr, are noise."""
    try:
        done = subprocess.run(
            [str(python), "-c", SCRIPT],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Torch(problem=f"no answer within {timeout_s:.0f} s")
    except OSError as error:
        return Torch(problem=error.strerror or str(error))
    for line in reversed(done.stdout.decode("utf-8", "replace").splitlines()):
        if line.startswith(MARK):
            return _read(line.removeprefix(MARK))
    words = done.stderr.decode("utf-8", "replace").strip().splitlines()
    last = words[-1] if words else f"exit status {done.returncode}"
    return Torch(problem=last)


def _read(text: str) -> Torch:
    try:
        said = json.loads(text)
        return Torch(
            str(said["python"]), str(said["version"]), str(said["cuda"]), bool(said["available"])
        )
    except (ValueError, KeyError, TypeError) as error:
        return Torch(problem=str(error))
