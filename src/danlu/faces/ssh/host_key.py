"""The door's own host key, by which clients know it: made once, kept in the data directory."""

from __future__ import annotations

from pathlib import Path

import asyncssh

from danlu.faces.publish import publish

FILE = "ssh_host_key"
KIND = "ssh-ed25519"


def kept(data: Path) -> asyncssh.SSHKey:
    """The key, made where there is none yet. OSError or asyncssh.KeyImportError where the one that
    is there cannot be read: a new one in its stead would look like somebody else to every client.
    """
    path = data / FILE
    if not path.exists():
        made = asyncssh.generate_private_key(KIND)
        publish(path, made.export_private_key())
    return asyncssh.import_private_key(path.read_bytes())


def public(key: asyncssh.SSHKey) -> str:
    """The public half, as in known_hosts."""
    kind, encoded = key.export_public_key().decode("ascii").split()[:2]
    return f"{kind} {encoded}"
