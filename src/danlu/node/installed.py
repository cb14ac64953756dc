"""What a task has installed by hand: read from the layer over its environment, of which nothing is
run. `pip freeze` would need the task's own Python, and names neither wheels nor loose files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from danlu.images import distributions
from danlu.images.distributions import Package
from danlu.model.installed import Installed
from danlu.node import layer
from danlu.node.overlay import Overlay

MOST_LOOSE = 1000
_IMAGE = re.compile(r"[0-9a-f]{64}")


def look(work: str) -> Installed | None:
    """What the task of a work directory has changed; None where it has no layer of its own."""
    changes = Path(work, layer.CHANGES)
    try:
        lower = (changes / layer.OF).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    whole = Overlay(lower, str(changes / "upper"))
    name = lower.rpartition("/")[2]
    image = f"sha256:{name}" if _IMAGE.fullmatch(name) else ""
    written = set(whole.changed())
    sites = distributions.sites(Path(lower))
    now = dict(distributions.packages(whole, sites))
    before = dict(distributions.packages(distributions.Plain(Path(lower)), sites))
    removed = [name for name in before if name not in now]
    added = [
        one.about
        for name, one in now.items()
        if name not in before or one.about != before[name].about
    ]
    return Installed(
        image,
        tuple(sorted(added, key=lambda one: one.name)),
        tuple(sorted(removed)),
        tuple(_loose(whole, written, now, before)[:MOST_LOOSE]),
    )


def _loose(
    whole: Overlay, written: set[str], now: Mapping[str, Package], before: Mapping[str, Package]
) -> list[str]:
    """Files that are no package's, and those that are not as their package lists them."""
    listed: dict[str, str] = {}
    folders = set()
    for one in now.values():
        listed.update(one.files)
        folders.add(one.folder)
    earlier = {path: sha for one in before.values() for path, sha in one.files.items()}
    odd = []
    for path in sorted(written):
        if "/__pycache__/" in path or path.rpartition("/")[0] in folders:
            continue
        wanted = listed.get(path)
        if wanted is None:
            odd += [] if _of_legacy(path, now) else [path]
        elif wanted and whole.sha256(path) != wanted:
            odd.append(path)
    gone = [
        path
        for path in listed
        if path not in written
        and "__pycache__" not in path
        and path in earlier
        and whole.hidden(path)
    ]
    return [*odd, *sorted(gone)]


def _of_legacy(path: str, now: Mapping[str, Package]) -> bool:
    """Whether a package without a list of files is there, whose facts these are."""
    return any(not one.files and path.startswith(f"{one.folder}") for one in now.values())
