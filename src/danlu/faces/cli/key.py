"""danlu key add, ls, rm: the public keys of one's profile."""

from __future__ import annotations

import os
import sys

from danlu.faces.cli import view
from danlu.faces.cli.failure import MISSING, USAGE, Failure
from danlu.faces.cli.session import Session, utf8
from danlu.faces.cli.texts import printable

MOST_BYTES = 1 << 16
USUAL = ("id_ed25519.pub", "id_ecdsa.pub", "id_ed25519_sk.pub", "id_ecdsa_sk.pub", "id_rsa.pub")
"""In the order in which ssh itself tries them, the newer kinds first."""


def add(session: Session, *, file: str | None, name: str | None) -> int:
    """Send a public key. A private one never leaves the machine: it is refused here."""
    text = _read(file or _usual())
    if "PRIVATE KEY" in text:
        raise Failure(USAGE, "key-private", path=file or "")
    body = {"public_key": text, **({"name": utf8(name, "--name")} if name is not None else {})}
    made = session.client().post("keys", body=body)
    if session.json:
        session.put_json(made)
    elif session.quiet:
        session.put(made["name"])
    else:
        session.say("key-added", name=made["name"], fingerprint=made["fingerprint"])
    return 0


def ls(session: Session) -> int:
    """List one's keys, the oldest first; with --json one object a line."""
    found = session.get("keys")["keys"]
    if session.json or session.quiet:
        for one in found:
            if session.json:
                session.put_json(one)
            else:
                session.put(one["name"])
        return 0
    if not found:
        session.say("keys-none")
        return 0
    rows = [
        (
            printable(one["name"]),
            one["fingerprint"],
            one["public_key"].partition(" ")[0],
            view.instant(one["created_at"]),
        )
        for one in found
    ]
    session.terminal.table(session.text("columns.keys").split("|"), rows)
    return 0


def rm(session: Session, *, names: tuple[str, ...]) -> int:
    """Remove keys, one after the other."""
    for name in names:
        gone = session.client().delete("keys", utf8(name, "KEY"))
        if session.json:
            session.put_json(gone)
        else:
            session.say("key-removed", name=gone["name"])
    return 0


def _usual() -> str:
    directory = os.path.join(os.path.expanduser("~"), ".ssh")
    for name in USUAL:
        path = os.path.join(directory, name)
        if os.path.isfile(path):
            return path
    raise Failure(MISSING, "key-no-default", directory=directory)


def _read(path: str) -> str:
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MOST_BYTES)
        else:
            with open(path, "rb") as stream:
                data = stream.read(MOST_BYTES)
        return data.decode()
    except OSError as error:
        raise Failure(MISSING, "key-file", path=path, detail=error.strerror or error) from error
    except UnicodeDecodeError:
        raise Failure(USAGE, "key-file", path=path, detail="it is no text") from None
