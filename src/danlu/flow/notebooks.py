"""The notebooks that something is to be done about: an index over the records, as the board is.

Every change goes to the records under the version that it was made to. Whoever comes second is
told, and looks again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from danlu.flow.platform import Platform
from danlu.model.event import JobEvent
from danlu.model.hang import Hang
from danlu.model.job import Access, EngineChoice, Input, JobSpec, Kind, Volume
from danlu.model.notebook import HOME, Notebook, NotebookSpec
from danlu.model.resources import Shape
from danlu.ports.records import NotebookChange, Records

Result = TypeVar("Result")

PROGRAM = 'exec "$MA_SCRIPT_INTERPRETER" -m danlu_notebook'
GRACE_S = 20
LOG_BYTES = 64 << 20


class Notebooks:
    """The live ones. Thread-safe."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._lock = threading.Lock()
        self._live: tuple[Notebook, ...] | None = None
        self._listeners: list[Callable[[str], None]] = []

    def live(self) -> tuple[Notebook, ...]:
        """Every notebook that something is to be done about, as it is on record."""
        with self._lock:
            if self._live is None:
                self._live = tuple(self._records.live_notebooks())
            return self._live

    def listen(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with a notebook's id, from any thread, after it changed on disk."""
        self._listeners.append(listener)

    def add(self, notebook: Notebook, events: Sequence[JobEvent]) -> Future[bool]:
        """Record a new one; False where its name is taken."""
        return self._watched(self._records.add_notebook(notebook, events), notebook.id)

    def change(
        self, before: Notebook, to: Notebook, events: Sequence[JobEvent] = ()
    ) -> Future[Notebook | None]:
        """Record a change; None where the notebook is no longer as it was."""
        change = NotebookChange(before, to, events)
        return self._watched(self._records.change_notebook(change), before.id)

    def _watched(self, future: Future[Result], notebook_id: str) -> Future[Result]:
        def written(_done: Future[Result]) -> None:
            with self._lock:
                self._live = None
            for listener in self._listeners:
                listener(notebook_id)

        future.add_done_callback(written)
        return future


def job_spec(platform: Platform, spec: NotebookSpec, notebook_id: str) -> JobSpec:
    """The job that one start of a notebook is."""
    return JobSpec(
        name=spec.name,
        flavor=spec.flavor,
        shape=Shape(0, 0),
        description=spec.description,
        engine=engine(platform, spec.image),
        command=PROGRAM,
        inputs=tuple(
            Input(f"data_{index}", one.url, Access.ENV, one.path)
            for index, one in enumerate(spec.data)
        ),
        environments=spec.environments,
        grace_s=GRACE_S,
        log_limit_bytes=LOG_BYTES,
        # Nobody at work is no hang.
        hang=Hang(after_s=0),
        kind=Kind.NOTEBOOK,
        volumes=(Volume(notebook_id, HOME),),
    )


def engine(platform: Platform, image: str) -> EngineChoice:
    """An image by whatever names it where tasks run."""
    if platform.engine.powers.images:
        return EngineChoice(image_url=image)
    return EngineChoice(engine_id=image)
