"""danlu cache: the data sets that stay on this machine for the next job that reads them."""

from __future__ import annotations

from danlu.faces.cli import view
from danlu.faces.cli.failure import MISSING, REFUSED, USAGE, Failure
from danlu.faces.cli.obs.sizes import rate
from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import printable
from danlu.wiring import host

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any

SHOWN = 12
"""Digits of a digest that are shown."""


def ls(session: Session) -> int:
    """List data sets, the one that was used last first."""
    found = host.kept(session.data)
    if session.json:
        for one in found:
            session.put_json(
                {
                    "digest": one.digest,
                    "files": one.files,
                    "bytes": one.size,
                    "url": one.url,
                    "used_at": one.used_at,
                    "tasks": len(one.users),
                    "complete": one.complete,
                }
            )
        return 0
    rows = [
        (
            one.digest[:SHOWN],
            str(one.files),
            view.size(one.size),
            view.age(one.used_at),
            str(len(one.users)),
            printable(one.url) or "-",
        )
        for one in found
    ]
    session.terminal.table(session.text("columns.cache").split("|"), rows)
    return 0


def rm(session: Session, *, digests: tuple[str, ...]) -> int:
    """Remove data sets that no task uses."""
    kept = host.datasets(session.data)
    chosen = [_one(host.kept(session.data), word) for word in digests]
    for one in chosen:
        if not kept.remove(one.digest):
            raise Failure(
                REFUSED, "cache-used", digest=one.digest[:SHOWN], tasks=", ".join(one.users) or "-"
            )
        _removed(session, [one])
    return 0


def gc(session: Session, *, to: str | None) -> int:
    """Remove what was used longest ago and is not in use."""
    _removed(session, host.datasets(session.data).shrink(rate(to)))
    return 0


def _one(found: list[Any], word: str) -> Any:
    fitting = [one for one in found if word and one.digest.startswith(word)]
    if not fitting:
        raise Failure(MISSING, "cache-missing", digest=word)
    if len(fitting) > 1:
        raise Failure(USAGE, "cache-several", digest=word, count=len(fitting))
    return fitting[0]


def _removed(session: Session, removed: list[Any]) -> None:
    size = sum(one.size for one in removed)
    if session.json:
        digests = [one.digest for one in removed]
        session.put_json({"removed": digests, "bytes": size})
    else:
        session.say("cache-removed", count=len(removed), size=view.size(size))
