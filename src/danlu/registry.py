"""Engines by name: a name, where its code is, and how to get what it needs.

Imported only when used; a package may add engines of its own through the entry-point group
`danlu.engines`, each naming a callable `build(settings, parts) -> Engine`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

from danlu.model.errors import Invalid, Unavailable

GROUP = "danlu.engines"


@dataclass(frozen=True, slots=True)
class Entry:
    """Where an engine's builder is, and the command that installs what it needs."""

    path: str
    install: str


ENGINES: dict[str, Entry] = {
    "container": Entry("danlu.wiring:container_engine", "pip install danlu"),
    "process": Entry("danlu.wiring:process_engine", "pip install danlu"),
    "memory": Entry("danlu.wiring:memory_engine", "pip install danlu"),
}


def engine_builder(name: str) -> Callable[..., Any]:
    """The builder of the engine called `name`; Invalid if there is none, Unavailable if its
    dependencies are not installed.
    """
    entry = ENGINES.get(name)
    if entry is None:
        for point in entry_points(group=GROUP, name=name):
            loaded: Callable[..., Any] = point.load()
            return loaded
        raise Invalid(
            "setting-value",
            key="engine",
            source="the settings",
            value=name,
            expected=f"one of {', '.join(sorted(ENGINES))}",
        )
    module, _, attribute = entry.path.partition(":")
    try:
        built: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    except ImportError as error:
        raise Unavailable("extra-missing", name=name, install=entry.install) from error
    return built
