"""The server of a data directory: what it wrote about itself, and whether it lives."""

from __future__ import annotations

import json
import os

from danlu.faces.cli.client import Endpoint

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any

READY_FILE = "server.json"
LOCK_FILE = "server.lock"
LOG_FILE = "server.log"

FIELDS = ("api", "project_id", "access_key", "secret_key")


def ready_path(data: str) -> str:
    """Where the server of `data` says how to reach it."""
    return os.path.join(data, READY_FILE)


def read_ready(data: str) -> dict[str, Any] | None:
    """What the server of `data` said when it was last ready; None if it never was."""
    try:
        with open(ready_path(data), encoding="utf-8") as file:
            ready = json.loads(file.read(1 << 20))
    except (OSError, ValueError):
        return None
    if not isinstance(ready, dict) or not all(isinstance(ready.get(f), str) for f in FIELDS):
        return None
    return ready


def endpoint(ready: dict[str, Any], data: str) -> Endpoint:
    """How to reach the server that wrote `ready`."""
    api, project_id, access_key, secret_key = (ready[field] for field in FIELDS)
    pin, obs = (str(ready.get(field) or "") for field in ("ca", "obs"))
    return Endpoint(api, project_id, access_key, secret_key, pin=pin, data=data, obs=obs)


def held_by(data: str) -> int | None:
    """The process that holds the data directory's lock; None if no server lives.

    The lock is the only proof: the kernel drops it with the process, however that ends. 0 stands
    for a holder that has not written its number yet.
    """
    import fcntl

    try:
        descriptor = os.open(os.path.join(data, LOCK_FILE), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        written = os.pread(descriptor, 20, 0).strip()
        return int(written) if written.isdigit() else 0
    else:
        return None
    finally:
        os.close(descriptor)


def has_lock_open(data: str, pid: int) -> bool:
    """Whether process `pid` has the lock's file open: a number alone proves nothing."""
    try:
        lock = os.stat(os.path.join(data, LOCK_FILE))
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False
    for name in names:
        try:
            found = os.stat(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
        if (found.st_dev, found.st_ino) == (lock.st_dev, lock.st_ino):
            return True
    return False
