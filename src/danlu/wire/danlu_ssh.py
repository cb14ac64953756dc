"""Danlu's own JSON of the way to an instance over SSH."""

from __future__ import annotations

from danlu.wire.shape import BOOLEAN, INTEGER, STRING, reply

ACCESS_SCHEMA = reply(
    {
        "name": STRING,
        "port": INTEGER,
        "login": STRING,
        "door_key": STRING,
        "user": STRING,
        "host_key": STRING,
        "home": STRING,
        "keys": INTEGER,
        "ready": BOOLEAN,
    }
)
LOGIN = "danlu"
"""The login at the door of those who go through."""
