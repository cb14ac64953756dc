"""Who is asking: workspaces, users, their keys and tokens; and the server's own settings."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import Select, Table, and_, bindparam, delete, select

from danlu.model.identity import AccessKey, User, Workspace
from danlu.model.ssh_key import SshKey
from danlu.model.storage import attempt_of
from danlu.stores.sql import schema
from danlu.stores.sql.bounds import storable
from danlu.stores.sql.reads import Reads
from danlu.stores.sql.secrets import KeyFile
from danlu.stores.sql.session import Session

EXPIRED_AT_ONCE = 10_000
"""Expired rows that one transaction removes, so that it stays short."""

_users = schema.users.c

_WORKSPACES = select(schema.workspaces.c.id, schema.workspaces.c.region).order_by(
    schema.workspaces.c.id
)
_WORKSPACE = _WORKSPACES.where(schema.workspaces.c.id == bindparam("wanted"))
_USER = select(*_users).where(_users.name == bindparam("wanted"))
_KEY = (
    select(schema.access_keys.c.secret, *_users)
    .join(schema.users, schema.access_keys.c.user_id == _users.id)
    .where(schema.access_keys.c.access_key == bindparam("wanted"))
)
_ATTEMPT = (
    select(schema.attempts.c.token, *_users)
    .join(schema.jobs, schema.jobs.c.id == schema.attempts.c.job_id)
    .join(
        schema.users,
        and_(_users.name == schema.jobs.c.user, _users.workspace == schema.jobs.c.workspace),
    )
    .where(
        schema.attempts.c.job_id == bindparam("wanted"),
        schema.attempts.c.number == bindparam("number"),
        schema.LIVE_ATTEMPT,
    )
)
_KEYS = (
    select(schema.access_keys.c.access_key)
    .where(schema.access_keys.c.user_id == bindparam("wanted"))
    .order_by(schema.access_keys.c.access_key)
)
_ssh = schema.ssh_keys.c
_SSH_KEYS = (
    select(_ssh.name, _ssh.user_id, _ssh.public, _ssh.fingerprint, _ssh.created_at)
    .where(_ssh.user_id == bindparam("wanted"))
    .order_by(_ssh.created_at, _ssh.name)
)
_SSH_USER = (
    select(*_users)
    .join(schema.ssh_keys, _ssh.user_id == _users.id)
    .where(_ssh.fingerprint == bindparam("wanted"))
)
_REMOVE_SSH_KEY = delete(schema.ssh_keys).where(
    _ssh.user_id == bindparam("user"), _ssh.name == bindparam("wanted")
)
_ANY_KEY = select(schema.access_keys.c.access_key).limit(1)
_TOKEN = (
    select(*_users)
    .join(schema.tokens, schema.tokens.c.user_id == _users.id)
    .where(
        schema.tokens.c.digest == bindparam("wanted"),
        schema.tokens.c.expires_at > bindparam("now"),
    )
)
_SETTING = select(schema.settings.c.value).where(schema.settings.c.key == bindparam("wanted"))


class NewRow(NamedTuple):
    """A row, its values in the order of the table's columns."""

    table: Table
    values: tuple[Any, ...]


def add(session: Session, item: NewRow) -> bool:
    """Add a row; False if its key is taken (a setting is replaced)."""
    return session.insert(item.table, [item.values]) > 0


class OfUser(NamedTuple):
    """Something of a user's, by its name."""

    user_id: str
    name: str


def remove_ssh_key(session: Session, item: OfUser) -> bool:
    """Take a public key out of a user's profile; False if there is none of that name."""
    return session.execute(_REMOVE_SSH_KEY, user=item.user_id, wanted=item.name) > 0


class Identity:
    """Answers what concerns callers."""

    def __init__(self, reads: Reads, keys: KeyFile) -> None:
        self._reads = reads
        self._keys = keys

    def workspace(self, workspace_id: str) -> Workspace | None:
        """A workspace by its id."""
        row = self._one(_WORKSPACE, workspace_id)
        return None if row is None else Workspace(*row)

    def workspaces(self) -> list[Workspace]:
        """Every workspace."""
        return [Workspace(*row) for row in self._reads.rows(_WORKSPACES)]

    def user(self, name: str) -> User | None:
        """A user by name."""
        row = self._one(_USER, name)
        return None if row is None else User(*row)

    def access_key(self, access_key: str) -> AccessKey | None:
        """A key pair with its user; that of an attempt as long as the attempt lives."""
        attempt = attempt_of(access_key)
        if attempt is not None:
            return self._of_attempt(access_key, *attempt)
        row = self._one(_KEY, access_key)
        if row is None:
            return None
        return AccessKey(access_key, self._keys.open(bytes(row[0]), access_key), User(*row[1:]))

    def _of_attempt(self, access_key: str, job_id: str, number: int) -> AccessKey | None:
        row = self._one(_ATTEMPT, job_id, number=number)
        if row is None:
            return None
        secret = self._keys.derived(access_key, str(row[0]), may_make=self._is_first())
        return AccessKey(access_key, secret, User(*row[1:]), job_id)

    def seal(self, key: AccessKey) -> bytes:
        """Encrypt the secret of a new pair.

        The key file is made for the first pair only: a new one beside older pairs would hide
        that the old one is lost.
        """
        return self._keys.seal(key.secret, key.access_key, may_make=self._is_first())

    def _is_first(self) -> bool:
        return not self._reads.rows(_ANY_KEY)

    def access_keys(self, user_id: str) -> list[str]:
        """The access keys of a user."""
        if not storable(user_id):
            return []
        return [row[0] for row in self._reads.rows(_KEYS, wanted=user_id)]

    def ssh_keys(self, user_id: str) -> list[SshKey]:
        """The public keys of a user, the oldest first."""
        if not storable(user_id):
            return []
        return [SshKey(*row) for row in self._reads.rows(_SSH_KEYS, wanted=user_id)]

    def ssh_user(self, fingerprint: str) -> User | None:
        """Whose public key it is."""
        row = self._one(_SSH_USER, fingerprint)
        return None if row is None else User(*row)

    def token_user(self, digest: str, now: int) -> User | None:
        """The user of an unexpired token."""
        row = self._one(_TOKEN, digest, now=now)
        return None if row is None else User(*row)

    def setting(self, key: str) -> str | None:
        """A value that the server keeps about itself."""
        row = self._one(_SETTING, key)
        return None if row is None else str(row[0])

    def _one(self, clause: Select[Any], wanted: str, **values: Any) -> tuple[Any, ...] | None:
        if not storable(wanted):
            return None
        found = self._reads.rows(clause, wanted=wanted, **values)
        return found[0] if found else None


def forget_expired(session: Session, now: int) -> None:
    """Remove what has expired, a bounded number of rows at a time."""
    for statement in _EXPIRED:
        session.execute(statement, now=now, most=EXPIRED_AT_ONCE)


def _expired(table: Table) -> Any:
    digest, expires_at = table.c.digest, table.c.expires_at
    old = select(digest).where(expires_at <= bindparam("now")).limit(bindparam("most"))
    return delete(table).where(digest.in_(old))


_EXPIRED = tuple(_expired(table) for table in (schema.signatures, schema.tokens))
