"""loop: the thread that carries every job through its life.

It composes the verbs; they never call each other but meet in the state table. It sleeps until
something happens (a submission, a stop, an engine that saw a change) and looks by itself once a
second, because a lost wake-up must not matter.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from functools import partial

from danlu.flow.activity import Activity
from danlu.flow.board import Board
from danlu.flow.finish import finish
from danlu.flow.hang import hang
from danlu.flow.launch import launch
from danlu.flow.notebook import extend
from danlu.flow.notebook_idle import notebook_idle, outlook
from danlu.flow.notebook_life import Life
from danlu.flow.notebooks import Notebooks
from danlu.flow.notices import Notices
from danlu.flow.observe import observe
from danlu.flow.place import place
from danlu.flow.platform import Platform
from danlu.flow.retry import retry
from danlu.flow.stop import stop, want_stop
from danlu.flow.submit import submit
from danlu.flow.sweep import Sweeper, sweep_orphans
from danlu.model.attempt import HOLDING
from danlu.model.errors import PlatformError
from danlu.ports.crash import crash_point
from danlu.ports.engine import Wakes

log = logging.getLogger(__name__)

LOOK_EVERY_S = 1.0
SWEEP_EVERY_S = 5.0
CAPACITY_EVERY_S = 30.0


class Loop:
    """Runs the verbs over a board until it is closed."""

    def __init__(self, platform: Platform, board: Board) -> None:
        self._platform = platform
        self._board = board
        self._woken = threading.Event()
        self._closing = False
        self._adopting = True
        self._thread = threading.Thread(target=self._run, name="flow-loop", daemon=True)
        self._swept_at = platform.clock.monotonic()
        self._looked_at = platform.clock.monotonic()
        self.notebooks = Notebooks(platform.records)
        self.activity = Activity(platform, board, self.notebooks)
        self.notices = Notices(
            platform, board, self.notebooks, partial(outlook, platform, self.activity), extend
        )
        self.sweeper = Sweeper(platform)
        self._life = Life(platform, board, self.notebooks, submit, want_stop, self.wake)
        self.failed_turns = 0
        """Turns that ended in an unexpected error; they are logged and tried again."""

    def start(self) -> None:
        """Load what is live, tidy up what is nobody's, and begin."""
        self._board.load()
        engine: object = self._platform.engine
        if isinstance(engine, Wakes):
            engine.on_change(self.wake)
        sweep_orphans(self._platform)
        self._thread.start()
        self.activity.start()
        self.notices.start()
        self.sweeper.start()
        self.wake()

    def wake(self) -> None:
        """Something may have changed. Cheap; from any thread."""
        self._woken.set()

    def close(self) -> None:
        """Finish the turn and stop. Tasks go on: the next server adopts them."""
        self._closing = True
        self.activity.close()
        self.notices.close()
        self.sweeper.close()
        self.wake()
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    def turn(self) -> None:
        """Every verb once. Public so that tests can drive it without the thread."""
        platform, board = self._platform, self._board
        self._refresh()
        seen = observe(platform, board)
        hang(platform, board, seen)
        stop(platform, board, seen)
        finish(platform, board, seen)
        retry(platform, board)
        board.ripen(platform.clock.now(), platform.clock.monotonic())
        while platform.records.trouble() is None and place(platform, board):
            pass
        launch(platform, board)
        retry(platform, board)
        board.settle()
        crash_point("turn.after-commit")
        self._life.turn(seen)
        notebook_idle(platform, self.notebooks, self.activity)

    def _refresh(self) -> None:
        now = self._platform.clock.monotonic()
        if now - self._looked_at >= CAPACITY_EVERY_S:
            self._looked_at = now
            self._board.due = True
        if now - self._swept_at >= SWEEP_EVERY_S:
            self._swept_at = now
            self.sweeper.turn()

    def _run(self) -> None:
        # Looking at a machine for the first time may take long (a driver wakes up): no submission
        # is to wait for it.
        with suppress(PlatformError):
            self._platform.engine.capacity()
        while not self._closing:
            self._woken.wait(LOOK_EVERY_S)
            self._woken.clear()
            try:
                self.turn()
                self._say_adopted()
            except PlatformError as error:
                # The database is busy, a disk is full: what was not recorded is tried again.
                self.failed_turns += 1
                log.warning("turn put off: %s", error)
                self._recover()
            except Exception:
                self.failed_turns += 1
                log.exception("turn failed; it is tried again")
                self._recover()

    def _say_adopted(self) -> None:
        """Say once, after the first turn, how many attempts of an earlier server go on."""
        if self._adopting:
            self._adopting = False
            log.info("%d running attempts adopted", len(self._board.entries(*HOLDING)))

    def _recover(self) -> None:
        """Take the records' word for everything again, after a pause. Until that succeeds there is
        no other turn: the board is ahead of the records by what was not written.
        """
        told = False
        while not self._closing:
            self._woken.wait(LOOK_EVERY_S)
            try:
                self._board.reload()
            except Exception as error:
                if not told:
                    log.warning("records cannot be read: %s", error)
                told = True
                self._woken.clear()
            else:
                self.wake()
                return
