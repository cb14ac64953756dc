"""The workspace, the administrator and the key pair of a server's first start."""

from __future__ import annotations

import os
import secrets
import uuid

from danlu.model.identity import AccessKey, Secret, User, Workspace
from danlu.ports.records import Records
from danlu.settings import Settings

ADMIN = "admin"
ADMIN_KEY = "admin-access-key"
PASSWORD_FILE = "admin-password"  # noqa: S105 - the name of a file


def first_admin(records: Records, settings: Settings) -> tuple[Workspace, AccessKey]:
    """The workspace, user and key pair of this server, made at its first start.

    A start may be killed between any two of its writes; the next one goes on with what is there.
    """
    name = records.setting(ADMIN_KEY)
    if name:
        key = records.access_key(name)
        found = records.workspace(key.user.workspace) if key else None
        if key and found:
            return found, key
    user = records.user(ADMIN)
    workspace = records.workspace(user.workspace) if user else None
    workspace = workspace or _first_workspace(records, settings)
    user = user or _first_user(records, settings, workspace)
    key = _first_key(records, user)
    records.set_setting(ADMIN_KEY, key.access_key).result()
    return workspace, key


def _first_workspace(records: Records, settings: Settings) -> Workspace:
    """The one that is there, or a new one."""
    for workspace in records.workspaces():
        return workspace
    workspace = Workspace(uuid.uuid4().hex, settings.region)
    records.add_workspace(workspace).result()
    return workspace


def _first_user(records: Records, settings: Settings, workspace: Workspace) -> User:
    """The administrator. The password is in its file before the user is on record: a user whose
    password nobody knows could not be used.
    """
    password = secrets.token_urlsafe(18)
    path = settings.data / PASSWORD_FILE
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w") as file:
        file.write(password + "\n")
        file.flush()
        os.fsync(file.fileno())
    hashed = hash_password(password)
    user = User(uuid.uuid4().hex, ADMIN, workspace.id, uuid.uuid4().hex, hashed)
    records.add_user(user).result()
    return user


def _first_key(records: Records, user: User) -> AccessKey:
    """The one that is there, or a new one."""
    for known in records.access_keys(user.id):
        found = records.access_key(known)
        if found is not None:
            return found
    key = AccessKey(_access_key(), Secret(secrets.token_urlsafe(30)), user)
    records.add_access_key(key).result()
    return key


def _access_key() -> str:
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    return "".join(secrets.choice(alphabet) for _ in range(20))


def hash_password(password: str) -> str:
    """argon2id with OWASP's parameters (19 MiB, two passes)."""
    from argon2 import PasswordHasher

    return PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1).hash(password)
