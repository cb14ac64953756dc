"""explain: why a job waits, and what one would run before it is submitted."""

from __future__ import annotations

from dataclasses import dataclass

from danlu.flow.board import Board
from danlu.flow.plan import plan
from danlu.flow.platform import Platform
from danlu.model import queue
from danlu.model.job import JobSpec
from danlu.model.script import Layout, World, world
from danlu.ports.engine import Previews, Ref


@dataclass(frozen=True, slots=True)
class Preview:
    """What a dry run shows of each task: what would be started, and where it would find things."""

    layout: Layout
    worlds: tuple[World, ...]


def why(platform: Platform, board: Board, job_id: str) -> queue.Why | None:
    """Why a job waits, or None if it does not."""
    found = queue.why(job_id, board.queue(), platform.engine.capacity(), board.held())
    trouble = platform.records.trouble() if found is not None else None
    if found is None or trouble is None:
        return found
    key = "waiting-disk" if trouble.http == 507 else "waiting-read-only"
    return queue.Why(key, found.position, {"path": str(trouble.params.get("path", ""))})


def preview(platform: Platform, spec: JobSpec) -> Preview | None:
    """What a checked job would run; None where the engine cannot say beforehand."""
    engine: object = platform.engine
    if not isinstance(engine, Previews):
        return None
    capacity = platform.engine.capacity()
    gpus = {gpu.uuid: gpu for offer in capacity for gpu in offer.gpus}
    waiting = queue.Waiting("dry-run", spec.priority, 0, 0, spec.shape, spec.node_count)
    places = queue.fit(waiting, capacity) or ()
    worlds: list[World] = []
    layout: Layout | None = None
    for place in places:
        ref = Ref("00000000-0000-4000-8000-000000000000", 1, place.task, "0" * 32)
        task = plan(platform, spec, ref, place, gpus)
        layout = engine.layout(ref, task)
        worlds.append(world(task, layout))
    return None if layout is None else Preview(layout, tuple(worlds))
