"""Whether an SQLite file is whole."""

from __future__ import annotations

from typing import Any


def damage(connection: Any) -> str:
    """What SQLite finds wrong first when it looks through every page; empty where nothing is.
    `connection` is sqlite3's, or what behaves like one.
    """
    found = [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)").fetchall()]
    return "" if found == ["ok"] else "; ".join(found) or "nothing was checked"
