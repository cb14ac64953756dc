"""The one thread that writes: everything that waits goes to disk with one commit.

A write is a function and an item for it. Neighbours with the same function are handed to it
together, so a hundred submissions are a handful of INSERTs. A group that fails because of one
of its writes is rolled back and done again one by one: only the guilty write gets the error.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from danlu.model.errors import PlatformError, Unavailable
from danlu.ports.crash import crash_point
from danlu.ports.world import Clock
from danlu.stores.sql.database import Connection, Database, blames_one
from danlu.stores.sql.room import BITS
from danlu.stores.sql.session import Session
from danlu.stores.sql.trouble import Trouble

log = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")

Apply = Callable[[Session, Sequence[Item]], Sequence[Result]]
"""Carries out writes of one kind; one result for each item, in order."""

OnFatal = Callable[[PlatformError], None]

MOST_IN_GROUP = 256
MOST_WAITING = 20_000
"""Writes that may wait; beyond that callers are told to come back."""

LINGER_S = 0.02
"""A write that nobody waits for is kept this long, to share the commit of the next one."""

CHORE_S = 300.0


@dataclass(slots=True)
class Write:
    """`future` is None where nobody waits; such a write is repeated until it is on disk.

    One that is `needed` ends or stops a job, or lets somebody look: it may use the reserve.
    """

    apply: Apply[Any, Any]
    item: Any
    future: Future[Any] | None
    needed: bool = False


class Writer:
    """Owns the writing connection. `put` may be called from any thread.

    `on_fatal` is called, on the writing thread, when the disk did not keep what was written:
    nothing may be built on these records any more, and the process has to end.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        chore: Callable[[Session, int], None],
        on_fatal: OnFatal,
    ) -> None:
        self._database = database
        self._clock = clock
        self._chore = chore
        self._on_fatal = on_fatal
        self.trouble = Trouble(database.room)
        """Why new work is refused, if it is."""
        self._chore_done = clock.monotonic()
        self._queue: queue.SimpleQueue[Write | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._failed: PlatformError | None = None
        self._owed: list[Write] = []
        self._connection: Connection | None = database.own()
        self._thread = threading.Thread(target=self._run, name="danlu-records", daemon=True)
        self._thread.start()

    def put(
        self, apply: Apply[Item, Result], item: Item, *, needed: bool = False
    ) -> Future[Result]:
        """Queue a write. The future is done when it is on disk, or holds why it is not."""
        future: Future[Result] = Future()
        self._enqueue(Write(apply, item, future, needed))
        return future

    def owe(self, apply: Apply[Item, None], item: Item) -> None:
        """Queue a write that nobody waits for. It is on disk before any write put after it."""
        self._enqueue(Write(apply, item, None))

    def close(self) -> None:
        """Write what waits, then end. What is put later raises Unavailable."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _enqueue(self, write: Write) -> None:
        with self._lock:
            if self._closed:
                raise Unavailable("records-closed")
            if self._failed is not None:
                raise copy.copy(self._failed)
            if self._queue.qsize() + len(self._owed) >= MOST_WAITING:
                raise Unavailable("busy", detail=f"{MOST_WAITING} writes are waiting")
            self._queue.put(write)

    # the writing thread

    def _run(self) -> None:
        going = True
        while going:
            group, going = self._gather()
            try:
                self._write(group)
            except Exception:
                log.exception("a group of writes ended in an error of the writer itself")
                _fail(group, Unavailable("busy", detail="the writer failed"))
        if self._connection is not None:
            self._connection.close()

    def _gather(self) -> tuple[list[Write], bool]:
        """Everything that waits, up to a bound; False when there will be no more."""
        group: list[Write] = []
        wait: float | None = None
        awaited = False
        with contextlib.suppress(queue.Empty):
            while len(group) < MOST_IN_GROUP:
                write = self._queue.get(timeout=wait)
                if write is None:
                    return group, False
                group.append(write)
                awaited = awaited or write.future is not None
                wait = 0 if awaited else LINGER_S
        return group, True

    def _write(self, group: Sequence[Write]) -> None:
        asked = [
            write
            for write in group
            if write.future is not None and write.future.set_running_or_notify_cancel()
        ]
        if self._failed is not None:
            _fail(asked, self._failed)
            return
        owed = self._owed + [write for write in group if write.future is None]
        asked, problem = self._in_trouble_or_not(owed, asked)
        if problem is None:
            self._do_chore()
            return
        if not blames_one(problem) or len(owed) + len(asked) == 1:
            self._owed = [write for write in owed if not blames_one(problem)]
            self._give_up(asked, problem)
            return
        self._one_by_one(owed, asked)

    def _in_trouble_or_not(
        self, owed: list[Write], asked: list[Write]
    ) -> tuple[list[Write], Exception | None]:
        """Write what may be written now. On a full disk that is what is needed, with the reserve
        given back bit by bit until it fits. The writes that were tried, and why they failed.
        """
        problem: Exception | None = None
        for _ in range(BITS + 1):
            full = self.trouble.full()
            if full is not None:
                _fail([write for write in asked if not write.needed], full)
                asked = [write for write in asked if write.needed]
                if not asked:
                    self._owed = owed
                    return [], None
            problem = self._attempt(owed, asked)
            if problem is None or not self.trouble.met(problem) or not self.trouble.spend():
                break
        return asked, problem

    def _one_by_one(self, owed: Sequence[Write], asked: Sequence[Write]) -> None:
        self._owed = []
        writes = [*owed, *asked]
        for index, write in enumerate(writes):
            alone = ([], [write]) if write.future is not None else ([write], [])
            problem = self._attempt(*alone)
            if problem is None:
                continue
            if not blames_one(problem):
                rest = writes[index:]
                self._owed = [one for one in rest if one.future is None]
                self._give_up([one for one in rest if one.future is not None], problem)
                return
            if write.future is None:
                log.error("a write that nobody waits for was dropped: %s", problem)
            else:
                write.future.set_exception(problem)

    def _attempt(self, owed: Sequence[Write], asked: Sequence[Write]) -> Exception | None:
        """Write all of it in one transaction and tell who waits, or say why nothing was written."""
        try:
            results = self._transact([*owed, *asked])
        except _Undone as undone:
            return undone.problem
        self._owed = []
        if results:
            self.trouble.passed()
        for write, result in zip(asked, results[len(owed) :], strict=True):
            if write.future is not None:
                write.future.set_result(result)
        return None

    def _transact(self, writes: Sequence[Write]) -> list[Any]:
        if not writes:
            return []
        for last_try in (False, True):
            committing = False
            try:
                connection = self._connected()
                self._database.begin(connection)
                session = Session(self._database, connection)
                results: list[Any] = []
                for apply, run in itertools.groupby(writes, lambda write: write.apply):
                    results.extend(apply(session, [write.item for write in run]))
                committing = True
                crash_point("records.before-commit")
                self._database.finish(connection)
                crash_point("records.after-commit")
            except Exception as error:
                problem = self._undo(error)
                # A connection that broke before the commit has left nothing behind.
                if self._connection is not None or committing or last_try:
                    raise _Undone(problem) from error
                continue
            return results
        raise AssertionError(writes)

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._database.own()
        return self._connection

    def _undo(self, error: Exception) -> Exception:
        connection = self._connection
        if connection is not None:
            self._database.undo(connection)
            if not self._database.usable(connection):
                connection.close()
                self._connection = None
        if isinstance(error, self._database.errors):
            return self._database.translate(error)
        return error

    def _give_up(self, asked: Sequence[Write], problem: Exception) -> None:
        if not self.trouble.met(problem):
            log.error("%d write(s) did not reach the disk: %s", len(asked), problem)
        if not isinstance(problem, PlatformError) or problem.key != "database-failed":
            _fail(asked, problem)
            return
        # The kernel may drop what it could not write and report success the next time.
        self._failed = problem
        _fail(asked, problem)
        self._on_fatal(problem)

    def _do_chore(self) -> None:
        if self._clock.monotonic() - self._chore_done < CHORE_S:
            return
        self._chore_done = self._clock.monotonic()

        def chore(session: Session, items: Sequence[int]) -> Sequence[None]:
            self._chore(session, items[0])
            return [None]

        try:
            self._transact([Write(chore, self._clock.now(), None)])
        except _Undone as undone:
            self._give_up((), undone.problem)


class _Undone(Exception):
    """A transaction was rolled back; `problem` is the cause in our words."""

    def __init__(self, problem: Exception) -> None:
        super().__init__(str(problem))
        self.problem = problem


def _fail(writes: Sequence[Write], problem: Exception) -> None:
    for write in writes:
        if write.future is not None and not write.future.done():
            # Each caller raises its own, or their tracebacks would grow together.
            write.future.set_exception(copy.copy(problem))
