"""explain: why a job waits, and what one would run before it is submitted."""

from __future__ import annotations

from dataclasses import dataclass

from danlu.flow.board import Board, Entry
from danlu.flow.plan import plan
from danlu.flow.platform import Platform
from danlu.model import queue
from danlu.model.job import JobSpec
from danlu.model.script import Layout, World, world
from danlu.model.storage import StorageAccess
from danlu.ports.engine import Previews, Ref


@dataclass(frozen=True, slots=True)
class Preview:
    """What a dry run shows of each task: what would be started, and where it would find things."""

    layout: Layout
    worlds: tuple[World, ...]


def why(platform: Platform, board: Board, job_id: str) -> queue.Why | None:
    """Why a job waits, or None if it does not."""
    # Before the queue is looked at: a job that is placed in between waits no more, least of all for
    # itself.
    held = board.held()
    line = board.line(job_id)
    if line is None:
        return None
    found = queue.why(line, platform.engine.capacity(), held)
    trouble = platform.records.trouble()
    if trouble is not None:
        key = "waiting-disk" if trouble.http == 507 else "waiting-read-only"
        return queue.Why(key, found.position, {"path": str(trouble.params.get("path", ""))})
    entry = board.get(job_id)
    if entry is None or not board.rests(job_id):
        return found
    return queue.Why("waiting-retry", found.position, _rest(platform, entry))


def _rest(platform: Platform, entry: Entry) -> dict[str, str | int]:
    """Which attempt waits how long yet, and how the one before it ended."""
    attempt = entry.attempt
    number = attempt.key.number
    left_s = max(0, (attempt.due_at or 0) - platform.clock.now()) / 1000
    before = platform.attempt(entry.view, number - 1)
    reason = before.attempt.reason if before is not None else None
    told = reason.told() if reason is not None else {}
    return {**told, "attempt": number, "delay_s": f"{left_s:.0f}"}


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
    # The key pair is made when an attempt begins, and nobody but its program sees it.
    storage = StorageAccess(platform.obs, platform.region, "…", "…") if platform.obs else None
    layout: Layout | None = None
    for place in places:
        ref = Ref("00000000-0000-4000-8000-000000000000", 1, place.task, "0" * 32)
        task = plan(platform, spec, ref, place, gpus, storage=storage)
        layout = engine.layout(ref, task)
        worlds.append(world(task, layout))
    return None if layout is None else Preview(layout, tuple(worlds))
