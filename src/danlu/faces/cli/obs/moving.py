"""Many transfers at once, in a bounded number of threads, and what is told of them meanwhile."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable

from danlu.faces.cli import view
from danlu.faces.cli.failure import Failure
from danlu.faces.cli.http import HttpError
from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import printable

TICK_S = 0.1
WOULD = {
    "obs-copying": "obs-would-copy",
    "obs-moving": "obs-would-move",
    "obs-syncing": "obs-would-copy",
}
ENDED = {"obs-copying": "obs-copied", "obs-moving": "obs-moved", "obs-syncing": "obs-copied"}
"""What a verb says at its end."""
MOST_TOLD = 10
"""Failures that are told one by one; all are counted."""

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import TypeVar

    T = TypeVar("T")


class Tally:
    """What has been done. Threads add to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.files = 0
        self.done_bytes = 0
        self.moved_bytes = 0
        self.failed = 0
        self.skipped = 0
        self.removed = 0
        self.unchanged = 0
        self.found_files = 0
        self.found_bytes = 0
        self.found_all = False

    def found(self, size: int) -> None:
        """One more file that is to be moved."""
        with self._lock:
            self.found_files += 1
            self.found_bytes += size

    def moved(self, count: int) -> None:
        """So many bytes have moved; a negative count takes back what has to be moved again."""
        with self._lock:
            self.moved_bytes += count

    def fail(self) -> int:
        """One more that could not be moved; how many there are."""
        with self._lock:
            self.failed += 1
            return self.failed

    def file(self, size: int) -> None:
        """One file is where it should be."""
        with self._lock:
            self.files += 1
            self.done_bytes += size


class Moving:
    """The transfers of one command; with `dry` nothing moves, and that is what it says."""

    def __init__(self, session: Session, verb: str, threads: int, *, dry: bool = False) -> None:
        self.tally = Tally()
        self._dry = dry
        self._session = session
        self._verb = verb
        self._threads = threads
        self._began = time.monotonic()
        self._shown = 0.0
        self._stop = threading.Event()
        self._fault: Exception | None = None

    def each(self, items: Iterable[T], work: Callable[[T], None], name: Callable[[T], str]) -> None:
        """Do `work` on every item. What fails is told of and counted; the rest goes on."""
        waiting: queue.Queue[T | None] = queue.Queue(4 * self._threads)
        threads: list[threading.Thread] = []

        def run() -> None:
            while (item := waiting.get()) is not None:
                if not self._stop.is_set():
                    self._one(item, work, name)

        try:
            for item in items:
                if self._stop.is_set():
                    break
                self._put(waiting, item)
                self.show()
                if len(threads) < self._threads and waiting.qsize():
                    threads.append(threading.Thread(target=run, name="move", daemon=True))
                    threads[-1].start()
            self.tally.found_all = True
            for _ in threads:
                self._put(waiting, None)
            for thread in threads:
                while thread.is_alive():
                    thread.join(TICK_S)
                    self.show()
        except BaseException:
            self._stop.set()
            raise
        finally:
            self._session.terminal.wipe()
        if self._fault is not None:
            raise self._fault

    def _one(self, item: T, work: Callable[[T], None], name: Callable[[T], str]) -> None:
        try:
            work(item)
        except (Failure, HttpError, OSError) as error:
            self._failed(name(item), error)
        except Exception as fault:
            # Ours. No thread may end as if all were well.
            self._fault = fault
            self._stop.set()

    def _put(self, waiting: queue.Queue[T | None], item: T | None) -> None:
        while True:
            try:
                waiting.put(item, timeout=TICK_S)
            except queue.Full:
                self.show()
            else:
                return

    def _failed(self, name: str, error: Exception) -> None:
        said = error.message(self._session.language) if isinstance(error, Failure) else str(error)
        self.fail(name, said)

    def fail(self, name: str, detail: str) -> None:
        """Something was not done."""
        if self.tally.fail() <= MOST_TOLD:
            self._session.say("obs-failed", name=name, detail=detail)

    def skip(self, name: str, key: str) -> None:
        """Something that cannot be moved: why, as the key of a text."""
        self.tally.skipped += 1
        if self.tally.skipped <= MOST_TOLD:
            self._session.say(key, name=name)

    def show(self) -> None:
        """What is going on, in the line that replaces itself."""
        now = time.monotonic()
        if now - self._shown < TICK_S or self._session.quiet or not self._session.terminal.err_tty:
            return
        self._shown = now
        tally = self.tally
        more = "" if tally.found_all else "+"
        rate = view.size(int(tally.moved_bytes / max(0.1, now - self._began)))
        line = self._session.text(
            "obs-progress",
            verb=self._session.text(self._verb),
            files=f"{tally.files:,}/{tally.found_files:,}{more}",
            size=f"{view.size(max(tally.moved_bytes, 0))}/{view.size(tally.found_bytes)}{more}",
            rate=rate,
        )
        self._session.terminal.status(printable(line))

    def end(self) -> int:
        """Say what was done; the exit status."""
        tally, took_s = self.tally, time.monotonic() - self._began
        if self._session.json:
            self._session.put_json(
                {
                    "files": tally.files,
                    "bytes": tally.done_bytes,
                    "unchanged": tally.unchanged,
                    "removed": tally.removed,
                    "skipped": tally.skipped,
                    "failed": tally.failed,
                    "took_s": round(took_s, 3),
                }
            )
        else:
            self._session.say(
                (WOULD if self._dry else ENDED)[self._verb],
                files=f"{tally.files:,}",
                size=view.size(tally.done_bytes),
                took=view.seconds(took_s),
            )
            for key, count in (
                ("obs-unchanged", tally.unchanged),
                ("obs-would-be-removed" if self._dry else "obs-removed", tally.removed),
                ("obs-left-out", tally.skipped),
                ("obs-not-done", tally.failed),
            ):
                if count:
                    self._session.say(key, count=f"{count:,}")
        return 1 if tally.failed or tally.skipped else 0
