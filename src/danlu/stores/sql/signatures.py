"""Which signed requests were received before.

Asked on the event loop for every signed write, so it answers from memory; the rows are for the
time after a restart. Memory holds the newest digests only: once some were dropped, the database
is asked as well.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence

from sqlalchemy import bindparam, select

from danlu.stores.sql import schema
from danlu.stores.sql.reads import Reads
from danlu.stores.sql.session import Session
from danlu.stores.sql.writer import Writer

MOST_IN_MEMORY = 200_000
DIGEST_BYTES = 16

_UNEXPIRED = (
    select(schema.signatures.c.digest, schema.signatures.c.expires_at)
    .where(schema.signatures.c.expires_at > bindparam("now"))
    .order_by(schema.signatures.c.expires_at.desc())
    .limit(bindparam("most"))
)
_SEEN = select(schema.signatures.c.expires_at).where(
    schema.signatures.c.expires_at == bindparam("expires"),
    schema.signatures.c.digest == bindparam("seen"),
)


class Signatures:
    """Answers `first_use`. May be asked from any thread."""

    def __init__(self, reads: Reads, writer: Writer, now: int, most: int = MOST_IN_MEMORY) -> None:
        self._reads = reads
        self._writer = writer
        self._most = most
        self._lock = threading.Lock()
        stored = reads.rows(_UNEXPIRED, now=now, most=most)
        self._expires = {bytes(digest): expires_at for digest, expires_at in reversed(stored)}
        self._dropped_until = stored[-1][1] if len(stored) == most else 0
        """Digests that expire up to here may be missing from memory."""

    def first_use(self, signature: str, now: int, expires_at: int) -> bool:
        """True once for each signature until it expires, which is at the same instant whenever it
        comes: that follows from the date that was signed.
        """
        digest = hashlib.sha256(signature.encode(errors="surrogatepass")).digest()[:DIGEST_BYTES]
        with self._lock:
            if self._expires.get(digest, 0) > now or self._is_stored(digest, now, expires_at):
                return False
            if len(self._expires) >= self._most:
                self._make_room(now)
            # Queued before it is believed: if the queue is full, nothing was used.
            self._writer.owe(remember, (expires_at, digest))
            self._expires.pop(digest, None)
            self._expires[digest] = expires_at
        return True

    def _is_stored(self, digest: bytes, now: int, expires_at: int) -> bool:
        if not now < expires_at <= self._dropped_until:
            return False
        return bool(self._reads.rows(_SEEN, seen=digest, expires=expires_at))

    def _make_room(self, now: int) -> None:
        """Drop what has expired; if that is too little, the half that was seen first."""
        kept = {digest: at for digest, at in self._expires.items() if at > now}
        if len(kept) > self._most // 2:
            first = list(kept)[: len(kept) - self._most // 2]
            latest = max(kept.pop(digest) for digest in first)
            self._dropped_until = max(self._dropped_until, latest)
        self._expires = kept


def remember(session: Session, items: Sequence[tuple[int, bytes]]) -> list[None]:
    """Store digests with the instant at which each expires."""
    session.insert(schema.signatures, items)
    return [None] * len(items)
