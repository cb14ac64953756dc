"""Public keys for tests, made by OpenSSH itself."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make(place: Path, kind: str = "ed25519", bits: int | None = None, comment: str = "") -> str:
    """A pair at `place` (and `place.pub`); the public half as text."""
    size = [] if bits is None else ["-b", str(bits)]
    subprocess.run(
        ["ssh-keygen", "-q", "-t", kind, *size, "-N", "", "-C", comment, "-f", str(place)],
        check=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    return place.with_name(f"{place.name}.pub").read_text("utf-8")


def fingerprint(place: Path) -> str:
    """What ssh-keygen calls it."""
    said = subprocess.run(
        ["ssh-keygen", "-l", "-f", str(place)], check=True, capture_output=True, timeout=60
    )
    return said.stdout.decode().split()[1]
