"""Danlu's own JSON of public keys."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from danlu.model.ssh_key import SshKey
from danlu.wire.shape import INTEGER, STRING, Shape, Text, listing, reply

ADD = Shape(
    {
        "public_key": Text(about="one line, as in a .pub file"),
        "name": Text(about="default: the key's comment"),
    },
    required=("public_key",),
)

KEY_SCHEMA = reply(
    {"name": STRING, "fingerprint": STRING, "public_key": STRING, "created_at": INTEGER}
)
KEYS_SCHEMA = reply({"keys": listing(KEY_SCHEMA)})


def key(found: SshKey) -> dict[str, Any]:
    """A public key."""
    return {
        "name": found.name,
        "fingerprint": found.fingerprint,
        "public_key": found.public,
        "created_at": found.created_at,
    }


def keys(found: Iterable[SshKey]) -> dict[str, Any]:
    """A user's public keys."""
    return {"keys": [key(one) for one in found]}
