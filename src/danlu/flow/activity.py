"""What running notebooks are used for, as it was seen last. Readings may wait for an instance that
does not answer, so they are taken beside the loop.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from danlu.flow.board import Board
from danlu.flow.notebooks import Notebooks
from danlu.flow.platform import Platform
from danlu.model.errors import PlatformError
from danlu.model.idle import Signal
from danlu.model.notebook import Notebook, State
from danlu.model.resources import GIB
from danlu.ports.engine import ACTIVITY, Endpoints, Engine, Ref, Volumes

log = logging.getLogger(__name__)

EVERY_S = 10.0
HOMES_EVERY_S = 300.0
STALE_S = 90.0
"""What was read longer ago says nothing."""
UNKNOWN_S = 300.0
GPU_BUSY = 0.05
INSTANCE = ("processes", "kernels", "terminals")
"""What an instance says of itself (`runtime/danlu_notebook/activity.py`)."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The signals of one notebook's job, when (monotonic) they were read, and its processes."""

    job_id: str
    read_at: float
    signals: tuple[Signal, ...]
    pids: frozenset[int] | None = None


class Activity:
    """The latest reading of each running notebook. Thread-safe."""

    def __init__(self, platform: Platform, board: Board, notebooks: Notebooks) -> None:
        self._platform = platform
        self._board = board
        self._notebooks = notebooks
        self._readings: dict[str, Reading] = {}
        self._homes: dict[str, int] = {}
        self._homes_at: float | None = None
        self._touched: dict[str, int] = {}
        self._began_at = platform.clock.now()
        self._overfull: set[str] = set()
        self._unknown: dict[str, float] = {}
        """Since when it cannot be told whether a notebook is used; infinity = that was said."""
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notebook-activity", daemon=True)

    def start(self) -> None:
        """Begin to look now and then."""
        self._thread.start()

    def close(self) -> None:
        """Stop looking."""
        self._closing.set()

    def of(self, notebook: Notebook) -> Reading | None:
        """What was read of a notebook's present job, if that is not too long ago."""
        reading = self._readings.get(notebook.id)
        if reading is None or reading.job_id != notebook.job_id:
            return None
        age_s = self._platform.clock.monotonic() - reading.read_at
        return reading if age_s <= STALE_S else None

    def touch(self, notebook_id: str) -> None:
        """Somebody writes through the browser: a file is saved, a kernel is asked for."""
        self._touched[notebook_id] = self._platform.clock.now()

    def _browser(self, notebook: Notebook) -> Signal:
        # What an earlier server saw is not known: it counts as if it had been in the last moment.
        return Signal("browser", self._touched.get(notebook.id, self._began_at))

    def doubtful(self, notebook: Notebook, unknown: Sequence[str]) -> bool:
        """Whether it is time to say that it cannot be told whether a notebook is used: once, when
        that has been so for a while.
        """
        now = self._platform.clock.monotonic()
        if not unknown:
            self._unknown.pop(notebook.id, None)
            return False
        since = self._unknown.setdefault(notebook.id, now)
        if now - since < UNKNOWN_S:
            return False
        self._unknown[notebook.id] = math.inf
        return True

    def overfull(self, notebook: Notebook) -> int | None:
        """What lies in a home that holds more than it may: once, until it is less again."""
        used, limit = self._homes.get(notebook.id), notebook.spec.home_gib
        if used is None or limit is None or used <= limit * GIB:
            self._overfull.discard(notebook.id)
            return None
        if notebook.id in self._overfull:
            return None
        self._overfull.add(notebook.id)
        return used

    def home_bytes(self, notebook: Notebook) -> int | None:
        """What lay in its home when it was looked at last."""
        return self._homes.get(notebook.id)

    def look(self) -> None:
        """Read every running notebook once."""
        running = [one for one in self._notebooks.live() if one.state is State.RUNNING]
        for notebook in running:
            entry = self._board.get(notebook.job_id)
            if entry is not None:
                self._readings[notebook.id] = self._read(notebook, entry.refs[0])
        known = {one.id for one in running}
        for gone in self._readings.keys() - known:
            self._readings.pop(gone, None)
            self._unknown.pop(gone, None)
            self._touched.pop(gone, None)

    def measure(self, notebook: Notebook) -> None:
        """Look at what lies in a home."""
        engine = self._platform.engine
        if isinstance(engine, Volumes):
            used = engine.volume_bytes(notebook.id)
            if used is not None:
                self._homes[notebook.id] = used

    def _read(self, notebook: Notebook, ref: Ref) -> Reading:
        platform = self._platform
        now = platform.clock.now()
        said: Mapping[str, object] | None = None
        with suppress(PlatformError):
            if isinstance(platform.engine, Endpoints):
                said = platform.engine.said(ref, ACTIVITY)
        signals = [*(told(said, name, now) for name in INSTANCE), self._browser(notebook)]
        entry = self._board.get(notebook.job_id)
        if entry is not None and entry.job.spec.shape.gpus:
            signals.append(gpu(platform.engine, ref, now))
        for name, reader in platform.readers:
            try:
                signals.extend(reader(platform.engine, ref))
            except PlatformError as error:
                signals.append(Signal(name, None, str(error)))
        return Reading(notebook.job_id, platform.clock.monotonic(), tuple(signals), _pids(said))

    def _run(self) -> None:
        while not self._closing.wait(EVERY_S):
            try:
                self.look()
                self._measure_now_and_then()
            except Exception:
                log.exception("notebooks cannot be looked at; it is tried again")

    def _measure_now_and_then(self) -> None:
        now = self._platform.clock.monotonic()
        if self._homes_at is None or now - self._homes_at >= HOMES_EVERY_S:
            self._homes_at = now
            for notebook in self._notebooks.live():
                self.measure(notebook)


def told(said: Mapping[str, object] | None, name: str, now: int) -> Signal:
    """What the instance says of its own use; unknown where it has not spoken for a while."""
    part = said.get(name) if said is not None else None
    at = said.get("at") if said is not None else None
    fresh = isinstance(at, int) and abs(now - at) <= STALE_S * 1000
    if not fresh or not isinstance(part, dict):
        return Signal(name, None, "the instance does not say")
    active_at = part.get("active_at")
    detail = part.get("detail")
    return Signal(
        name,
        active_at if isinstance(active_at, int) else None,
        detail[:100] if isinstance(detail, str) else "",
        part.get("goes_on") is True,
    )


def gpu(engine: Engine, ref: Ref, now: int) -> Signal:
    """When the GPUs of a task were busy last, as its agent samples them."""
    samples = engine.stats([ref]).get(ref, ())
    if not samples or now - samples[-1].at > STALE_S * 1000 or samples[-1].gpu_busy is None:
        return Signal("gpu", None, "its use is not known")
    for sample in reversed(samples):
        if sample.gpu_busy is not None and sample.gpu_busy >= GPU_BUSY:
            return Signal("gpu", sample.at, f"{sample.gpu_busy:.0%} busy")
    return Signal("gpu", samples[0].at)


def _pids(said: Mapping[str, object] | None) -> frozenset[int] | None:
    listed = said.get("pids") if said is not None else None
    if not isinstance(listed, list):
        return None
    return frozenset(pid for pid in listed if isinstance(pid, int))
