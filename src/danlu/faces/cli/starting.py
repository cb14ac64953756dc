"""Starts the local server in the background, once, however many commands want it at a time."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time

from danlu.faces.cli import local
from danlu.faces.cli.client import connection
from danlu.faces.cli.failure import FAULT, RETRY, USAGE, Failure
from danlu.faces.cli.http import HttpError

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any

STARTER_LOCK = "starter.lock"
PATIENCE_S = 60.0
LOG_LIMIT_BYTES = 8 << 20
LAST_LINES = 12


def ensure(data: str, *, flags: tuple[str, ...] = ()) -> tuple[dict[str, Any], bool]:
    """What the running server of `data` said, and whether this call started it.

    `flags` are handed to `danlu serve`. Failure if it does not come up, with its last words.
    """
    import fcntl

    try:
        os.makedirs(data, mode=0o700, exist_ok=True)
        descriptor = os.open(
            os.path.join(data, STARTER_LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
    except OSError as error:
        raise Failure(USAGE, "data-bad", data=data, detail=error.strerror) from None
    try:
        # One starter at a time; the others wait here and find its server.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if local.held_by(data) is not None:
            return _running(data), False
        return _start(data, flags), True
    finally:
        os.close(descriptor)


def answers(ready: dict[str, Any]) -> bool:
    """Whether a Danlu server answers where `ready` says."""
    door = connection(local.endpoint(ready, ""))
    try:
        response = door.request("GET", "/danlu/v1/health", timeout_s=5)
        return response.status == 200 and b'"server_id"' in response.read(1 << 16)
    except HttpError:
        return False
    finally:
        door.close()


def _running(data: str) -> dict[str, Any]:
    """What a server that holds the lock says, when it is ready."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        holder = local.held_by(data)
        if holder is None:
            break
        ready = local.read_ready(data)
        if ready is not None and ready.get("pid") in (holder, None) and answers(ready):
            return ready
        time.sleep(0.05)
    pid = local.held_by(data)
    raise Failure(RETRY, "server-silent", data=data, pid=pid or "?")


def _start(data: str, flags: tuple[str, ...]) -> dict[str, Any]:
    path = os.path.join(data, local.LOG_FILE)
    process, begins_at = _spawn(data, path, (*flags, *_free_port(data, flags)))
    end = time.monotonic() + PATIENCE_S
    pause = 0.005
    while time.monotonic() < end:
        ready = local.read_ready(data)
        if ready is not None and ready.get("pid") == process.pid:
            return ready
        if process.poll() is not None:
            # One that was killed says nothing against the next one.
            status = RETRY if process.returncode < 0 else FAULT
            raise Failure(status, "server-died", log=path, words=_last_words(path, begins_at))
        time.sleep(pause)
        pause = min(0.05, pause * 1.5)
    process.terminate()
    raise Failure(RETRY, "server-slow", log=path, seconds=int(PATIENCE_S))


def _spawn(data: str, path: str, flags: tuple[str, ...]) -> tuple[subprocess.Popen[bytes], int]:
    """`danlu serve` in a session of its own: neither Ctrl-C nor a hang-up here reaches it. Also,
    where in the log at `path` its words begin.
    """
    mode = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    if os.path.exists(path) and os.path.getsize(path) > LOG_LIMIT_BYTES:
        os.replace(path, f"{path}.1")
    log = os.open(path, mode, 0o600)
    # -P: a click.py in the directory from which a server happens to be started is not ours.
    command = [sys.executable, "-P", "-m", "danlu", "serve", "--data", data]
    command += ["--ready-file", local.ready_path(data), *flags]
    try:
        begins_at = os.fstat(log).st_size
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=data,
            start_new_session=True,
        )
        return process, begins_at
    finally:
        os.close(log)


def _free_port(data: str, flags: tuple[str, ...]) -> tuple[str, ...]:
    """`--port 0` where nobody chose a port and another program has the usual one."""
    from pathlib import Path

    from danlu import settings

    if "--port" in flags:
        return ()
    loaded = settings.load(Path(data))
    if loaded.sources["port"] != "default" or free(loaded.settings.host, loaded.settings.port):
        return ()
    return ("--port", "0")


def free(host: str, port: int) -> bool:
    """Whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind((host, port))
        except OSError:
            return False
        return True


def _last_words(path: str, begins_at: int) -> str:
    """What the server that was just started said; those before it had their own troubles."""
    with open(path, "rb") as file:
        file.seek(max(begins_at, os.path.getsize(path) - 8192))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return "\n".join(lines[-LAST_LINES:])
