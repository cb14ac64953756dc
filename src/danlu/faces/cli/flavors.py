"""danlu flavors: the machine shapes that jobs can ask for."""

from __future__ import annotations

from danlu.faces.cli import view
from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import printable


def flavors(session: Session) -> int:
    """List flavors, the default one marked."""
    answer = session.get("flavors")
    if session.json:
        session.put_json(answer)
        return 0
    listed = answer["flavors"]
    if session.quiet:
        for one in listed:
            session.put(one["id"])
        return 0
    rows = [
        (
            printable(one["id"]),
            str(one["cpus"]),
            view.size(one["memory_bytes"]),
            f"{one['gpus']} × {one.get('gpu_model') or 'GPU'}" if one.get("gpus") else "-",
            f"{one['price_per_hour']:g}" if one.get("price_per_hour") else "-",
            session.text("yes") if one.get("fits") else session.text("no"),
            session.text("default") if one.get("default") else "",
        )
        for one in listed
    ]
    session.terminal.table(session.text("columns.flavors").split("|"), rows)
    return 0
