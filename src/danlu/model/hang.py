"""Whether a task hangs: nothing moves in it for so long that nobody would wait for it. Pure.

Each of these alone says nothing: scripts are silent, data is in memory, GPUs are busy for hours.
All of them together, for the whole time: no byte of log, no byte read or written by any of its
processes, and a GPU (or, without one, processors) whose use does not change. A rank that waits for
another one in a collective call keeps its GPU at exactly 100 %.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class HangAction(StrEnum):
    """What is done about a task that hangs, once its stacks are recorded."""

    NOTIFY = "notify"
    RESTART = "restart"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Hang:
    """A job's wish: after how many seconds (None = what the server says, 0 = never), and what."""

    after_s: int | None = None
    action: HangAction = HangAction.NOTIFY


FLAT_GPU = 0.05
"""How much the share of time in which a GPU is busy may vary and still be flat."""
FLAT_CORES = 0.15
FLAT_SHARE = 0.1
"""How much the busy processors may vary: this many, or this share of the most, if that is more."""
FEWEST_LOOKS = 5
WIDEST_GAP = 0.34
"""A gap between two looks that is a greater part of the time than this says nothing about it:
the watcher itself was away."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of a task at one instant (of a clock that never jumps). None = unknown."""

    at_s: float
    log_bytes: int
    io_bytes: int | None = None
    """Read and written by its processes so far."""
    cpu_cores: float | None = None
    gpu_busy: float | None = None


@dataclass(frozen=True, slots=True)
class Still:
    """Nothing has moved since `since_s`; what is busy while nothing moves."""

    since_s: float
    cpu_cores: float | None = None
    gpu_busy: float | None = None


def still(looks: Sequence[Look], after_s: float) -> Still | None:
    """Whether nothing moved in the last `after_s` seconds of `looks`, the oldest first; None where
    something did, or where that much has not been seen.
    """
    if not looks or after_s <= 0:
        return None
    begin = looks[-1].at_s - after_s
    before = [number for number, look in enumerate(looks) if look.at_s <= begin]
    if not before:
        return None
    window = looks[before[-1] :]
    gaps = (late.at_s - early.at_s for early, late in itertools.pairwise(window))
    if len(window) < FEWEST_LOOKS or max(gaps) > max(1.0, after_s) * WIDEST_GAP:
        return None
    if len({look.log_bytes for look in window}) > 1:
        return None
    if len({look.io_bytes for look in window if look.io_bytes is not None}) > 1:
        return None
    gpus = [look.gpu_busy for look in window if look.gpu_busy is not None]
    cores = [look.cpu_cores for look in window if look.cpu_cores is not None]
    if not _flat(gpus, cores):
        return None
    return Still(window[0].at_s, _last(cores), _last(gpus))


def _flat(gpus: Sequence[float], cores: Sequence[float]) -> bool:
    """A task with a GPU is judged by that: its processors may spin at any rate while it waits."""
    if gpus:
        return max(gpus) - min(gpus) <= FLAT_GPU
    if not cores:
        return False
    return max(cores) - min(cores) <= max(FLAT_CORES, FLAT_SHARE * max(cores))


def _last(values: Sequence[float]) -> float | None:
    return values[-1] if values else None
