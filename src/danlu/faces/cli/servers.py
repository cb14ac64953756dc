"""Which server a command talks to: the one of the data directory, or one that was named."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping

from danlu.faces.cli import local
from danlu.faces.cli.client import Client, Endpoint
from danlu.faces.cli.failure import DENIED, FAULT, MISSING, USAGE, Failure

Say = Callable[..., None]
"""Says a sentence by its key, with its parameters."""
Trace = Callable[[str], None]


def connect(
    data: str, server: str, language: str, *, say: Say, trace: Trace | None = None
) -> Client:
    """A client for `server`, or where that is empty for the local one, started if it is down."""
    if server:
        endpoint = named(server, os.environ)
        client = Client(endpoint, language, trace=trace)
        if not endpoint.project_id:
            endpoint.project_id = _project(client)
        return client

    def start() -> Endpoint:
        from danlu.faces.cli import starting

        found, started = starting.ensure(data)
        if started:
            say("server-started", api=found["api"])
        return local.endpoint(found, data)

    def recover(connected: bool) -> Endpoint | None:  # noqa: FBT001 - its callers give just this
        stopped = local.read_ready(data) is None and local.held_by(data) is None
        return None if connected and stopped else start()

    ready = local.read_ready(data)
    endpoint = start() if ready is None else local.endpoint(ready, data)
    return Client(endpoint, language, recover=recover, trace=trace)


def named(server: str, environ: Mapping[str, str]) -> Endpoint:
    """A server by URL or by its name in servers.json; Failure where it or its keys are unknown."""
    profiles = _profiles(profiles_path(environ))
    is_url = "://" in server
    if is_url:
        wanted = server.rstrip("/")
        found = next((p for p in profiles.values() if p["api"].rstrip("/") == wanted), {})
        found = {**found, "api": wanted}
    elif server in profiles:
        found = dict(profiles[server])
    else:
        known = ", ".join(sorted(profiles)) or "-"
        path = profiles_path(environ)
        raise Failure(MISSING, "server-unknown", server=server, path=path, known=known)
    access_key = environ.get("DANLU_ACCESS_KEY") or found.get("access_key", "")
    secret_key = environ.get("DANLU_SECRET_KEY") or found.get("secret_key", "")
    if not access_key or not secret_key:
        raise Failure(DENIED, "keys-missing", server=server, path=profiles_path(environ))
    return Endpoint(
        found["api"],
        found.get("project_id", ""),
        access_key,
        secret_key,
        ca=found.get("ca", ""),
        obs=found.get("obs", ""),
    )


def profiles_path(environ: Mapping[str, str]) -> str:
    """Where servers are named: servers.json in the user's configuration directory."""
    home = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(home):
        home = os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(home, "danlu", "servers.json")


def _profiles(path: str) -> dict[str, dict[str, str]]:
    """Named servers: objects with the fields of a ready file. No file, no servers."""
    try:
        with open(path, encoding="utf-8") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077:
                raise Failure(USAGE, "profiles-open", path=path)
            read = json.loads(file.read(1 << 20))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise Failure(USAGE, "profiles-bad", path=path, detail=error) from None
    profiles: dict[str, dict[str, str]] = {}
    for name, entry in (read if isinstance(read, dict) else {"": None}).items():
        if not isinstance(entry, dict) or not isinstance(entry.get("api"), str):
            detail = f"'{name}' is not an object with an api"
            raise Failure(USAGE, "profiles-bad", path=path, detail=detail)
        profiles[name] = {k: v for k, v in entry.items() if isinstance(v, str)}
    return profiles


def _project(client: Client) -> str:
    """The one project of the keys, as IAM names it."""
    projects = client.get("", "v3", "projects").get("projects")
    if not isinstance(projects, list) or len(projects) != 1:
        raise Failure(FAULT, "not-danlu", api=client.endpoint.api)
    return str(projects[0]["id"])
