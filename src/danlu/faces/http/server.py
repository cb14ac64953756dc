"""What handlers work on: the opened platform, and what the HTTP face keeps beside it."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, Protocol, TypeVar

from danlu.faces.http.changes import Changes
from danlu.faces.http.durable import Durable
from danlu.faces.http.follow import Tails
from danlu.faces.http.gate import Gate
from danlu.faces.http.limiter import Limiter
from danlu.faces.lab.found import Found
from danlu.faces.lab.labs import Labs
from danlu.faces.lab.lease import RecordedLeases
from danlu.faces.lab.origin import origins
from danlu.flow import lines, logs, refs
from danlu.flow.activity import Activity
from danlu.flow.board import Board
from danlu.flow.notebooks import Notebooks
from danlu.flow.platform import Platform
from danlu.model.errors import Missing
from danlu.model.job import JobView
from danlu.ports.engine import LogChunk, Mark, Ref
from danlu.ports.records import JobQuery, Page
from danlu.settings import Settings
from danlu.wiring import Running

P = ParamSpec("P")
T = TypeVar("T")

SERVER_ID = "server-id"
MOST_INDEXES = 256
INDEXED_ORDERS = ("created_at", "name")
INDEXED_KEYS = ("id", "name", "state", "created_at")
SIGN_IN_TRIES = 10
SIGN_IN_WINDOW_S = 900.0
WORKERS = 4
EXECUTORS = 16


class SshDoor(Protocol):
    """The way in over SSH, as clients are told of it."""

    port: int

    async def host_key(self) -> str:
        """The public half of its host key."""


class Log:
    """A log and its index; both read with the job as it was last looked at."""

    def __init__(self, platform: Platform, view: JobView, task: str) -> None:
        self._platform = platform
        self._task = task
        self.view = view
        self.index = lines.Index(self.read, self._known)

    def read(self, offset: int, limit: int) -> LogChunk:
        """At most `limit` bytes from an offset."""
        return logs.read(self._platform, self.view, self._task, offset, limit)

    def _known(self, line: int, offset: int) -> Mark:
        return logs.known(self._platform, self.view, self._task, line, offset)


class Server:
    """One server's state beyond the records. Lives on the event loop."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.gate = Gate(
            running.platform.records, running.platform.clock, names_of(running.settings)
        )
        self.changes = Changes(running.board, running.loop.notebooks)
        self.durable = Durable()
        self.tails = Tails(running.platform, running.board, self.changes)
        self.by_account = Limiter(running.platform.clock, SIGN_IN_TRIES, SIGN_IN_WINDOW_S)
        self.by_address = Limiter(running.platform.clock, SIGN_IN_TRIES * 10, SIGN_IN_WINDOW_S)
        self.passwords = asyncio.Semaphore(max(1, (os.cpu_count() or 2) - 1))
        """Sign-ins may not starve the machine: one hash takes most of a core for 80 ms."""
        self.workers = ThreadPoolExecutor(WORKERS, "http-worker")
        """For what would hold the event loop up: passwords, archives, counting lines."""
        self.uploaders = ThreadPoolExecutor(WORKERS, "http-upload")
        """For uploads, which last as long as their clients send."""
        self.executors = ThreadPoolExecutor(EXECUTORS, "http-exec")
        """For beginning and ending commands in jobs, which may take seconds."""
        self.saving: set[str] = set()
        """The notebooks of which an image is being made now."""
        self.executions = 0
        """How many commands run in jobs now."""
        self.link_key = secrets.token_bytes(32)
        """Signs links to logs; a restart makes them void, as their five minutes would."""
        self.server_id = _server_id(running)
        self.ssh: SshDoor | None = None
        """The way in over SSH; None where there is none."""
        self.on_keys: Callable[[], None] | None = None
        """Called when somebody's public keys have changed."""
        self.labs = _labs(running, self.durable)
        """The way of browsers to notebooks."""
        self._logs: OrderedDict[Ref, Log] = OrderedDict()

    @property
    def platform(self) -> Platform:
        """The parts that every verb may use."""
        return self.running.platform

    @property
    def board(self) -> Board:
        """The live attempts."""
        return self.running.board

    @property
    def notebooks(self) -> Notebooks:
        """The live notebooks, and the way to change one."""
        return self.running.loop.notebooks

    @property
    def activity(self) -> Activity:
        """What running notebooks are used for."""
        return self.running.loop.activity

    @property
    def settings(self) -> Settings:
        """The server's settings."""
        return self.running.settings

    @property
    def wake(self) -> Callable[[], None]:
        """Wakes the flow loop."""
        return self.running.loop.wake

    def keys_changed(self) -> None:
        """Tell whoever has let people in by their keys."""
        if self.on_keys is not None:
            self.on_keys()

    def now(self) -> int:
        """UTC milliseconds."""
        return self.platform.clock.now()

    def view(self, workspace: str, job_id: str) -> JobView:
        """A job of this workspace; Missing if there is none.

        A live one is on the board: whoever waits for a job asks again and again.
        """
        live = self.board.settled(job_id)
        if live is not None and live.job.workspace == workspace:
            return live
        return self.platform.records.job(workspace, job_id)

    async def jobs(self, workspace: str, query: JobQuery) -> Page:
        """A page of jobs. Of 100,000, an index finds one in milliseconds; what no index serves
        takes up to half a second and is looked for beside the event loop.
        """
        jobs = self.platform.records.jobs
        if query.sort_by in INDEXED_ORDERS and all(
            one.key in INDEXED_KEYS and one.operator in ("in", "between") for one in query.filters
        ):
            return jobs(workspace, query)
        return await self.on_worker(jobs, workspace, query)

    def attempt(self, workspace: str, job_id: str, number: int) -> JobView:
        """A job with one of its attempts, 0 = the latest; Missing if there is none such."""
        view = self.view(workspace, job_id)
        count = view.attempt.key.number
        found = self.platform.attempt(view, number or count)
        if found is not None:
            return found
        raise Missing("attempt-missing", job=job_id, attempt=number, count=count)

    def index(self, view: JobView, task: str) -> lines.Index:
        """The line index of a task's log."""
        return self.log(view, task).index

    def log(self, view: JobView, task: str) -> Log:
        """A task's log and its index."""
        ref = refs.ref(view, task)
        log = self._logs.get(ref)
        if log is None:
            log = self._logs[ref] = Log(self.platform, view, task)
            while len(self._logs) > MOST_INDEXES:
                self._logs.popitem(last=False)
        self._logs.move_to_end(ref)
        log.view = view
        return log

    async def on_worker(self, work: Callable[P, T], *arguments: P.args, **_: P.kwargs) -> T:
        """Do beside the event loop what would hold it up."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.workers, work, *arguments)

    async def on_uploader(self, work: Callable[P, T], *arguments: P.args, **_: P.kwargs) -> T:
        """The same for what waits for a client's bytes."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.uploaders, work, *arguments)

    async def on_executor(self, work: Callable[P, T], *arguments: P.args, **_: P.kwargs) -> T:
        """The same for what waits for a command in a job."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.executors, work, *arguments)

    def close(self) -> None:
        """Let every waiter and follower go."""
        self.changes.close()
        self.workers.shutdown(wait=False, cancel_futures=True)
        self.uploaders.shutdown(wait=False, cancel_futures=True)
        self.executors.shutdown(wait=False)


def _labs(running: Running, durable: Durable) -> Labs:
    platform, loop = running.platform, running.loop
    where = origins(running.settings.notebook_domain, platform.api)
    key = running.browser_key().reveal().encode()
    leases = RecordedLeases(platform, loop.notebooks, loop.activity, durable)
    found = Found(platform, running.board)
    return Labs.opened(where, found, key, platform.clock, loop.activity.touch, leases)


def _server_id(running: Running) -> str:
    """Names this server's data: made once, and the same after every restart."""
    records = running.platform.records
    known = records.setting(SERVER_ID)
    if known is None:
        known = secrets.token_hex(8)
        records.set_setting(SERVER_ID, known).result()
    return known


def names_of(settings: Settings) -> list[str]:
    """The host names under which clients may call this server, beside loopback's."""
    wildcard = ("", "0.0.0.0", "::")  # noqa: S104 -- compared with, not listened on
    own = [] if settings.host in wildcard else [settings.host]
    return [*own, *settings.host_names]
