"""What this machine could give to tasks: the processors, memory and GPUs that we may use."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from danlu.model.errors import EngineError
from danlu.model.resources import Gpu, Offer

LOOK_EVERY_S = 60.0
"""A driver that is installed, or a GPU that falls off the bus, is noticed within this time."""
UNLIMITED_BYTES = 1 << 60


def cpus(root: Path = Path("/")) -> int:
    """Processors that this process may use: its affinity, and the quota of its control groups."""
    quotas = [*_quotas_v2(root), *_quotas_v1(root)]
    return max(1, min([len(os.sched_getaffinity(0)), *(int(quota) for quota in quotas)]))


def memory_bytes(root: Path = Path("/")) -> int:
    """Memory of the machine, or what the control groups of this process allow if that is less."""
    limits = [*_limits(root, "", "memory.max"), *_limits(root, "memory", "memory.limit_in_bytes")]
    return min([_total_memory(root), *limits])


def node_name() -> str:
    """The machine's name, as events show it."""
    return platform.node().partition(".")[0] or "localhost"


def check_kernel() -> None:
    """EngineError where the kernel cannot name processes for good (or a sandbox forbids it)."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as error:
        raise EngineError(
            "kernel-too-old", release=platform.release(), detail=error.strerror
        ) from error


class Machine:
    """This machine as an offer. It is looked at once a minute at most, in the background after the
    first time: a driver may take its time, and so may the files of a control group whose memory
    runs out.
    """

    def __init__(
        self,
        node: str,
        probe: Callable[[], tuple[Gpu, ...]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._node = node
        self._probe = probe
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._offer: Offer | None = None
        self._looked_at = 0.0
        self._looking = False

    def offer(self) -> Offer:
        """All that the machine has."""
        with self._lock:
            if self._offer is None:
                return self._look()
            if not self._looking and self._monotonic() - self._looked_at > LOOK_EVERY_S:
                self._looking = True
                threading.Thread(target=self._look, name="machine-look", daemon=True).start()
            return self._offer

    def _look(self) -> Offer:
        found = Offer(self._node, cpus(), memory_bytes(), self._probe())
        self._offer, self._looked_at, self._looking = found, self._monotonic(), False
        return found


def _total_memory(root: Path) -> int:
    with suppress(OSError, ValueError):
        for line in (root / "proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemTotal:"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The control group of this process, then those above it; controller "" is version 2."""
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text("utf-8").splitlines():
            _, _, rest = line.partition(":")
            names, _, path = rest.partition(":")
            if controller not in names.split(",") and controller != names:
                continue
            base = root / "sys/fs/cgroup" / (controller and names)
            if controller and not base.is_dir():
                base = root / "sys/fs/cgroup" / controller
            group = base / path.lstrip("/")
            yield group
            yield from (above for above in group.parents if above.is_relative_to(base))


def _limits(root: Path, controller: str, file: str) -> Iterator[int]:
    for group in _groups(root, controller):
        with suppress(OSError, ValueError):
            limit = int((group / file).read_text("ascii"))
            if 0 < limit < UNLIMITED_BYTES:
                yield limit


def _quotas_v2(root: Path) -> Iterator[float]:
    for group in _groups(root, ""):
        with suppress(OSError, ValueError):
            quota, period = (group / "cpu.max").read_text("ascii").split()
            if quota != "max":
                yield int(quota) / int(period)


def _quotas_v1(root: Path) -> Iterator[float]:
    for group in _groups(root, "cpu"):
        with suppress(OSError, ValueError):
            quota = int((group / "cpu.cfs_quota_us").read_text("ascii"))
            if quota > 0:
                yield quota / int((group / "cpu.cfs_period_us").read_text("ascii"))
