"""What running instances are told of their end, and what somebody in them wants of it.

Every few seconds the server goes to each instance and says when it ends and why; the instance
warns in its terminals. In the answer it says whether somebody there has asked for more time
(`danlu-extend`). So nothing in an instance needs an address or a credential of the platform's.
"""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from danlu.flow.board import Board
from danlu.flow.notebooks import Notebooks
from danlu.flow.platform import Platform
from danlu.model.errors import PlatformError
from danlu.model.event import JobEvent
from danlu.model.identity import Caller
from danlu.model.idle import Outlook
from danlu.model.notebook import Notebook, State
from danlu.model.texts import Language, text
from danlu.ports.engine import NOTICE, Endpoints

log = logging.getLogger(__name__)

EVERY_S = 5.0
ANSWER_S = 2.0
ANSWER_BYTES = 4096
LEAST_MS = 30_000
"""One that was extended so lately is not extended again: a program may ask without end."""

Said = tuple[str, ...]
"""A sentence in every language."""


class Extend(Protocol):
    """The verb that counts a notebook's lease from now on."""

    def __call__(
        self, platform: Platform, caller: Caller, before: Notebook
    ) -> tuple[Notebook, Sequence[JobEvent]]:
        """Take the step."""


def ending(outlook: Outlook, now: int, language: Language) -> str:
    """When a notebook ends, and why."""
    if outlook.ends_at is None or outlook.because is None:
        return text("lab-ends-never", language)
    because = text(f"lab-because-{outlook.because.code}", language, **outlook.because.params)
    return text("lab-ends-soon", language, left=outlook.left_min(now), because=because)


def extended(outlook: Outlook, now: int, language: Language) -> str:
    """What an extension has come to."""
    if outlook.ends_at is None:
        then = text("lab-ends-never", language)
    else:
        then = text("lab-ends", language, left=outlook.left_min(now))
    return text("lab-extended", language, then=then)


class Notices:
    """Goes to the running instances. `weigh` says what is to become of one."""

    def __init__(
        self,
        platform: Platform,
        board: Board,
        notebooks: Notebooks,
        weigh: Callable[[Notebook], Outlook],
        extend: Extend,
    ) -> None:
        self._platform = platform
        self._board = board
        self._notebooks = notebooks
        self._weigh = weigh
        self._extend = extend
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="notebook-notices", daemon=True)

    def start(self) -> None:
        """Begin to go round."""
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._closing.set()

    def go_round(self) -> None:
        """Go to each running instance once."""
        for notebook in self._notebooks.live():
            if notebook.state is State.RUNNING and self._tell(notebook):
                self._answer(notebook)

    def _tell(self, notebook: Notebook, answer: Said = ()) -> bool:
        """Say what there is to say; whether somebody has asked for more time."""
        now = self._platform.clock.now()
        outlook = self._weigh(notebook)
        warning: Said = ()
        if notebook.warned_at and outlook.ends_at is not None:
            warning = _both(lambda language: self._warning(outlook, now, language))
        said = {"warned": notebook.warned_at, "warning": warning, "answer": answer}
        return self._exchange(notebook, said).get("extend") is True

    def _warning(self, outlook: Outlook, now: int, language: Language) -> str:
        said = ending(outlook, now, language)
        return text("lab-type-extend", language, said=said) if outlook.extensible else said

    def _answer(self, notebook: Notebook) -> None:
        """Do as somebody in the instance has asked, and say what came of it."""
        now = self._platform.clock.now()
        try:
            if now - notebook.touched_at >= LEAST_MS:
                notebook = self._renewed(notebook)
        except PlatformError as problem:
            self._tell(notebook, _both(problem.message))
            return
        outlook = self._weigh(notebook)
        self._tell(notebook, _both(lambda language: extended(outlook, now, language)))

    def _renewed(self, notebook: Notebook) -> Notebook:
        records = self._platform.records
        user, workspace = records.user(notebook.user), records.workspace(notebook.workspace)
        if user is None or workspace is None:
            return notebook
        to, events = self._extend(self._platform, Caller(user, workspace), notebook)
        # Where somebody else was first, the next round sees what they made of it.
        return self._notebooks.change(notebook, to, events).result() or notebook

    def _exchange(self, notebook: Notebook, said: Mapping[str, object]) -> Mapping[str, object]:
        """Say a line, and hear one; nothing where the instance does not answer."""
        engine: object = self._platform.engine
        entry = self._board.get(notebook.job_id)
        if entry is None or not isinstance(engine, Endpoints):
            return {}
        try:
            with engine.endpoint(entry.refs[0], NOTICE) as connection:
                connection.settimeout(ANSWER_S)
                connection.sendall(json.dumps(said).encode() + b"\n")
                heard = json.loads(_line(connection))
        except (OSError, ValueError, RecursionError, PlatformError) as problem:
            log.debug("notebook %s hears nothing of its end: %s", notebook.id, problem)
            return {}
        return heard if isinstance(heard, dict) else {}

    def _run(self) -> None:
        while not self._closing.wait(EVERY_S):
            try:
                self.go_round()
            except Exception:
                log.exception("notebooks cannot be told of their end; it is tried again")


def _both(say: Callable[[Language], str]) -> Said:
    return say("en"), say("zh")


def _line(connection: socket.socket) -> bytes:
    """What comes up to the end of a line, and no more than an answer may have."""
    data = b""
    while b"\n" not in data:
        more = connection.recv(ANSWER_BYTES - len(data))
        if not more:
            break
        data += more
    return data
