"""logs: the bytes that a task wrote, by absolute offset."""

from __future__ import annotations

from collections.abc import Iterator

from danlu.flow.platform import Platform
from danlu.flow.refs import ref
from danlu.model.attempt import FINAL, State
from danlu.model.job import JobView
from danlu.model.texts import Language
from danlu.ports.engine import LogChunk, Mark, Marks

PIECE = 256 << 10
UNSTARTED = (State.QUEUED, State.PLACED)


def read(
    platform: Platform, view: JobView, task: str, since: int, limit: int = 1 << 20
) -> LogChunk:
    """At most `limit` bytes of a task's log from offset `since`.

    A job that has not started has no log yet: nothing, and not ended. `ended` is only said when
    no further byte can come.
    """
    wanted = ref(view, task)
    if view.attempt.state in UNSTARTED:
        return LogChunk(since, b"", ended=False)
    chunk = platform.engine.logs(wanted, since, limit)
    if chunk.ended and not chunk.data and view.attempt.state not in FINAL:
        return LogChunk(since, b"", ended=view.attempt.state is State.COLLECTING)
    return chunk


def pieces(
    platform: Platform, view: JobView, task: str, language: Language, since: int, until: int
) -> Iterator[bytes]:
    """What a log holds from an offset up to another, in pieces. In place of what was dropped
    stands one line that says so.
    """
    unended = False
    while since < until:
        chunk = read(platform, view, task, since, min(PIECE, until - since))
        if not chunk.data:
            return
        if chunk.dropped is not None:
            yield b"\n" * unended + chunk.dropped.line(language)
        yield chunk.data
        unended = not chunk.data.endswith(b"\n")
        since = chunk.next


def known(platform: Platform, view: JobView, task: str, line: int, offset: int) -> Mark:
    """The last place that the engine knows to lie before a line begins, not behind an offset."""
    engine = platform.engine
    if view.attempt.state in UNSTARTED or not isinstance(engine, Marks):
        return Mark(0, 0)
    return engine.mark(ref(view, task), line, offset)
