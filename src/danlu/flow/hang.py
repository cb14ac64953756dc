"""hang: end attempts of which a task hangs, where their job wants that.

Whether another attempt follows is the retry policy's business.
"""

from __future__ import annotations

from collections.abc import Mapping

from danlu.flow.board import Board, Entry
from danlu.flow.platform import Platform
from danlu.model.attempt import State
from danlu.model.hang import HangAction
from danlu.model.reason import Reason, ReasonCode
from danlu.ports.engine import TASK_HANGS, Ref, Seen


def hang(platform: Platform, board: Board, seen: Mapping[Ref, Seen]) -> None:
    """Begin to stop what hangs. Notifying is the node agent's part."""
    for entry in board.entries(State.RUNNING):
        if entry.job.spec.hang.action is HangAction.NOTIFY:
            continue
        for ref in entry.refs:
            look = seen.get(ref)
            if look is not None and look.hung_at is not None and not look.unreachable:
                _end(platform, board, entry, ref, look)
                break


def _end(platform: Platform, board: Board, entry: Entry, ref: Ref, look: Seen) -> None:
    said = [dict(note.params) for note in look.notes if note.key == TASK_HANGS]
    params = {"task": f"worker-{ref.task}", **(said[-1] if said else {})}
    board.stop(entry, Reason(ReasonCode.HUNG, params), platform.clock.now())
