"""The Records port on a database: reads answer at once, writes go through the one writer."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TypeVar

from danlu.model.attempt import Attempt, AttemptKey, State
from danlu.model.errors import PlatformError
from danlu.model.event import JobEvent
from danlu.model.identity import AccessKey, User, Workspace
from danlu.model.job import Job, JobView, Output, Task
from danlu.model.notebook import Notebook
from danlu.model.ssh_key import SshKey
from danlu.ports.records import (
    EventQuery,
    JobQuery,
    Move,
    NotebookChange,
    Page,
    Submission,
    Submitted,
)
from danlu.ports.world import Clock
from danlu.stores.sql import identity, moves, reads, rows, schema, submissions, wishes
from danlu.stores.sql.bounds import storable, whole, words
from danlu.stores.sql.database import Database
from danlu.stores.sql.identity import Identity, NewRow, OfUser
from danlu.stores.sql.listing import Listing
from danlu.stores.sql.notebooks import Notebooks
from danlu.stores.sql.reads import Reads
from danlu.stores.sql.secrets import KeyFile
from danlu.stores.sql.session import each
from danlu.stores.sql.signatures import Signatures
from danlu.stores.sql.wishes import OfJob
from danlu.stores.sql.writer import Apply, OnFatal, Writer

Item = TypeVar("Item")
Result = TypeVar("Result")

# One function object a kind: the writer puts neighbours with the same one together.
_NOTE = each(moves.note)
_FLAG = each(moves.flag)
_STOP = each(wishes.want_stop)
_DESCRIBE = each(wishes.describe)
_DELETE = each(wishes.delete)
_FORGET = each(wishes.forget)
_ADD = each(identity.add)
_REMOVE_SSH_KEY = each(identity.remove_ssh_key)


PROBE = "last-probe"
"""The setting that is written to see whether anything can be written."""


def carry_on(problem: PlatformError) -> None:
    """For those who only open records for a moment: each later write tells them `problem`."""


class SqlRecords:
    """`danlu.ports.records.Records`. Values that no column can hold raise Invalid at once."""

    def __init__(
        self, database: Database, keys: KeyFile, clock: Clock, on_fatal: OnFatal = carry_on
    ) -> None:
        self._clock = clock
        self._reads = Reads(database)
        self._listing = Listing(database, self._reads)
        self._identity = Identity(self._reads, keys)
        self._writer = Writer(database, clock, identity.forget_expired, on_fatal)
        self._notebooks = Notebooks(self._reads, self._writer)
        self._probe: Future[bool] = Future()
        self._probe.cancel()
        self._signatures = Signatures(self._reads, self._writer, clock.now())

    def trouble(self) -> PlatformError | None:
        """Why no new work is taken at the moment, or None."""
        problem = self._writer.trouble.look()
        if self._writer.trouble.only_a_write_shows() and self._probe.done():
            # One is tried: perhaps nobody else writes.
            with contextlib.suppress(PlatformError):
                self._probe = self._add(
                    NewRow(schema.settings, (PROBE, str(self._clock.now()))), needed=True
                )
        return problem

    def close(self) -> None:
        """Finish queued writes and let go of the database."""
        self._writer.close()
        self._reads.close()

    # jobs, for faces

    def submit(self, submission: Submission) -> Future[Submitted]:
        """Store a job, its attempt and its events in one transaction."""
        return self._writer.put(submissions.submit, submissions.new_job(submission))

    def submitted(self, workspace: str, client_token: str) -> Job | None:
        """The job that was submitted with this client token, deleted ones included."""
        return submissions.of_token(self._reads, workspace, client_token)

    def job(self, workspace: str, job_id: str) -> JobView:
        """A job with its latest attempt and tasks."""
        return reads.one(self._reads, workspace, job_id)

    def find(self, workspace: str, prefix: str, limit: int = 10) -> Sequence[str]:
        """Ids of jobs that begin with `prefix`, or whose name equals it, latest first."""
        return reads.ids(self._reads, workspace, prefix, limit)

    def jobs(self, workspace: str, query: JobQuery) -> Page:
        """A page of jobs."""
        return self._listing.jobs(workspace, query, self._clock.now())

    def events(self, workspace: str, job_id: str, query: EventQuery) -> Sequence[JobEvent]:
        """Events of a job, in the order in which they were recorded."""
        return self._listing.events(workspace, job_id, query)

    def attempts(self, workspace: str, job_id: str) -> Sequence[tuple[Attempt, Sequence[Task]]]:
        """Every attempt of a job with its tasks, the first one first."""
        return reads.attempts(self._reads, workspace, job_id)

    def describe(self, workspace: str, job_id: str, description: str) -> Future[bool]:
        """Change a job's description."""
        text = words(description, "description")
        return self._of_job(_DESCRIBE, OfJob(workspace, job_id, text))

    def want_stop(self, workspace: str, job_id: str, by: str, event: JobEvent) -> Future[bool]:
        """Record that a live job shall stop."""
        told = rows.new_events(job_id, [event])
        return self._of_job(_STOP, OfJob(workspace, job_id, words(by, "by"), told), needed=True)

    def delete(self, workspace: str, job_id: str) -> Future[bool]:
        """Hide a final job for good."""
        return self._of_job(_DELETE, OfJob(workspace, job_id), needed=True)

    # jobs, for the flow

    def live(self) -> Sequence[JobView]:
        """Every job whose latest attempt is not final, in order of submission."""
        return reads.live(self._reads)

    def move(self, move: Move) -> Future[State | None]:
        """Apply one event; the state reached, or None where it no longer applies."""
        return self._writer.put(moves.move, moves.new_move(move), needed=True)

    def note(
        self, key: AttemptKey, events: Sequence[JobEvent] = (), tasks: Sequence[Task] = ()
    ) -> Future[bool]:
        """Add events and task facts without a change of state."""
        return self._writer.put(_NOTE, moves.new_note(key, events, tasks), needed=True)

    def flag(self, key: AttemptKey, *, unreachable: bool) -> Future[bool]:
        """Set or clear the unreachable flag of a live attempt."""
        return self._writer.put(_FLAG, (moves.attempt_key(key), unreachable), needed=True)

    def knows(self, key: AttemptKey) -> bool:
        """Whether this very attempt is on record, whatever its state, deleted jobs included."""
        names = moves.names(moves.attempt_key(key))
        return bool(self._reads.rows(moves.KNOWN, **names))

    def swept(self) -> Sequence[tuple[str, int, str, int]]:
        """(job id, attempt, token, tasks) of deleted jobs whose engine data may still exist."""
        return [(row[0], row[1], row[2], row[3]) for row in self._reads.rows(reads.UNSWEPT)]

    def swept_outputs(self, job_id: str) -> Sequence[Output]:
        """The outputs of a deleted job, of which uploads may still exist."""
        return reads.swept_outputs(self._reads, job_id)

    def forget(self, job_id: str) -> Future[bool]:
        """Note that nothing is left of a deleted job outside the records."""
        return self._writer.put(_FORGET, words(job_id, "job_id"), needed=True)

    # notebooks

    def add_notebook(self, notebook: Notebook, events: Sequence[JobEvent] = ()) -> Future[bool]:
        """Store a new notebook; False if another one of its workspace has its name."""
        return self._notebooks.add(notebook, events)

    def notebook(self, workspace: str, notebook_id: str) -> Notebook:
        """A notebook that is not deleted."""
        return self._notebooks.one(workspace, notebook_id)

    def notebooks(self, workspace: str) -> Sequence[Notebook]:
        """Every notebook of a workspace that is not deleted, the latest first."""
        return self._notebooks.all(workspace)

    def live_notebooks(self) -> Sequence[Notebook]:
        """Every notebook that something is still to be done about, in order of creation."""
        return self._notebooks.live()

    def change_notebook(self, change: NotebookChange) -> Future[Notebook | None]:
        """The notebook after the change, or None where it no longer applies."""
        return self._notebooks.change(change)

    def notebook_events(
        self, workspace: str, notebook_id: str, query: EventQuery
    ) -> Sequence[JobEvent]:
        """What happened to a notebook, in the order in which it was recorded."""
        return self._notebooks.events(workspace, notebook_id, query)

    # who is asking

    def workspace(self, workspace_id: str) -> Workspace | None:
        """A workspace by its id."""
        return self._identity.workspace(workspace_id)

    def workspaces(self) -> Sequence[Workspace]:
        """Every workspace."""
        return self._identity.workspaces()

    def add_workspace(self, workspace: Workspace) -> Future[bool]:
        """Store a workspace."""
        return self._add(NewRow(schema.workspaces, (workspace.id, workspace.region)))

    def user(self, name: str) -> User | None:
        """A user by name."""
        return self._identity.user(name)

    def add_user(self, user: User) -> Future[bool]:
        """Store a user."""
        row = (user.id, user.name, user.workspace, user.domain_id, user.password_hash)
        return self._add(NewRow(schema.users, row))

    def access_key(self, access_key: str) -> AccessKey | None:
        """A key pair with its user; the secret decrypted."""
        return self._identity.access_key(access_key)

    def access_keys(self, user_id: str) -> Sequence[str]:
        """The access keys (not the secrets) of a user."""
        return self._identity.access_keys(user_id)

    def add_access_key(self, key: AccessKey) -> Future[bool]:
        """Store a key pair, its secret encrypted."""
        words(key.access_key, "access_key")
        sealed = self._identity.seal(key)
        return self._add(NewRow(schema.access_keys, (key.access_key, key.user.id, sealed)))

    def ssh_keys(self, user_id: str) -> Sequence[SshKey]:
        """The public keys of a user, the oldest first."""
        return self._identity.ssh_keys(user_id)

    def ssh_user(self, fingerprint: str) -> User | None:
        """Whose public key it is."""
        return self._identity.ssh_user(fingerprint)

    def add_ssh_key(self, key: SshKey) -> Future[bool]:
        """Put a public key into a user's profile."""
        made = whole(key.created_at, "created_at")
        row = (key.fingerprint, key.user_id, key.name, key.public, made)
        return self._add(NewRow(schema.ssh_keys, row))

    def remove_ssh_key(self, user_id: str, name: str) -> Future[bool]:
        """Take a public key out of a user's profile."""
        item = OfUser(words(user_id, "user_id"), words(name, "name"))
        return self._writer.put(_REMOVE_SSH_KEY, item, needed=True)

    def token_user(self, digest: str, now: int) -> User | None:
        """The user of an unexpired token."""
        return self._identity.token_user(digest, now)

    def add_token(self, digest: str, user_id: str, expires_at: int) -> Future[bool]:
        """Store the digest of a token."""
        expires = whole(expires_at, "expires_at")
        return self._add(NewRow(schema.tokens, (digest, user_id, expires)), needed=True)

    def first_use(self, signature: str, now: int, expires_at: int) -> bool:
        """True the first time a signature's digest is seen."""
        return self._signatures.first_use(signature, now, whole(expires_at, "expires_at"))

    def setting(self, key: str) -> str | None:
        """A value that the server keeps about itself."""
        return self._identity.setting(key)

    def set_setting(self, key: str, value: str) -> Future[bool]:
        """Store such a value."""
        return self._add(NewRow(schema.settings, (key, value)))

    # queueing

    def _of_job(
        self, apply: Apply[OfJob, bool], item: OfJob, *, needed: bool = False
    ) -> Future[bool]:
        if not storable(item.workspace) or not storable(item.job_id):
            unknown: Future[bool] = Future()
            unknown.set_result(False)
            return unknown
        return self._writer.put(apply, item, needed=needed)

    def _add(self, row: NewRow, *, needed: bool = False) -> Future[bool]:
        for column, value in zip(row.table.c, row.values, strict=True):
            if isinstance(value, str):
                words(value, f"{row.table.name}.{column.name}")
        return self._writer.put(_ADD, row, needed=needed)
