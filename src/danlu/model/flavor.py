"""Flavors: named resource shapes and their price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from danlu.model.resources import GIB, Offer, Shape

MEMORY_SHARE = 0.9
"""The part of a machine's memory that flavors hand out; the rest is the system's and ours."""


@dataclass(frozen=True, slots=True)
class Flavor:
    """A named shape. `price_per_hour` is in the server's currency; 0 = free."""

    id: str
    shape: Shape
    price_per_hour: float = 0.0

    @property
    def kind(self) -> str:
        """ModelArts' flavor_type: CPU or GPU."""
        return "GPU" if self.shape.gpus else "CPU"


def of_machine(total: Offer) -> tuple[Flavor, ...]:
    """The flavors that one machine gives without configuration.

    CPU flavors double from 1 core up to all of them; memory goes with the cores. GPU flavors
    double per model, each GPU with its share of cores and memory.
    """
    usable = int(total.memory_bytes * MEMORY_SHARE)
    flavors = [
        Flavor(f"danlu.cpu.{cpus}u", Shape(cpus, _share(usable, cpus, total.cpus)))
        for cpus in _doubling(total.cpus)
    ]
    for model in sorted({gpu.model for gpu in total.gpus}):
        count = sum(gpu.model == model for gpu in total.gpus)
        flavors.extend(
            Flavor(
                f"danlu.gpu.{_slug(model)}.{gpus}",
                Shape(
                    max(1, total.cpus * gpus // len(total.gpus)),
                    _share(usable, gpus, len(total.gpus)),
                    gpus,
                    model,
                ),
            )
            for gpus in _doubling(count)
        )
    return tuple(flavors)


def default_of(flavors: Sequence[Flavor]) -> Flavor:
    """The flavor of a job that names none: one GPU where there is one, else up to 4 cores."""
    gpus = [flavor for flavor in flavors if flavor.shape.gpus == 1]
    if gpus:
        return gpus[0]
    modest = [flavor for flavor in flavors if flavor.shape.cpus <= 4] or list(flavors)
    return max(modest, key=lambda flavor: flavor.shape.cpus)


def _doubling(most: int) -> list[int]:
    steps = [1 << power for power in range(most.bit_length()) if 1 << power <= most]
    return steps if steps and steps[-1] == most else [*steps, most]


def _share(whole: int, part: int, parts: int) -> int:
    share = whole * part // parts
    quarter = GIB // 4
    return share // quarter * quarter or share


def _slug(model: str) -> str:
    words = "".join(c.lower() if c.isalnum() and c.isascii() else " " for c in model).split()
    return "-".join(word for word in words if word not in ("nvidia", "tesla", "geforce")) or "gpu"
