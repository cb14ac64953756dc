"""Places of this machine that a job names: looked at again when they are used.

A submit is refused that names what is the server's own or the system's secret. Hours may lie
between the submit and the launch, and whoever owns a directory can put a link in its stead.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from danlu.model.errors import Refused
from danlu.model.url import LocalUrl
from danlu.node.reach import closed_place
from danlu.ports.task_directory import Isolation


def real(url: LocalUrl, field: str, isolation: Isolation) -> Path:
    """The place that a path stands for now, without links; Refused where no job may have that."""
    found = os.path.realpath(url.path)
    closed = closed_place(found, isolation.closed, but=isolation.open)
    if closed:
        raise Refused("path-closed", field=field, value=url.path, closed=closed)
    return Path(found)


def real_path(url: LocalUrl, isolation: Isolation) -> str:
    """The same as text; empty where no job may have it: staging has said so, or will."""
    with suppress(Refused):
        return str(real(url, "", isolation))
    return ""
