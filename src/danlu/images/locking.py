"""Makes the lock of a definition, from an index's metadata: no wheel is downloaded for it.

Wheels that lie on this machine (find-links) have no digest in any index: theirs is computed.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

from danlu.images import definition, lock, pylock, uv
from danlu.images.definition import Definition
from danlu.images.lock import Lock, Wheel
from danlu.images.matrix import Matrix
from danlu.images.uv import Uv
from danlu.model.errors import Invalid, Refused
from danlu.model.image import CPU, INDEX

LINUX = "x86_64", "2.28"
"""Architecture and C library of images, where nothing else is said."""
AARCH64 = "aarch64"


def make(
    matrix: Matrix,
    one: Definition,
    backend: str,
    tool: Uv,
    *,
    target: tuple[str, str] = LINUX,
    pins: Sequence[Wheel] = (),
) -> Lock:
    """The lock of one backend. `pins` are wheels of an earlier lock whose versions are kept.

    DoesNotFit, Missing or Invalid for a definition that cannot work; Refused with uv's words where
    its packages cannot be had together.
    """
    arch, glibc = target
    if backend not in one.backends:
        known = ", ".join(one.backends)
        raise Invalid("field-value", field="backend", value=backend, expected=f"one of {known}")
    choice = definition.check(matrix, one, glibc, arch)[backend].choice
    built = (
        f"+{backend}"
        if choice is not None and _named_by_build(choice.channel, backend, arch)
        else ""
    )
    wanted = [
        f"{name}{built}" if name.startswith(("torch==", "torchvision==", "torchaudio==")) else name
        for name in definition.requirements(matrix, one)
    ]
    try:
        text = _resolved(wanted, one, tool, target, pins, built)
    except uv.Failed as failed:
        raise Refused("image-unresolved", image=one.id, detail=failed.said) from failed
    wheels = pylock.wheels(text, pylock.Target(one.python, glibc, arch), Local(tool.sources))
    _paired(wheels, built)
    return lock.of(one, matrix, backend, arch, wheels)


def _named_by_build(channel: str, backend: str, arch: str) -> bool:
    """Whether the wheel's version names the build: PyTorch's own index does so, PyPI cannot."""
    return channel == INDEX or (backend == CPU and arch != AARCH64)


def _paired(wheels: Sequence[Wheel], built: str) -> None:
    """Refused where torch, or what was compiled against it, is another build than was meant."""
    for wheel in wheels:
        if wheel.name in ("torch", *definition.COMPANIONS) and _build(wheel.version) != built:
            raise Refused("image-other-build", package=wheel.name, version=wheel.version,
                          needs=built or "PyPI's own")  # fmt: skip


def _build(version: str) -> str:
    _, plus, tag = version.partition("+")
    return plus + tag


def _resolved(
    wanted: Sequence[str],
    one: Definition,
    tool: Uv,
    target: tuple[str, str],
    pins: Sequence[Wheel],
    built: str,
) -> str:
    """What uv finds, as a pylock.toml."""
    arch, glibc = target
    with tempfile.TemporaryDirectory() as folder:
        source, constraints = Path(folder, "requirements.in"), Path(folder, "constraints.txt")
        found = Path(folder, "pylock.toml")
        source.write_text("\n".join(wanted) + "\n", "utf-8")
        constraints.write_text("".join(f"{one.name}=={one.version}\n" for one in pins), "utf-8")
        release = f"torch-{one.torch}{built}-cp{one.python.replace('.', '')}"
        here = built and any(
            file.name.startswith(release)
            for place in tool.sources.directories()
            if place.is_dir()
            for file in place.iterdir()
        )
        tool(
            *("pip", "compile", str(source), "--constraint", str(constraints)),
            *("--format", "pylock.toml", "--only-binary", ":all:"),
            *("--python-version", one.python),
            *("--python-platform", f"{arch}-manylinux_{glibc.replace('.', '_')}"),
            *(tool.sources.options() if here else uv.extended(tool.sources, [(f"0{built}", "")])),
            *("--output-file", str(found)),
        )
        return found.read_text("utf-8")


class Local(dict[str, str]):
    """The SHA-256 of files that lie on this machine, by file name; computed when asked for."""

    def __init__(self, sources: uv.Sources) -> None:
        super().__init__()
        self._places = sources.directories()

    def get(self, name: str, default: object = None) -> object:  # type: ignore[override] # one form
        """The digest, or None where there is no such file."""
        for place in self._places:
            if (place / name).is_file():
                with (place / name).open("rb") as file:
                    return hashlib.file_digest(file, "sha256").hexdigest()
        return default
