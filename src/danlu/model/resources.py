"""What tasks need and what nodes offer. Pure arithmetic over whole numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

GIB = 1 << 30
LEAST_PIDS = 4096
PIDS_A_CPU = 1024


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU of a node, or one MIG device; `index` is that of the card, in the driver's order.

    `memory_bytes` is None where the driver does not say, which is not 0.
    """

    uuid: str
    index: int
    model: str
    memory_bytes: int | None


@dataclass(frozen=True, slots=True)
class Shape:
    """What one task needs: CPU cores, bytes of memory, GPUs of a model (empty = any)."""

    cpus: int
    memory_bytes: int
    gpus: int = 0
    gpu_model: str = ""

    @property
    def pids(self) -> int:
        """How many processes and threads one task may have at a time: room for a loader with
        many workers of many threads each, and an end to a program that only forks.
        """
        return max(LEAST_PIDS, PIDS_A_CPU * self.cpus)

    def describe(self) -> str:
        """For people: `2 CPUs, 8 GiB, 1 × Tesla-V100`."""
        parts = [f"{self.cpus} CPU{'s' if self.cpus != 1 else ''}", size(self.memory_bytes)]
        if self.gpus:
            parts.append(f"{self.gpus} × {self.gpu_model or 'GPU'}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Offer:
    """What a node could give now (or, for `total`, when nothing runs on it)."""

    node: str
    cpus: int
    memory_bytes: int
    gpus: tuple[Gpu, ...] = ()

    def matching(self, shape: Shape) -> tuple[Gpu, ...]:
        """The GPUs of this node that are of the model which `shape` asks for."""
        return tuple(gpu for gpu in self.gpus if shape.gpu_model in ("", gpu.model))

    def holds(self, shape: Shape) -> int:
        """How many tasks of `shape` fit side by side."""
        fits = [self.cpus // shape.cpus if shape.cpus else 1 << 31]
        if shape.memory_bytes:
            fits.append(self.memory_bytes // shape.memory_bytes)
        if shape.gpus:
            fits.append(len(self.matching(shape)) // shape.gpus)
        return max(0, min(fits))

    def without(self, cpus: int, memory_bytes: int, gpus: Iterable[str]) -> Offer:
        """What is left when this much is taken. May go below zero where a node shrank."""
        taken = set(gpus)
        return replace(
            self,
            cpus=self.cpus - cpus,
            memory_bytes=self.memory_bytes - memory_bytes,
            gpus=tuple(gpu for gpu in self.gpus if gpu.uuid not in taken),
        )


def size(count: int) -> str:
    """Bytes for people, in binary units: `1.5 GiB`, `512 B`. Exact where it is whole."""
    if abs(count) < 1 << 10:
        return f"{count} B"
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if abs(count) >= 1 << power:
            return f"{count / (1 << power):.1f}".removesuffix(".0") + f" {unit}"
    raise AssertionError(count)
