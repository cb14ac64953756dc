"""Shows a task's log as it grows, over restarts of the server, to its very end."""

from __future__ import annotations

import time

from danlu.faces.cli import view
from danlu.faces.cli.client import Client
from danlu.faces.cli.failure import RETRY, Failure
from danlu.faces.cli.http import HttpError, Response
from danlu.faces.cli.session import Session
from danlu.faces.cli.sinks import Gap
from danlu.faces.cli.waiting import PATIENCE_S, POLL_S, persistently

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from collections.abc import Callable
    from typing import Any

    from danlu.faces.cli.sinks import Sink

FIRST_PAUSE_S = 0.05
QUIET_S = 0.4
"""Nothing is said of a wait that is shorter."""
BYTES = {"Accept": "application/octet-stream"}
LOOK_S = 2.0
"""How often a waiting job is looked at again."""


def gap_of(offset: int, size: int, response: Response) -> Gap:
    """What a log's limit dropped in front of an answer."""
    found = [response.headers.get(f"x-log-{name}") for name in ("dropped-lines", "line")]
    lines, line = (None if number is None else int(number) for number in found)
    return Gap(offset, size, lines, line)


def begin(sink: Sink, offset: int, response: Response) -> int:
    """Where an answer that was asked for from `offset` begins; a gap is told to the sink."""
    begins = int(response.headers.get("x-log-offset", str(offset)))
    if begins > offset:
        sink.skip(gap_of(begins, begins - offset, response))
        return begins
    return offset


class Watch:
    """One task's log from `offset` on, which is always the absolute number of bytes shown."""

    def __init__(
        self,
        session: Session,
        job: Any,
        task: str,
        sink: Sink,
        offset: int = 0,
        again: Callable[[], Sink] | None = None,
    ) -> None:
        self.session = session
        self.job = job
        self.task = task
        self.sink = sink
        self.offset = offset
        self._again = again
        """Makes the sink of a further attempt; None = the log of one attempt is wanted."""
        self._attempt = job["attempt"]
        self._path = ("jobs", job["id"], "tasks", task, "log")
        self._client: Client = session.client().twin()
        self._looked_at = 0.0
        self._said = ""
        self._away_since: float | None = None

    def follow(self) -> None:
        """Hand every byte to the sink, until the task has ended and is drained; and so for every
        further attempt.
        """
        self._follow_attempt()
        while self._again is not None and self._next_attempt():
            self.sink = self._again()
            self._follow_attempt()

    def _follow_attempt(self) -> None:
        pause = FIRST_PAUSE_S
        while True:
            before = self.offset
            try:
                self._pump(self._open())
                if self._complete():
                    break
            except (HttpError, Failure) as error:
                self._lost(error)
            pause = FIRST_PAUSE_S if self.offset > before else min(2.0, pause * 2)
            time.sleep(pause)
        self.sink.end()

    def _open(self) -> Response:
        query = {"offset": self.offset, "follow": 1, "gaps": "stop", **self._of_attempt()}
        response = self._client.send("GET", self._path, query, headers=BYTES)
        self.offset = begin(self.sink, self.offset, response)
        response.patience(None)
        if self._away_since is not None:
            self.session.say("server-back")
            self._away_since = None
        return response

    def _pump(self, response: Response) -> None:
        while True:
            if not response.readable(QUIET_S):
                self._idle()
                continue
            data = response.chunk()
            if not data:
                return
            self.session.terminal.wipe()
            self.sink.write(data)
            self.offset += len(data)

    def _complete(self) -> bool:
        """Whether the stream ended because the log did: a server that stops ends it as well."""
        self.job = self.session.get("jobs", self.job["id"], query={"wait": "final", "timeout_s": 1})
        latest = self.job["attempt"] == self._attempt
        alone = latest and self.job["node_count"] == 1 and self.job["exit"] is not None
        if alone and self.job.get("log_bytes") == self.offset:
            return True
        query = {"offset": self.offset, "limit": 1, **self._of_attempt()}
        response = self._client.send("GET", self._path, query, headers=BYTES)
        ended = response.headers.get("x-log-ended") == "true"
        return ended and not response.read()

    def _of_attempt(self) -> dict[str, int]:
        # An older server knows neither attempts nor the query.
        return {"attempt": self._attempt} if self.job.get("earlier") is not None else {}

    def _next_attempt(self) -> bool:
        """Wait until the job ends or begins again; whether there is a further attempt to show."""
        query: dict[str, object] = {"wait": "changed", "timeout_s": POLL_S}
        while self.job["attempt"] == self._attempt:
            if self.job["exit"] is not None:
                return False
            self.job = persistently(
                self.session, lambda: self.session.get("jobs", self.job["id"], query=query)
            )
        earlier = self.job.get("earlier") or []
        ended = [one for one in earlier if one["attempt"] == self._attempt]
        why = str((ended[0]["reason"] or {}).get("sentence", "")) if ended else ""
        self._attempt += 1
        self.offset = 0
        self.session.terminal.wipe()
        if self.session.json:
            self.session.put_json({"event": "attempt", "attempt": self._attempt, "why": why})
        self.session.say("next-attempt", attempt=self._attempt, why=why)
        return True

    def _lost(self, error: HttpError | Failure) -> None:
        """Go on after a lost connection for a while; raise what will not get better."""
        if isinstance(error, Failure) and error.exit_status != RETRY:
            raise error
        now = time.monotonic()
        self._away_since = self._away_since or now
        away = now - self._away_since
        if away > PATIENCE_S:
            raise Failure(RETRY, "server-gone", id=self.job["id"][: view.ID_CHARS])
        if away > 1:
            self._say_once("server-away-watching")

    def _idle(self) -> None:
        """Nothing came for a moment: say why, as long as the job has not begun."""
        now = time.monotonic()
        if self.offset or self.session.quiet or now - self._looked_at < LOOK_S:
            return
        if self._looked_at and self.job["state"] not in view.WAITING:
            return
        self._looked_at = now
        try:
            self.job = self.session.get("jobs", self.job["id"])
        except Failure:
            return  # the stream will notice by itself
        sentence = view.why(self.job) if self.job["state"] in view.WAITING else ""
        if not sentence:
            self.session.terminal.wipe()
            return
        line = self.session.text("waiting", why=sentence)
        if self.session.terminal.err_tty:
            self.session.terminal.status(f"danlu: {line}")
        elif not self._said:
            self._said = line
            self.session.terminal.say(f"danlu: {line}")

    def _say_once(self, key: str) -> None:
        if self._said != key:
            self._said = key
            self.session.say(key)
