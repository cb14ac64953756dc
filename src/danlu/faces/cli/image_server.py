"""danlu image register and freeze: images that a server is to know."""

from __future__ import annotations

import os
from pathlib import Path

from danlu.faces.cli.failure import MISSING, USAGE, Failure
from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONG_S = 3600.0
"""Packages may have to come from far."""
MOST_BYTES = 16 << 20


def register(session: Session, *, name: str, lock: str, description: str | None) -> int:
    """Keep an image under a name: its lock's text goes to the server."""
    body: dict[str, Any] = {"danlu": {"name": name, "lock": _text(lock)}}
    if description is not None:
        body["description"] = description
    client = session.client()
    made = client.post("", "v1", client.endpoint.project_id, "images", body=body)
    if session.json:
        session.put_json(made)
    else:
        session.put(made["id"])
        session.say("image-registered", name=printable(made["name"]))
    return 0


def freeze(session: Session, *, job: str, **given: Any) -> int:
    """Make an image of what was installed by hand in a job, or a notebook."""
    return _freeze(session, "jobs", job, **given)


def save(session: Session, *, notebook: str, **given: Any) -> int:
    """The same of a notebook, whatever jobs are called."""
    return _freeze(session, "notebooks", notebook, task=None, **given)


def _freeze(
    session: Session,
    kind: str,
    ref: str,
    *,
    name: str,
    out: str | None,
    without: tuple[str, ...],
    task: str | None,
    description: str | None,
) -> int:
    """Have an image made, and say how it differs from the one below it."""
    folder = Path(out) if out is not None else None
    if folder is not None and not folder.is_dir():
        raise Failure(MISSING, "path-missing", option="--out", path=out)
    body: dict[str, Any] = {"name": name, "without": list(without)}
    body |= {key: said for key, said in (("task", task), ("description", description)) if said}
    client = session.client()
    made = client.post(kind, ref, "freeze", body=body, timeout_s=LONG_S)
    if folder is not None:
        (folder / f"{name}.toml").write_text(made["definition"], "utf-8")
        (folder / f"{name}.json").write_text(made["lock"], "utf-8")
    if session.json:
        session.put_json(made)
        return 0
    session.put(made["id"])
    for one in made["changes"]:
        session.say("image-frozen-change", **{k: printable(v) or "–" for k, v in one.items()})
    for one in made["left_out"]:
        session.say("image-frozen-without", why=printable(one["why"]))
    session.say("image-frozen", name=printable(name), parent=made["parent"][:19])
    return 0


def _text(path: str) -> str:
    try:
        if os.path.getsize(path) > MOST_BYTES:
            raise Failure(USAGE, "image-lock-large", path=path)
        return Path(path).read_text("utf-8")
    except OSError:
        raise Failure(MISSING, "path-missing", option="LOCK", path=path) from None
    except UnicodeDecodeError:
        raise Failure(USAGE, "image-lock-large", path=path) from None
