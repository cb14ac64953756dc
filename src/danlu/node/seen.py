"""What a program runs on, as the machine and its environment say it: for the job's history.

Versions are read from the files that installers and PyTorch's own build leave. Nothing is imported:
`import torch` alone costs seconds.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from danlu.model.script import TaskPlan
from danlu.node import linux
from danlu.node.gpu import loaded_driver

DISTRIBUTIONS = {
    "torch": re.compile(r"torch-(\S+)\.dist-info"),
    "cudnn": re.compile(r"nvidia_cudnn_cu\d+-(\S+)\.dist-info"),
    "nccl": re.compile(r"nvidia_nccl_cu\d+-(\S+)\.dist-info"),
}
CUDA = re.compile(r"^cuda\b[^=\n]*=\s*'([0-9.]+)'", re.MULTILINE)
"""In torch/version.py: `cuda: Optional[str] = '12.8'`; None in a build for CPUs."""
TEXT_BYTES = 16 << 10
PLACES = ("dist-packages", "site-packages")
ORDER = ("python", "torch", "cuda", "cudnn", "nccl")


class Tree:
    """A machine's files, by their absolute paths. What is not there, or no plain file, is empty."""

    def names(self, path: str) -> list[str]:
        """The names in a directory."""
        with suppress(OSError):
            return sorted(os.listdir(path))  # noqa: PTH208 -- names only, of many
        return []

    def text(self, path: str) -> str:
        """The beginning of a file."""
        with suppress(OSError), open(path, "rb") as file:  # noqa: PTH123 -- a path as text
            return file.read(TEXT_BYTES).decode("utf-8", "replace")
        return ""


class Inside(Tree):
    """The files below a root that belongs to somebody else, a container's above all. There may be
    links and pipes in the way: none leads out of the root, and none is waited for.
    """

    def __init__(self, root: str) -> None:
        self._root = root

    def names(self, path: str) -> list[str]:
        with suppress(OSError), self._open(path, os.O_DIRECTORY) as descriptor:
            return sorted(os.listdir(descriptor))  # noqa: PTH208 -- it has no path
        return []

    def text(self, path: str) -> str:
        with suppress(OSError), self._open(path, os.O_NONBLOCK) as descriptor:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return os.read(descriptor, TEXT_BYTES).decode("utf-8", "replace")
        return ""

    @contextmanager
    def _open(self, path: str, flags: int) -> Iterator[int]:
        root = os.open(self._root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            descriptor = linux.open_within(root, path, flags)
        finally:
            os.close(root)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def seen(
    plan: TaskPlan, pythons: Sequence[str], root: Path = Path("/"), tree: Tree | None = None
) -> dict[str, str]:
    """Versions and devices under their names; what is not there is left out. Of several
    interpreters each one sees what the next one has, and its own first. `tree` are the files that
    the program sees, where they are not this machine's.
    """
    found: dict[str, str] = {}
    for python in pythons:
        found = {**_environment(tree or Tree(), str(Path(python).parent.parent)), **found}
    found = {name: found[name] for name in ORDER if name in found}
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


def _environment(tree: Tree, prefix: str) -> dict[str, str]:
    """What is installed below a prefix; what two versions are installed of is empty."""
    found = {"python": _python(tree, prefix)}
    for packages in _sites(tree, prefix):
        names = tree.names(packages)
        for key, pattern in DISTRIBUTIONS.items():
            versions = [match[1] for name in names if (match := pattern.fullmatch(name))]
            if versions:
                found.setdefault(key, versions[0] if len(versions) == 1 else "")
        match = CUDA.search(tree.text(f"{packages}/torch/version.py")) if "torch" in names else None
        if match:
            found.setdefault("cuda", match[1])
    return {name: value for name, value in found.items() if value or name != "python"}


def _sites(tree: Tree, prefix: str) -> Iterator[str]:
    """Where a prefix has its packages; Debian's Python has places of its own."""
    for library in (f"{prefix}/local/lib", f"{prefix}/lib"):
        for name in tree.names(library):
            if name.startswith("python3"):
                yield from (
                    f"{library}/{name}/{place}"
                    for place in tree.names(f"{library}/{name}")
                    if place in PLACES
                )


def venv_version(prefix: Path, tree: Tree | None = None) -> str:
    """Python's version as a virtual environment names it; empty where nothing does."""
    found = ""
    for line in (tree or Tree()).text(f"{prefix}/pyvenv.cfg").splitlines():
        key, _, value = line.partition("=")
        if key.strip() in ("version", "version_info"):
            found = value.strip()
    return found


def _python(tree: Tree, prefix: str) -> str:
    named = venv_version(Path(prefix), tree)
    if named:
        return ".".join(named.split(".")[:3])
    places = [name for name in tree.names(f"{prefix}/lib") if name.startswith("python3.")]
    return places[0].removeprefix("python") if len(places) == 1 else ""
