"""A user's public keys: add, list, remove."""

from __future__ import annotations

from concurrent.futures import Future

from danlu.flow.platform import Platform
from danlu.model import ssh_key
from danlu.model.errors import Invalid, Missing, Refused
from danlu.model.identity import User
from danlu.model.ssh_key import MOST_KEYS, SshKey


def new(platform: Platform, user: User, text: str, name: str) -> SshKey:
    """The key in `text` as `user` may add it, under `name` or what its comment says. Raises Invalid
    for what is no public key, Refused where the name is taken.
    """
    given = ssh_key.read(text)
    mine = platform.records.ssh_keys(user.id)
    if len(mine) >= MOST_KEYS:
        raise Invalid(
            "too-many",
            field="your profile's keys",
            count=len(mine) + 1,
            limit=MOST_KEYS,
            remedy="remove one first",
        )
    name = ssh_key.check_name(name) if name else _named(given)
    if any(one.name == name for one in mine):
        raise Refused("ssh-key-name-taken", name=name)
    return SshKey(name, user.id, given.public, given.fingerprint, platform.clock.now())


def add(platform: Platform, key: SshKey) -> Future[bool]:
    """Store a key; False if it is in a profile already."""
    return platform.records.add_ssh_key(key)


def find(platform: Platform, user: User, name: str) -> SshKey:
    """A key of the user's by name or fingerprint; Missing if there is none."""
    for one in platform.records.ssh_keys(user.id):
        if name in (one.name, one.fingerprint):
            return one
    raise Missing("ssh-key-missing", name=name)


def _named(given: ssh_key.Given) -> str:
    """A name from the comment, which may be anything; without one from the fingerprint."""
    plain = "".join(
        c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in given.comment
    )
    made = plain.strip("-_.")[: ssh_key.NAME_CHARS]
    return made or "key-" + "".join(c for c in given.fingerprint[7:] if c.isalnum())[:8]
