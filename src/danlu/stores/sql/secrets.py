"""Secrets that must be read again are encrypted; the key lies in a file of its own.

AES-256-GCM, a fresh nonce each time. The additional data names what the secret belongs to, so
a row's secret cannot be moved to another row. A copy of the database alone gives nothing away.
"""

from __future__ import annotations

import base64
import contextlib
import hmac
import os
import stat
import tempfile
import threading
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from danlu.model.errors import Refused
from danlu.model.identity import Secret
from danlu.stores import disk

KEY_BYTES = 32
DERIVED = b"danlu: the secret of an attempt"
"""Keeps what is derived apart from everything else that the key may ever be used for."""
NONCE_BYTES = 12
FORM = b"\x01"
"""The first byte of what is stored: how the rest was made."""


class KeyFile:
    """The key, made when it is first needed, readable by its owner only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._cipher: AESGCM | None = None
        self._key = b""

    def derived(self, owner: str, token: str, *, may_make: bool = True) -> Secret:
        """The secret that follows from the key, an owner and his token: always the same, and
        stored nowhere. `may_make` as for `seal`.
        """
        self._opened(may_make=may_make)
        text = b"\0".join((DERIVED, owner.encode(), token.encode()))
        digest = hmac.digest(self._key, text, "sha256")
        return Secret(base64.urlsafe_b64encode(digest).rstrip(b"=").decode())

    def seal(self, secret: Secret, owner: str, *, may_make: bool = True) -> bytes:
        """Encrypt a secret of `owner`. `may_make`: make the key if there is none."""
        nonce = os.urandom(NONCE_BYTES)
        sealed = self._opened(may_make=may_make).encrypt(
            nonce, secret.reveal().encode(), FORM + owner.encode()
        )
        return FORM + nonce + sealed

    def open(self, sealed: bytes, owner: str) -> Secret:
        """Decrypt; Refused where this key or this owner is not the one it was sealed for."""
        cipher = self._opened(may_make=False)
        nonce, rest = sealed[1 : 1 + NONCE_BYTES], sealed[1 + NONCE_BYTES :]
        try:
            return Secret(cipher.decrypt(nonce, rest, sealed[:1] + owner.encode()).decode())
        except (InvalidTag, ValueError) as error:
            raise Refused("key-file-wrong", path=self._path, owner=owner) from error

    def _opened(self, *, may_make: bool) -> AESGCM:
        cipher = self._cipher
        if cipher is not None:
            return cipher
        with self._lock:
            try:
                key = self._read(may_make=may_make)
            except OSError as error:
                raise Refused(
                    "key-file-unreadable", path=self._path, detail=error.strerror
                ) from error
            self._key = key
            self._cipher = cipher = AESGCM(key)
        return cipher

    def _read(self, *, may_make: bool) -> bytes:
        if may_make and not self._path.exists():
            self._make()
        descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077:
                raise Refused("key-file-open", path=self._path)
            key = file.read(KEY_BYTES + 1)
        if len(key) != KEY_BYTES:
            raise Refused(
                "key-file-unreadable", path=self._path, detail=f"it is not {KEY_BYTES} bytes long"
            )
        return key

    def _make(self) -> None:
        """Publish a whole file under its name; if another process was first, use that one's."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, draft = tempfile.mkstemp(prefix=f"{self._path.name}.", dir=self._path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(KEY_BYTES))
            file.flush()
            os.fsync(descriptor)
        with contextlib.suppress(FileExistsError):
            os.link(draft, self._path)
        Path(draft).unlink()
        disk.sync(self._path.parent)
