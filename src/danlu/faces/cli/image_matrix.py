"""danlu image matrix: what is known of PyTorch's builds, and what an index has that is not."""

from __future__ import annotations

from danlu.faces.cli import view
from danlu.faces.cli.session import Session
from danlu.wiring import host


def matrix(session: Session, *, action: str, index_url: str | None) -> int:
    """Show the matrix, or the difference to an index."""
    return _refresh(session, index_url or "") if action == "refresh" else _show(session)


def _show(session: Session) -> int:
    found = host.image_matrix()
    rows = [
        {
            "torch": one.torch,
            "released": one.released,
            "pythons": " ".join(one.pythons),
            "glibc": one.glibc,
            "cuda": one.cuda,
            "cudnn": one.cudnn,
            "nccl": one.nccl,
            "sm": " ".join(map(str, one.sm)),
            "source": one.source,
        }
        for one in reversed(found.releases)
    ]
    if session.json:
        session.put_json({"version": found.version, "sources": found.sources, "releases": rows})
        return 0
    session.say("matrix-version", version=found.version, count=len(rows))
    session.terminal.table(
        session.text("columns.matrix").split("|"), [tuple(row.values()) for row in rows]
    )
    return 0


def _refresh(session: Session, index: str) -> int:
    found = host.refreshed_matrix(index)
    if session.json:
        session.put_json(
            {
                "releases": list(found.releases),
                "builds": list(found.builds),
                "diff": found.diff(),
                "fetched_bytes": found.fetched,
                "wheel_bytes": found.size,
            }
        )
        return 0
    if not found.releases:
        session.say("matrix-current", index=index or "PyPI")
        return 0
    for line in found.diff().splitlines():
        session.put(line)
    size = {"fetched": view.size(found.fetched), "size": view.size(found.size)}
    session.say("matrix-read", count=len(found.releases), **size)
    return 0
