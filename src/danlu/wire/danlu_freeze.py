"""Danlu's own JSON for freezing: a job's environment becomes an image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from danlu.model.installed import Frozen
from danlu.model.texts import Language
from danlu.wire.shape import STRING, Listing, Schema, Shape, Text, reply
from danlu.wire.shape import listing as many

MOST_LEFT_OUT = 1000

FREEZE = Shape(
    {
        "name": Text(about="of the new image: small letters, digits and '-', perhaps a version"),
        "description": Text(),
        "task": Text(about="worker-0 where nothing is said"),
        "without": Listing(Text(), MOST_LEFT_OUT, "packages (or 'files') that are left out"),
    },
    required=("name",),
    remedy={"name": "jobs name the image by it"},
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be frozen, and how the image is called."""

    name: str
    description: str
    task: str
    without: tuple[str, ...]


def wanted(body: dict[str, Any]) -> Wanted:
    """What a body asks for."""
    read = FREEZE.read(body)
    return Wanted(
        read["name"],
        read.get("description", ""),
        read.get("task", "worker-0"),
        tuple(read.get("without", ())),
    )


def frozen(found: Frozen, language: Language) -> dict[str, Any]:
    """The new image, and where it differs from its parent."""
    return {
        "id": found.id,
        "name": found.name,
        "parent": found.parent,
        "definition": found.definition,
        "lock": found.lock,
        "changes": [
            {"package": one.name, "before": one.before, "after": one.after} for one in found.changes
        ],
        "left_out": [
            {"package": one.name or "files", "version": one.version, "why": one.text(language)}
            for one in found.left_out
        ],
    }


FROZEN: Schema = reply(
    {
        **dict.fromkeys(("id", "name", "parent", "definition", "lock"), STRING),
        "changes": many(reply(dict.fromkeys(("package", "before", "after"), STRING))),
        "left_out": many(reply(dict.fromkeys(("package", "version", "why"), STRING))),
    }
)
