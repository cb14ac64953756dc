"""Backup and restore of a data directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import danlu
from danlu.model.errors import Refused
from danlu.settings import Settings
from danlu.wiring.world import SystemClock, locked

if TYPE_CHECKING:
    from danlu.stores.backup import Manifest
    from danlu.stores.restore import Restored


def back_up(settings: Settings, dest: Path, *, key: bool, objects: bool) -> Manifest:
    """Write a backup of the server's data to the new directory `dest`, while it runs or not.

    Refused, with the way that there is, for records in PostgreSQL.
    """
    from danlu.stores import backup

    if settings.database:
        raise Refused("backup-other-database", database=shown_database(settings))
    now = SystemClock().now()
    parts = backup.Parts(settings.data)
    return backup.back_up(parts, dest, key=key, objects=objects, version=danlu.__version__, now=now)


def restore(settings: Settings, source: Path, *, force: bool) -> Restored:
    """Put a backup in the place of the server's data. Refused while a server runs on it, and,
    without `force`, where there are records already; those are kept aside.
    """
    from danlu.stores import restore as restoring
    from danlu.stores.backup import Parts
    from danlu.stores.sql.schema import REVISIONS

    if settings.database:
        raise Refused("restore-other-database", database=shown_database(settings))
    lock = locked(settings.data)
    try:
        now = SystemClock().now()
        return restoring.restore(
            Parts(settings.data), source, known=REVISIONS, now=now, force=force
        )
    finally:
        lock.release()


def shown_database(settings: Settings) -> str:
    """The setting without what is secret in it."""
    from danlu.stores.sql.opening import open_database

    return open_database(settings.database).name
