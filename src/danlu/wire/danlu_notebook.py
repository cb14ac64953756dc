"""Danlu's own requests about notebooks: what ModelArts has no words for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from danlu.model.idle import OFF, Idle
from danlu.model.notebook import LEAST_LEASE_MS, MOST_LEASE_MS, Lease
from danlu.wire.modelarts_notebook import idle_of
from danlu.wire.shape import Shape, Text, Whole

HOLD = Shape(
    {
        "seconds": Whole(about="for how long at most, 60 to 86400"),
        "pid": Whole(0, 2**31 - 1, "a process of the instance: held until it ends"),
        "why": Text(),
    },
    required=("seconds",),
)
RENEW = Shape(
    {
        "lease_ms": Whole(LEAST_LEASE_MS, MOST_LEASE_MS, "a new lease, from now"),
        "lease": Text((OFF,), "off: no lease any more"),
        "idle": Text(about="off, default, or a number of seconds"),
    },
    about="empty: the same again, from now",
)


@dataclass(frozen=True, slots=True)
class Renewal:
    """What is to be from now on; None = as it was."""

    lease: Lease | None
    idle: Idle | None


def renewal(body: Mapping[str, Any]) -> Renewal:
    """What a renewal asks for."""
    read = RENEW.read(body)
    lease = Lease(read["lease_ms"]) if "lease_ms" in read else None
    if "lease" in read:
        lease = Lease()
    return Renewal(lease, idle_of(read["idle"], "idle") if "idle" in read else None)


def hold(body: Mapping[str, Any]) -> tuple[int, int, str]:
    """For how many seconds, for which process, and why."""
    read = HOLD.read(body)
    return read["seconds"], read.get("pid", 0), read.get("why", "")
