"""danlu completion: scripts for shells, and the job ids that they offer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from danlu.faces.cli import local, view
from danlu.faces.cli.client import Client
from danlu.faces.cli.failure import FAULT, Failure
from danlu.faces.cli.http import HttpError
from danlu.faces.cli.servers import named
from danlu.faces.cli.session import Session, data_directory

LIMIT_S = 0.5
"""A shell that waits for completion must not wait longer."""


def completion(session: Session, *, shell: str) -> int:
    """Print the script for `shell`."""
    from click.shell_completion import get_completion_class

    from danlu.faces.cli.clicked import program

    found = get_completion_class(shell)
    if found is None:
        raise Failure(FAULT, "shell-unknown", shell=shell)
    session.terminal.out.write(found(program(session.language), {}, "danlu", COMPLETE).source())
    return 0


COMPLETE = "_DANLU_COMPLETE"


def job_ids(values: Mapping[str, Any], incomplete: str) -> list[tuple[str, str]]:
    """Ids (or names) of recent jobs that begin with `incomplete`, each with a note.

    Nothing at all where the server is down, slow or refuses: completion never complains.
    """
    try:
        page = _recent(values)
    except (Failure, HttpError, OSError, ValueError, KeyError):
        return []
    short = view.short_ids([job["id"] for job in page])
    offered = [(short[job["id"]], f"{job['name']} {job['state']}") for job in page]
    offered += [(job["name"], f"{short[job['id']]} {job['state']}") for job in page if incomplete]
    offered.append(("@last", ""))
    return [(word, note) for word, note in offered if word.startswith(incomplete)]


def _recent(values: Mapping[str, Any]) -> list[Any]:
    server = values.get("server") or os.environ.get("DANLU_SERVER", "")
    if server and not values.get("data"):
        endpoint = named(server, os.environ)
    else:
        data = data_directory(values.get("data"), os.environ)
        ready = local.read_ready(data)
        if ready is None:
            return []
        endpoint = local.endpoint(ready, data)
    found = Client(endpoint, "en").get("jobs", query={"limit": 50}, timeout_s=LIMIT_S)
    jobs: list[Any] = found["jobs"]
    return jobs
