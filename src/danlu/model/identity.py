"""Who is asking: users, their keys and tokens, and the workspace they act in."""

from __future__ import annotations

from dataclasses import dataclass


class Secret:
    """A text that must not be shown: no repr, no str; `reveal()` says so where it is used."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(…)"

    def __eq__(self, other: object) -> bool:
        raise TypeError("compare secrets with hmac.compare_digest on revealed bytes")

    __hash__ = None  # type: ignore[assignment]  # a secret must not become a dictionary key


@dataclass(frozen=True, slots=True)
class Workspace:
    """Who shares things: ModelArts' project. `region` is the name IAM knows it by."""

    id: str
    region: str


@dataclass(frozen=True, slots=True)
class User:
    """A person or program with an account. `password_hash` is argon2id, empty = no password."""

    id: str
    name: str
    workspace: str
    domain_id: str
    password_hash: str = ""


@dataclass(frozen=True, slots=True)
class AccessKey:
    """A key pair for signed requests; the secret is kept encrypted at rest."""

    access_key: str
    secret: Secret
    user: User
    job: str = ""
    """The job for whose attempt it was made: it opens the storage, and nothing else, while the
    attempt lives. Empty = it is a user's own.
    """


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated side of a request."""

    user: User
    workspace: Workspace
