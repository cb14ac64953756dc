"""What a program runs on, as the machine and its environment say it: for the job's history.

Versions are read from the files that installers and PyTorch's own build leave. Nothing is imported:
`import torch` alone costs seconds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from danlu.model.script import TaskPlan
from danlu.node.gpu import loaded_driver

DISTRIBUTIONS = {
    "torch": re.compile(r"torch-(\S+)\.dist-info"),
    "cudnn": re.compile(r"nvidia_cudnn_cu\d+-(\S+)\.dist-info"),
    "nccl": re.compile(r"nvidia_nccl_cu\d+-(\S+)\.dist-info"),
}
CUDA = re.compile(r"^cuda\b[^=\n]*=\s*'([0-9.]+)'", re.MULTILINE)
"""In torch/version.py: `cuda: Optional[str] = '12.8'`; None in a build for CPUs."""
VERSION_BYTES = 16 << 10


def seen(plan: TaskPlan, python: str, root: Path = Path("/")) -> dict[str, str]:
    """Versions and devices under their names; what is not there is left out."""
    found = {**_environment(Path(python).parent.parent)}
    if plan.gpus:
        found["driver"] = loaded_driver(root)
        models = [gpu.model for gpu in plan.gpus]
        found["gpus"] = ", ".join(
            f"{models.count(model)} × {model}" for model in dict.fromkeys(models)
        )
    return {name: value for name, value in found.items() if value}


def sentence(found: Mapping[str, str]) -> str:
    """The same in one line, for people of any language."""
    names = {"python": "Python", "cuda": "CUDA", "cudnn": "cuDNN", "nccl": "NCCL"}
    parts = [f"{names.get(name, name)} {value}" for name, value in found.items() if name != "gpus"]
    return " · ".join([*parts, *([found["gpus"]] if "gpus" in found else [])])


def _environment(prefix: Path) -> dict[str, str]:
    found = {"python": _python(prefix)}
    for packages in sorted(prefix.glob("lib/python3*/site-packages")):
        with suppress(OSError):
            names = os.listdir(packages)  # noqa: PTH208 -- names only, of many
            for key, pattern in DISTRIBUTIONS.items():
                versions = [match[1] for name in names if (match := pattern.fullmatch(name))]
                found.setdefault(key, versions[0] if len(versions) == 1 else "")
        with suppress(OSError), (packages / "torch" / "version.py").open("rb") as file:
            match = CUDA.search(file.read(VERSION_BYTES).decode("utf-8", "replace"))
            found.setdefault("cuda", match[1] if match else "")
    order = ("python", "torch", "cuda", "cudnn", "nccl")
    return {name: found[name] for name in order if name in found}


def venv_version(prefix: Path) -> str:
    """Python's version as a virtual environment names it; empty where nothing does."""
    found = ""
    with suppress(OSError):
        for line in (prefix / "pyvenv.cfg").read_text("utf-8", "replace").splitlines():
            key, _, value = line.partition("=")
            if key.strip() in ("version", "version_info"):
                found = value.strip()
    return found


def _python(prefix: Path) -> str:
    named = venv_version(prefix)
    if named:
        return ".".join(named.split(".")[:3])
    places = sorted(prefix.glob("lib/python3.*"))
    return places[-1].name.removeprefix("python") if places else ""
