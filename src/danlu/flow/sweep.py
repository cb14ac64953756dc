"""sweep: free what deleted jobs left, tasks and uploads, and end what is nobody's."""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Sequence

from danlu.flow.platform import Platform
from danlu.model.attempt import AttemptKey
from danlu.model.errors import Missing, PlatformError
from danlu.model.job import Output
from danlu.model.manifest import STAGING
from danlu.model.url import ObjectUrl
from danlu.ports.crash import crash_point
from danlu.ports.engine import Ref
from danlu.ports.objects import ObjectStore

log = logging.getLogger(__name__)

AGAIN_S = 60.0
"""After so long a store is asked again that has refused or not answered."""


class Sweeper:
    """Frees what deleted jobs left. Tasks are removed in the loop's turn; uploads on a thread of
    their own, because a store that does not answer is waited for. A job is forgotten after both,
    so whatever is cut off is done again.
    """

    def __init__(self, platform: Platform) -> None:
        self._platform = platform
        self._waiting: dict[str, float] = {}
        """Jobs whose uploads are still there, and when (monotonic) they are due. The turn adds to
        it, the thread takes away."""
        self._due = threading.Event()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="sweeper", daemon=True)

    def start(self) -> None:
        """Begin to remove uploads."""
        self._thread.start()

    def close(self) -> None:
        """Stop; a store that does not answer is not waited for."""
        self._closing = True
        self._due.set()

    def turn(self) -> None:
        """Remove the tasks of deleted jobs, and have their uploads removed."""
        records, freed = self._platform.records, set()
        for job_id, attempt, token, tasks in records.swept():
            if job_id not in self._waiting:
                for task in range(tasks):
                    self._platform.engine.remove(Ref(job_id, attempt, task, token))
                freed.add(job_id)
        storing = {job_id for job_id in freed if _stored(records.swept_outputs(job_id))}
        self._forget(freed - storing)
        if storing:
            self._waiting.update(dict.fromkeys(storing, self._platform.clock.monotonic()))
            self._due.set()

    def clear(self) -> None:
        """Remove the uploads that are due. Waits for the store."""
        platform = self._platform
        for job_id, due in list(self._waiting.items()):
            now = platform.clock.monotonic()
            if due > now or self._closing:
                continue
            try:
                clear(platform.objects, job_id, platform.records.swept_outputs(job_id))
                self._forget({job_id})
            except PlatformError as error:
                log.warning("uploads of the deleted job %s are still there: %s", job_id, error)
                self._waiting[job_id] = platform.clock.monotonic() + AGAIN_S
            else:
                del self._waiting[job_id]

    def _forget(self, jobs: Collection[str]) -> None:
        if jobs:
            crash_point("sweep.before-forget")
        for forgotten in [self._platform.records.forget(job_id) for job_id in jobs]:
            forgotten.result()

    def _run(self) -> None:
        while not self._closing:
            self._due.wait(AGAIN_S if self._waiting else None)
            self._due.clear()
            try:
                self.clear()
            except Exception:
                log.exception("uploads of deleted jobs could not be removed; it is tried again")


def clear(objects: ObjectStore, job_id: str, outputs: Sequence[Output]) -> None:
    """Remove what uploads of a job left that never were delivered: their machine was lost."""
    for url in _stored(outputs):
        place = url.child(f"{STAGING}{job_id}-")
        try:
            dead = [info.key for info in objects.walk(place.bucket, place.key)]
            if dead:
                objects.delete(place.bucket, dead)
        except Missing:
            continue  # with their bucket


def _stored(outputs: Sequence[Output]) -> list[ObjectUrl]:
    """Where outputs go that are objects. Of the machine's directories only the next writer may
    remove files.
    """
    return [output.url for output in outputs if isinstance(output.url, ObjectUrl)]


def sweep_orphans(platform: Platform) -> None:
    """End and remove tasks that no record names: their job was lost with a database."""
    for ref in platform.engine.known():
        if not platform.records.knows(AttemptKey(ref.job_id, ref.attempt, ref.token)):
            log.warning("task %s is on the engine but on no record; it is removed", ref.name)
            platform.engine.remove(ref)
