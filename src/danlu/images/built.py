"""What is known here of an image as a container image: of which one it is the realisation."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, fields
from pathlib import Path

from danlu.images.store import ImageStore, digits, publish
from danlu.model.image import Built

FOLDER = "built"


def find(store: ImageStore, image_id: str) -> Built | None:
    """The container image that was made of a lock here; None where there is none."""
    try:
        data = json.loads(_file(store, image_id).read_text("utf-8"))
        known = {one.name: data[one.name] for one in fields(Built) if one.name in data}
        return Built(**{**known, "apt": tuple(data["apt"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None


def reference(store: ImageStore, image_id: str) -> str:
    """How podman or Docker of this machine is asked for an image of ours: by the one id that can
    mean nothing else. Empty where it was not built or loaded here. That it was says nothing of
    whether the runtime still has it.
    """
    found = find(store, image_id)
    return found.oci_id if found is not None else ""


def save(store: ImageStore, record: Built) -> None:
    """Keep what was built."""
    store.part(FOLDER)
    publish(_file(store, record.id), json.dumps(asdict(record), indent=1, sort_keys=True) + "\n")


def forget(store: ImageStore, image_id: str) -> None:
    """Nobody knows of it any more."""
    with suppress(OSError):
        _file(store, image_id).unlink()


def _file(store: ImageStore, image_id: str) -> Path:
    return store.root / FOLDER / f"{digits(image_id)}.json"
