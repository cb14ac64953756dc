"""launch: hand placed attempts to the engine, the intent on disk before the deed."""

from __future__ import annotations

import logging

from danlu.flow.board import Board, Entry
from danlu.flow.plan import plan
from danlu.flow.platform import Platform
from danlu.model.attempt import AttemptKey, Event, State
from danlu.model.errors import PlatformError
from danlu.model.event import JobEvent, Level
from danlu.model.job import Intent
from danlu.model.reason import Reason, ReasonCode
from danlu.model.resources import Gpu
from danlu.model.storage import StorageAccess, access_key_of
from danlu.ports.crash import crash_point
from danlu.ports.engine import Launch, Phase
from danlu.ports.records import Move

log = logging.getLogger(__name__)


def launch(platform: Platform, board: Board) -> bool:
    """Launch what is placed, and again what an earlier server had begun to launch."""
    now = platform.clock.now()
    for entry in board.entries(State.PLACED):
        if entry.job.intent is Intent.RUN:
            event = JobEvent(now, "job-launching", {"tasks": entry.job.spec.node_count})
            board.send(Move(entry.key, Event.LAUNCH, now, events=(event,)))
    due = [entry for entry in board.entries(State.LAUNCHING) if not entry.launched]
    if not due:
        return False
    board.settle()
    gpus = {gpu.uuid: gpu for offer in platform.engine.capacity() for gpu in offer.gpus}
    for entry in due:
        # Settling took back what the records refused: only what is still on the board is real.
        if board.get(entry.job.id) is entry and entry.attempt.state is State.LAUNCHING:
            _launch(platform, board, entry, gpus)
    return True


def _launch(platform: Platform, board: Board, entry: Entry, gpus: dict[str, Gpu]) -> None:
    places = {place.task: place for place in entry.attempt.placement}
    job = entry.job
    since = job.created_at if entry.key.number > 1 else 0
    storage = _storage(platform, entry.key)
    launches = [
        Launch(
            ref,
            places[ref.task].node,
            plan(
                platform,
                job.spec,
                ref,
                places[ref.task],
                gpus,
                resumes_from=since,
                storage=storage,
            ),
        )
        for ref in entry.refs
    ]
    entry.launched = True
    crash_point("launch.after-commit")
    try:
        platform.engine.launch(launches)
        crash_point("launch.after-spawn")
    except PlatformError as error:
        if not _nothing_there(platform, entry):
            # An earlier server may have launched it. It is asked for again in the next turn.
            entry.launched = False
            board.flag(entry, unreachable=True)
            return
        now = platform.clock.now()
        reason = Reason(ReasonCode.LAUNCH_FAILED, {"detail": str(error)})
        event = JobEvent(now, "job-failed", reason.told(), Level.ERROR)
        board.end(Move(entry.key, Event.REFUSED, now, events=(event,), reason=reason))


def _storage(platform: Platform, attempt: AttemptKey) -> StorageAccess | None:
    """How the program of an attempt reaches the storage: with a key pair of its own."""
    key = None
    if platform.obs:
        try:
            key = platform.records.access_key(access_key_of(attempt.job_id, attempt.number))
        except PlatformError:
            # The key file is not there. Many jobs need no storage, and none would run.
            log.exception("job %s runs without a key for the storage", attempt.job_id)
    if key is None:
        return None
    return StorageAccess(platform.obs, platform.region, key.access_key, key.secret.reveal())


def _nothing_there(platform: Platform, entry: Entry) -> bool:
    """Whether the engine proves that no task of the attempt exists: an engine that does not answer
    has refused nothing.
    """
    seen = platform.engine.observe(entry.refs).values()
    return all(look.phase is Phase.ABSENT and not look.unreachable for look in seen)
