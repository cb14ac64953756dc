"""The seam to the records: jobs, attempts, tasks, events, users.

Reads return at once and may be called on the event loop. Writes are queued to one writer, which
commits them in groups; each returns a Future that is done when the write is on disk. Every
change of state is guarded by the attempt's token and the states that its event may leave: a
change that no longer applies is a normal answer (None), never an error. Values that no column can
hold (a NUL, half a surrogate pair, a number beyond 64 bits) raise Invalid before anything is
queued. The suite `tests/contract/test_records*.py` runs against SQLite and PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal, Protocol

from danlu.model.attempt import Attempt, AttemptKey, Event, Placement, State
from danlu.model.errors import PlatformError
from danlu.model.event import JobEvent
from danlu.model.identity import AccessKey, User, Workspace
from danlu.model.job import Job, JobView, Output, Task
from danlu.model.notebook import Notebook
from danlu.model.reason import Reason
from danlu.model.ssh_key import SshKey


@dataclass(frozen=True, slots=True)
class Submission:
    """A new job with its first attempt (state queued) and first events."""

    job: Job
    attempt: Attempt
    events: Sequence[JobEvent] = ()


@dataclass(frozen=True, slots=True)
class Submitted:
    """The job that a submission made, or that an earlier one with its client token made."""

    job: Job
    created: bool


@dataclass(frozen=True, slots=True)
class Again:
    """The attempt that follows one which ends, and what is then told of it."""

    attempt: Attempt
    """Queued, with the next number and a token of its own."""
    events: Sequence[JobEvent] = ()


@dataclass(frozen=True, slots=True)
class Move:
    """One event of the state machine and what is recorded with it.

    Only what is not None is written. `tasks` are whole rows that replace what is stored for
    their index. `at` stamps the instant that belongs to the state reached. UNPLACE clears the
    placement and its instant; a final state clears the unreachable flag.

    `again` begins in the same transaction, so nobody ever sees the job ended in between; it is
    left out if the user wants the job stopped or has deleted it: a stop wins every race.
    """

    key: AttemptKey
    event: Event
    at: int
    events: Sequence[JobEvent] = ()
    reason: Reason | None = None
    placement: Sequence[Placement] | None = None
    tasks: Sequence[Task] = ()
    again: Again | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """One condition of a job query.

    `key` is one of name, description, state, flavor, user, id, created_at, node_count, priority.
    `values` are strings, or integers for created_at, node_count and priority. `like` = contains,
    without wildcards, letter by letter; `between` takes two values, both included. Texts compare
    by their bytes. What does not fit the key raises Invalid.
    """

    key: str
    operator: Literal["in", "not", "like", "between"]
    values: Sequence[str | int]


@dataclass(frozen=True, slots=True)
class JobQuery:
    """A page of jobs: `offset` counts rows. Deleted jobs never appear.

    `duration` is how long the program ran, or has run by now. Of equals, the one submitted later
    is the greater.
    """

    filters: Sequence[Filter] = ()
    sort_by: Literal["created_at", "name", "flavor", "priority", "duration"] = "created_at"
    descending: bool = True
    offset: int = 0
    limit: int = 50


@dataclass(frozen=True, slots=True)
class Page:
    """The jobs of a page and how many there are in all."""

    jobs: Sequence[JobView] = ()
    total: int = 0


@dataclass(frozen=True, slots=True)
class EventQuery:
    """Which events of a job are wanted: levels (all where empty), instants, and a cursor."""

    levels: Sequence[str] = ()
    since: int | None = None
    until: int | None = None
    after_sequence: int = 0
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class NotebookChange:
    """A notebook as it was read, and as it is to be: refused if anybody else has changed it since,
    or if MOVES does not lead from the one state to the other. `events` are recorded with it.
    """

    before: Notebook
    after: Notebook
    events: Sequence[JobEvent] = ()


class Records(Protocol):
    """What the platform remembers. The workspace comes first wherever a caller's data is read."""

    # jobs, for faces
    def submit(self, submission: Submission) -> Future[Submitted]:
        """Store a job, its attempt and its events in one transaction.

        A job of the same workspace with the same non-empty client token is returned instead.
        """

    def submitted(self, workspace: str, client_token: str) -> Job | None:
        """The job that was submitted with this client token, deleted ones included."""

    def job(self, workspace: str, job_id: str) -> JobView:
        """A job with its latest attempt and tasks; Missing if there is none."""

    def find(self, workspace: str, prefix: str, limit: int = 10) -> Sequence[str]:
        """Ids of jobs that begin with `prefix`, or whose name equals it, latest first."""

    def jobs(self, workspace: str, query: JobQuery) -> Page:
        """A page of jobs."""

    def events(self, workspace: str, job_id: str, query: EventQuery) -> Sequence[JobEvent]:
        """Events of a job in the order in which they were recorded; Missing for an unknown job."""

    def attempts(self, workspace: str, job_id: str) -> Sequence[tuple[Attempt, Sequence[Task]]]:
        """Every attempt of a job with its tasks, the first one first; Missing if there is none."""

    def describe(self, workspace: str, job_id: str, description: str) -> Future[bool]:
        """Change a job's description. False if there is no such job."""

    def want_stop(self, workspace: str, job_id: str, by: str, event: JobEvent) -> Future[bool]:
        """Record that a live job shall stop. False if it is unknown, final or already stopping."""

    def delete(self, workspace: str, job_id: str) -> Future[bool]:
        """Hide a final job for good. False if it is unknown or still live."""

    # jobs, for the flow
    def live(self) -> Sequence[JobView]:
        """Every job whose latest attempt is not final, in order of submission."""

    def move(self, move: Move) -> Future[State | None]:
        """Apply one event; the state that the job is in then (queued where `again` began), or None
        where the event no longer applies.
        """

    def note(
        self, key: AttemptKey, events: Sequence[JobEvent] = (), tasks: Sequence[Task] = ()
    ) -> Future[bool]:
        """Add events and task facts of a live attempt without a change of state. False for an
        unknown attempt and for one that has ended: what comes late is not taken.
        """

    def flag(self, key: AttemptKey, *, unreachable: bool) -> Future[bool]:
        """Set or clear the unreachable flag of a live attempt."""

    def knows(self, key: AttemptKey) -> bool:
        """Whether this very attempt is on record, whatever its state, deleted jobs included."""

    def swept(self) -> Sequence[tuple[str, int, str, int]]:
        """(job id, attempt, token, tasks) of deleted jobs whose engine data may still exist."""

    def swept_outputs(self, job_id: str) -> Sequence[Output]:
        """The outputs of a deleted job that is not forgotten: uploads to them may still exist."""

    def forget(self, job_id: str) -> Future[bool]:
        """Note that of a deleted job only its records are left: `swept` names it no more."""

    # notebooks
    def add_notebook(self, notebook: Notebook, events: Sequence[JobEvent] = ()) -> Future[bool]:
        """Store a new notebook; False if another one of its workspace has its name."""

    def notebook(self, workspace: str, notebook_id: str) -> Notebook:
        """A notebook that is not deleted; Missing if there is none."""

    def notebooks(self, workspace: str) -> Sequence[Notebook]:
        """Every notebook of a workspace that is not deleted, the latest first."""

    def live_notebooks(self) -> Sequence[Notebook]:
        """Every notebook that something is still to be done about, in order of creation."""

    def change_notebook(self, change: NotebookChange) -> Future[Notebook | None]:
        """The notebook after the change, or None where it no longer applies. Refused if its new
        name is another one's.
        """

    def notebook_events(
        self, workspace: str, notebook_id: str, query: EventQuery
    ) -> Sequence[JobEvent]:
        """What happened to a notebook, in the order in which it was recorded; Missing if there is
        none.
        """

    # who is asking
    def workspace(self, workspace_id: str) -> Workspace | None:
        """A workspace by its id."""

    def workspaces(self) -> Sequence[Workspace]:
        """Every workspace."""

    def add_workspace(self, workspace: Workspace) -> Future[bool]:
        """Store a workspace; False if its id is taken."""

    def user(self, name: str) -> User | None:
        """A user by name."""

    def add_user(self, user: User) -> Future[bool]:
        """Store a user; False if the name is taken."""

    def access_key(self, access_key: str) -> AccessKey | None:
        """A key pair with its user; the secret decrypted.

        `model.storage.access_key_of` names the pair of an attempt, which nobody has to store: it
        is there while the attempt lives.
        """

    def access_keys(self, user_id: str) -> Sequence[str]:
        """The access keys (not the secrets) of a user."""

    def add_access_key(self, key: AccessKey) -> Future[bool]:
        """Store a key pair, its secret encrypted."""

    def ssh_keys(self, user_id: str) -> Sequence[SshKey]:
        """The public keys of a user, the oldest first."""

    def ssh_user(self, fingerprint: str) -> User | None:
        """Whose public key it is, by its fingerprint."""

    def add_ssh_key(self, key: SshKey) -> Future[bool]:
        """Store a public key. False if it is somebody's already, or its user has that name."""

    def remove_ssh_key(self, user_id: str, name: str) -> Future[bool]:
        """Remove a public key from a user's profile. False if there is none of that name."""

    def token_user(self, digest: str, now: int) -> User | None:
        """The user of an unexpired token, by the SHA-256 of the token (hexadecimal)."""

    def add_token(self, digest: str, user_id: str, expires_at: int) -> Future[bool]:
        """Store the digest of a token."""

    def first_use(self, signature: str, now: int, expires_at: int) -> bool:
        """True the first time a signature's digest is seen. Remembered over restarts. `expires_at`
        follows from what was signed, so it is the same whenever the signature comes.

        The row is queued ahead of any later write, so what a replay would repeat is never on
        disk without it.
        """

    def setting(self, key: str) -> str | None:
        """A value that the server keeps about itself (its project id, say)."""

    def set_setting(self, key: str, value: str) -> Future[bool]:
        """Store such a value."""

    def trouble(self) -> PlatformError | None:
        """Why no new work is taken at the moment (the disk is full, or read-only), or None. Cheap.

        Reads go on, and what ends or stops a job is still written where that is possible.
        """

    def close(self) -> None:
        """Finish queued writes and let go of the database."""
