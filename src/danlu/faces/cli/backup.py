"""danlu backup, danlu restore: a copy of what the server keeps, and the way back."""

from __future__ import annotations

from pathlib import Path

from danlu import settings
from danlu.faces.cli import view
from danlu.faces.cli.session import Session


def backup(session: Session, *, dest: str, objects: bool, without_key: bool) -> int:
    """Copy the data of the local server to a new directory. It may go on running."""
    from danlu.wiring.recovery import back_up

    loaded = settings.load(Path(session.data)).settings
    made = back_up(loaded, Path(dest), key=not without_key, objects=objects)
    if session.json:
        session.put_json(
            {
                "path": dest, "files": len(made.files), "size": made.size, "schema": made.schema,
                "created_at": made.created_at, "key": made.key, "objects": made.objects,
            }
        )  # fmt: skip
        return 0
    session.say("backup-made", path=dest, files=len(made.files), size=view.size(made.size))
    session.say("backup-key" if made.key else "backup-no-key", path=dest)
    if not made.objects:
        session.say("backup-no-objects")
    return 0


def restore(session: Session, *, source: str, force: bool) -> int:
    """Put a backup in the place of the local server's data. The server has to be stopped."""
    from danlu.wiring.recovery import restore as put_back

    done = put_back(settings.load(Path(session.data)).settings, Path(source), force=force)
    made = done.manifest
    if session.json:
        session.put_json(
            {
                "data": session.data, "files": len(made.files), "created_at": made.created_at,
                "aside": str(done.aside) if done.aside else None, "objects": made.objects,
            }
        )  # fmt: skip
        return 0
    when = view.instant(made.created_at)
    session.say("restored", data=session.data, when=when, files=len(made.files))
    if done.aside:
        session.say("restored-aside", path=done.aside)
    if not made.objects:
        session.say("restored-no-objects")
    session.say("restored-next")
    return 0
