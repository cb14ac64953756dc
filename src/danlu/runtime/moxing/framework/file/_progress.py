"""How far a copy is, in a few lines of the log."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable

from moxing.framework.file._place import Where
from moxing.framework.file._words import size, tell

COUNT_AFTER_S = 5.0
FIRST_AFTER_S = 10.0
EVERY_S = 30.0
"""Of a copy that takes hours, each line waits a tenth of the time so far as well."""


class Progress:
    """Counts what was copied; speaks up now and then, and at the end. `sizes` gives the size of
    every file; it is asked while the copy goes on, and only of one that takes a while.
    """

    def __init__(
        self,
        source: Where,
        target: Where,
        sizes: Callable[[], Iterable[int]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._names = {"source": source, "target": target}
        self._whole: tuple[int, int] | None = None
        self._over = threading.Event()
        self._lock = threading.Lock()
        self.files = 0
        self._size = 0
        self._began = self._clock()
        self._next = self._began + FIRST_AFTER_S
        threading.Thread(
            target=self._count, args=(sizes,), name="moxing-count", daemon=True
        ).start()

    def add(self, count: int) -> None:
        """So many bytes more."""
        with self._lock:
            self._size += count
            now = self._clock()
            if now < self._next:
                return
            self._next = now + max(EVERY_S, (now - self._began) / 10)
            self._say(now - self._began)

    def file(self) -> None:
        """One file more."""
        with self._lock:
            self.files += 1

    def _say(self, took_s: float) -> None:
        speed = self._size / max(took_s, 0.001)
        told = {
            **self._names,
            "files": self.files,
            "size": size(self._size),
            "seconds": round(took_s),
            "speed": size(speed),
        }
        if self._whole is None:
            tell("copying", **told)
            return
        files, size_all = self._whole
        left = max(0, size_all - self._size) / max(speed, 1)
        told.update(files_all=files, size_all=size(size_all), left=round(left))
        tell("copying-of", **told)

    def _count(self, sizes: Callable[[], Iterable[int]]) -> None:
        if self._over.wait(COUNT_AFTER_S):
            return
        files = size_all = 0
        with contextlib.suppress(OSError):  # the copy itself meets it, and says it
            for one in sizes():
                if self._over.is_set():
                    return
                files += 1
                size_all += one
            self._whole = files, size_all

    def over(self) -> None:
        """The copy has ended, well or not."""
        self._over.set()

    def end(self) -> None:
        """All is copied."""
        took_s = self._clock() - self._began
        tell(
            "copied",
            **self._names,
            files=self.files,
            size=size(self._size),
            seconds=f"{took_s:.1f}",
        )
