"""place: grant waiting jobs their places. One pass of `model.queue` over the board."""

from __future__ import annotations

from danlu.flow.board import Board
from danlu.flow.platform import Platform
from danlu.model import queue
from danlu.model.attempt import Event
from danlu.model.event import JobEvent
from danlu.ports.crash import crash_point
from danlu.ports.records import Move

PASS_DEPTH = queue.BACKFILL_DEPTH + 28
"""How much of the queue one pass reads; a pass that grants anything is followed by another."""


def place(platform: Platform, board: Board) -> bool:
    """Grant what can be granted. True if a further pass may grant more."""
    if not board.due:
        return False
    board.due = False
    waiting = board.head(PASS_DEPTH)
    if not waiting:
        return False
    totals = platform.engine.capacity()
    held = [place for places in board.held().values() for place in places]
    grants = queue.grant(waiting, queue.free(totals, held))
    now = platform.clock.now()
    for granted in grants:
        entry = board.get(granted.job_id)
        if entry is None:
            continue
        nodes = ", ".join(dict.fromkeys(place.node for place in granted.places))
        board.send(
            Move(
                entry.key,
                Event.PLACE,
                now,
                events=(JobEvent(now, "job-placed", {"nodes": nodes}),),
                placement=granted.places,
            )
        )
    if grants:
        crash_point("place.granted")
    board.due = board.due or bool(grants)
    return bool(grants)
