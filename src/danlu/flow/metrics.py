"""metrics: a task's use of CPU, memory and GPU as one average a minute, as ModelArts gives it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean

from danlu.flow.platform import Platform
from danlu.flow.refs import ref
from danlu.model.job import JobView
from danlu.ports.engine import Sample

MINUTE_MS = 60_000


def minutes(platform: Platform, view: JobView, task: str) -> dict[str, list[float | None]]:
    """Percentages by metric name, one value a minute since the first sample; None = unknown."""
    wanted = ref(view, task)
    samples = platform.engine.stats([wanted]).get(wanted, ())
    shape = view.job.spec.shape
    readings: dict[str, Callable[[Sample], float | None]] = {
        "cpuUsage": lambda sample: _percent(sample.cpu_cores, shape.cpus),
        "memUsage": lambda sample: _percent(sample.memory_bytes, shape.memory_bytes),
        "gpuUtil": lambda sample: _percent(sample.gpu_busy, 1),
        "gpuMemUsage": lambda sample: _percent(sample.gpu_memory, 1),
    }
    return {name: _averages(samples, reading) for name, reading in readings.items()}


def _percent(value: float | None, whole: float) -> float | None:
    return None if value is None or not whole else 100 * value / whole


def _averages(
    samples: Sequence[Sample], reading: Callable[[Sample], float | None]
) -> list[float | None]:
    if not samples:
        return []
    first = samples[0].at
    buckets: list[list[float]] = [[] for _ in range((samples[-1].at - first) // MINUTE_MS + 1)]
    for sample in samples:
        value = reading(sample)
        if value is not None and sample.at >= first:
            buckets[(sample.at - first) // MINUTE_MS].append(value)
    return [round(fmean(bucket), 2) if bucket else None for bucket in buckets]
