"""One task as the server sees it: what its directory says, and whether its agent is well."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from danlu.engines.process import ending, listening, reading
from danlu.engines.process.reading import Lines
from danlu.model.codec import from_json
from danlu.model.installed import Installed
from danlu.model.reason import ReasonCode
from danlu.node import identity
from danlu.node.directory import (
    TaskDirectory,
    now_ms,
    open_plain,
    publish_json,
    read_json,
)
from danlu.node.log_files import LogFiles
from danlu.ports import task_directory as files
from danlu.ports.crash import crash_point
from danlu.ports.engine import Exit, LogChunk, Mark, Note, Phase, Ref, Sample, Seen
from danlu.ports.task_directory import ProcessIdentity

ABSENT = Seen(Phase.ABSENT)
UNKNOWN = Seen(Phase.LAUNCHING, unreachable=True)
HANDOVER_S = 5.0
"""A directory without an agent may be one that another server has just handed over."""
INSTALLED_BYTES = 16 << 20
TIDYING_S = 2.0
WELL_S = 300.0
"""An agent that lived this long did not die of what it found in the directory."""
REVIVE_AFTER_S = (0.0, 1.0, 2.0, 4.0, 8.0)
"""The waits between agents that are started because the one before has died. Then it is said
that this task cannot be finished."""


@dataclass(frozen=True, slots=True)
class Ends:
    """How to tell whether something of a task lives, agent and shim not counted, and how to end all
    of it (False if something is still there after a while).
    """

    left: Callable[[Path], bool] = ending.left
    end: Callable[[Path], bool] = ending.end


class Task:
    """A task directory that exists. `begin` starts an agent in it, `ends` ends what lives of it."""

    def __init__(
        self,
        ref: Ref,
        path: Path,
        port: int,
        begin: Callable[[Path], ProcessIdentity],
        ends: Ends = Ends(),
    ) -> None:
        self.ref = ref
        self.path = path
        self._directory = str(path)
        self.port = port
        """The gang's rendezvous port."""
        self.handed_over = False
        """Whether this server has started an agent here, which may not have said so yet."""
        self._begin = begin
        self._ends = ends
        self._notes: Lines[Note] = Lines(path / files.NOTES, reading.note, reading.MOST_NOTES)
        self._samples: Lines[Sample] = Lines(
            path / files.SAMPLES, reading.sample, reading.MOST_SAMPLES
        )
        self._log = LogFiles(self._directory)
        self._agent: ProcessIdentity | None = None
        self._started_at: int | None = None
        self._exit: Exit | None = None
        self._final: Seen | None = None
        self._begun = False
        self._revivals = 0
        self._next_revival = 0.0

    def agent(self) -> ProcessIdentity | None:
        """The agent in charge, or None if there is none alive."""
        if identity.alive(self._agent):
            return self._agent
        data = read_json(self._file(files.AGENT)) or {}
        self._agent = reading.identity_of(data.get("agent"))
        return self._agent if identity.alive(self._agent) else None

    def _file(self, name: str) -> str:
        # Paths as text: this is asked for every task in every turn.
        return f"{self._directory}/{name}"

    def installed(self) -> Installed | None:
        """What the task has changed of its environment; None where that is not known."""
        from danlu.node import installed  # rarely wanted, and it brings the images with it

        found = installed.look(self._file(files.WORK))
        if found is None:
            data = read_json(self._file(files.INSTALLED), INSTALLED_BYTES)
            with suppress(TypeError, KeyError, ValueError, AttributeError):
                found = None if data is None else from_json(Installed, data)
        return found

    def begin(self) -> None:
        """Start an agent, whatever there is: the directory says what it has to do."""
        self._agent = self._begin(self.path)
        self.handed_over = True

    def signal_agent(self) -> None:
        """Make the agent look at its orders; if there is none alive, start one that does."""
        agent = self.agent()
        if agent is None or not identity.send(agent, signal.SIGTERM):
            self.begin()

    def fence(self) -> bool:
        """Make sure that no agent will ever begin here, if none has; False if one may have. The
        directory is to be moved away then, which tells an agent that comes too late.
        """
        with suppress(OSError):
            if time.time() - (self.path / files.PLAN).stat().st_mtime < HANDOVER_S:
                return False
        directory = TaskDirectory(str(self.path))
        locks = [directory.take(name) for name in (files.WATCH, files.LOCK)]
        free = None not in locks and not self.begun
        if free:
            directory.publish(files.DONE, {"token": self.ref.token})
        for lock in locks:
            if lock is not None:
                os.close(lock)
        return free

    def close_off(self, by: int) -> bool:
        """Fence the task for the attempt `by`: nothing of it lives, and nothing begins here any
        more. False if something of it cannot be ended.
        """
        marked = (self.path / files.FENCED).exists() or self._mark_patiently(by)
        # Free locks say that its agent and shim are gone, not that what they watched is.
        return marked and (not self._ends.left(self.path) or self._ends.end(self.path))

    def _mark_patiently(self, by: int) -> bool:
        # What is stored already only has its work to remove, which takes no time to speak of.
        until = time.monotonic() + (TIDYING_S if (self.path / files.DONE).exists() else 0)
        while not self._mark(by):
            if time.monotonic() >= until:
                return self._ends.end(self.path) and self._mark(by)
            time.sleep(0.01)
        return True

    def _mark(self, by: int) -> bool:
        """Write down that it is fenced, if nobody holds a lock; whoever takes one later looks."""
        directory = TaskDirectory(str(self.path))
        locks = [directory.take(name) for name in (files.WATCH, files.LOCK)]
        try:
            if None in locks:
                return False
            crash_point("fence.before-mark")
            publish_json(self.path, files.FENCED, {"by": by})
            crash_point("fence.after-mark")
        finally:
            for lock in locks:
                if lock is not None:
                    os.close(lock)
        return True

    def seen(self) -> Seen:
        """What can be seen of the task now. Starts another agent if the one before has died."""
        if self._final is not None:
            return self._final
        done = read_json(self._file(files.DONE))
        self._read_exit()
        if self._started_at is None:
            task = read_json(self._file(files.TASK)) or {}
            at = task.get("started_at")
            self._started_at = at if isinstance(at, int) else None
        if done is not None:
            self._final = self._done(done)
            return self._final
        if self._may_revive() and not (self.path / files.DONE).exists():
            fenced = os.path.lexists(self._file(files.FENCED))
            self._final = self._fenced() if fenced else self._revive()
            if self._final is not None:
                return self._final
        return Seen(
            self._phase(),
            self._shown_start(),
            self._exit,
            notes=self._notes.read(),
            hung_at=self._hung_at() if self._exit is None else None,
            ready=self._exit is None and listening.ready(self._directory),
        )

    def last_seen(self) -> Seen:
        """What was seen before, for a moment in which nothing can be."""
        return Seen(self._phase(), self._shown_start(), self._exit, unreachable=True)

    def logs(self, since: int, limit: int) -> LogChunk:
        """Bytes of the log from an absolute offset."""
        self._read_exit()  # before the log: what is in it once the exit is known is all of it
        chunk = self._log.read(since, limit)
        return replace(chunk, ended=chunk.ended and self._exit is not None)

    def mark(self, line: int, offset: int) -> Mark:
        """The last place in the log known to lie before line `line`, not behind `offset`."""
        return self._log.mark(line, offset)

    def samples(self) -> tuple[Sample, ...]:
        """Every sample so far."""
        return self._samples.read()

    @property
    def ended(self) -> bool:
        """Whether the program is known to have ended."""
        self._read_exit()
        return self._exit is not None

    @property
    def begun(self) -> bool:
        """Whether an agent has ever been in charge."""
        self._begun = self._begun or (self.path / files.AGENT).exists()
        return self._begun

    def _hung_at(self) -> int | None:
        if not os.path.lexists(self._file(files.HUNG)):
            return None
        since = (read_json(self._file(files.HUNG)) or {}).get("since")
        return since if isinstance(since, int) and 0 <= since < 1 << 53 else None

    def _read_exit(self) -> None:
        if self._exit is None:
            data = read_json(self._file(files.EXIT))
            self._exit = reading.exit_of(data) if data is not None else None
            if self._exit is None and os.path.lexists(self._file(files.FENCED)):
                self._exit = _lost()

    def _phase(self) -> Phase:
        if self._exit is not None:
            return Phase.COLLECTING
        return Phase.LAUNCHING if self._started_at is None else Phase.RUNNING

    def _shown_start(self) -> int | None:
        """A program that could not be executed has not started, though it has a process."""
        booted = self._exit is None or self._exit.problem is not ReasonCode.BOOT_FAILED
        return self._started_at if booted else None

    def _done(self, data: dict[str, object]) -> Seen:
        return Seen(
            Phase.DONE,
            self._shown_start(),
            self._exit or _lost(),
            reading.problem_of(data),
            reading.detail_of(data),
            self._notes.read(),
        )

    def _fenced(self) -> Seen:
        """What is said of a task that had to make way for the next attempt."""
        shown = self._shown_start()
        return Seen(Phase.DONE, shown, self._exit or _lost(), notes=self._notes.read())

    def _may_revive(self) -> bool:
        return (self.handed_over or self.begun) and self.agent() is None

    def _revive(self) -> Seen | None:
        """Start another agent if it is time; what to say if that has been tried in vain."""
        now = time.monotonic()
        if now < self._next_revival:
            return None
        if now - self._next_revival > WELL_S:
            self._revivals = 0
        if self._revivals >= len(REVIVE_AFTER_S) and self._nobody_lives():
            return self._given_up()
        wait_s = REVIVE_AFTER_S[min(self._revivals, len(REVIVE_AFTER_S) - 1)]
        self._revivals += 1
        self._next_revival = now + wait_s
        self.begin()
        return None

    def _nobody_lives(self) -> bool:
        lock = TaskDirectory(str(self.path)).take(files.LOCK)
        if lock is not None:
            os.close(lock)
        return lock is not None

    def _given_up(self) -> Seen:
        said = ""
        with suppress(OSError):
            errors = open_plain(self.path / files.AGENT_ERRORS)
            size = os.fstat(errors).st_size
            said = os.pread(errors, 2000, max(0, size - 2000)).decode("utf-8", "replace")
            os.close(errors)
        last = next((line for line in reversed(said.splitlines()) if line.strip()), "")
        self._exit = self._exit or _lost()
        detail = {"detail": f"agents end at once ({last})", "path": str(self.path / files.WORK)}
        return Seen(
            Phase.DONE,
            self._shown_start(),
            self._exit,
            ReasonCode.OUTPUT_FAILED,
            detail,
            self._notes.read(),
        )


def _lost() -> Exit:
    return Exit(now_ms(), 137, "SIGKILL", problem=ReasonCode.AGENT_LOST)
