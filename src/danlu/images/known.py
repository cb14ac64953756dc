"""The images that there are: built in, registered under a name, or kept by their id."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from danlu.images import built, definition, lock
from danlu.images.lock import Lock
from danlu.images.store import SIGN, ImageStore, now_ms, publish
from danlu.model.errors import Invalid, Missing, Refused
from danlu.model.image import ImageView

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?")
MOST_NAMES = 10_000


@dataclass(frozen=True, slots=True)
class Image:
    """One image. Two backends of one definition are two; `name` tells them apart."""

    id: str
    name: str
    lock: Lock
    built_in: bool = False
    created_at: int = 0
    description: str = ""
    workspace: str = ""
    """Whose name it is; empty = everybody's on this machine."""

    @property
    def torch(self) -> str:
        """The version of torch in it; empty where it has none."""
        return next((one.version for one in self.lock.wheels if one.name == "torch"), "")


@dataclass(frozen=True, slots=True)
class _Name:
    """What is kept of a registered image."""

    id: str
    created_at: int
    description: str = ""


@functools.cache
def built_in() -> tuple[Image, ...]:
    """Those that the package carries. One backend has the definition's name alone."""
    found = []
    for one in definition.built_in():
        for backend in one.backends:
            locked = lock.built_in(one, backend)
            name = one.id if len(one.backends) == 1 else f"{one.id}.{backend}"
            found.append(Image(lock.image_id(locked), name, locked, built_in=True))
    return tuple(found)


def every(store: ImageStore, workspace: str | None = None) -> Iterator[Image]:
    """The built-in ones, then what was registered for everybody here, then a workspace's own, each
    by name; None = those of all workspaces.
    """
    yield from built_in()
    places = [store.part("names")]
    if workspace is None:
        places += sorted(path for path in places[0].iterdir() if path.is_dir())
    elif workspace:
        places.append(_names_of(store, workspace))
    for place in places:
        for path in sorted(place.glob("*.json")):
            image = _registered(store, path)
            if image is not None:
                yield image


def find(store: ImageStore, word: str, workspace: str | None = None) -> Image:
    """The image that a name, an id or at least eight digits of one mean; its lock is kept. A name
    is one that `workspace` may use (None = anybody's).

    Missing where there is none, Refused where several begin so or have that name.
    """
    named = [one for one in every(store, workspace) if word in (one.name, one.id)]
    if named:
        ids = {one.id for one in named}
        if len(ids) > 1:
            raise Refused("image-ambiguous", value=word, images=", ".join(sorted(ids)))
        store.keep(named[0].lock)
        return named[0]
    start = word.removeprefix(SIGN)
    ids = {*store.known(start)}
    ids |= {one.id for one in built_in() if len(start) >= 8 and one.id.startswith(SIGN + start)}
    if not ids:
        raise Missing("image-missing", image=word)
    if len(ids) > 1:
        raise Refused("image-ambiguous", value=word, images=", ".join(sorted(ids)))
    (found,) = ids
    one = next((one for one in every(store, workspace) if one.id == found), None)
    if one is not None:
        store.keep(one.lock)
        return one
    ready = store.realised(found)
    return Image(found, ready.name if ready else found[: len(SIGN) + 12], store.lock(found))


def register(
    store: ImageStore, name: str, locked: Lock, description: str = "", workspace: str = ""
) -> Image:
    """Keep an image under a name of a workspace (empty = everybody's). The same again changes
    nothing.

    Invalid for a name that cannot be one, Refused where it means another image.
    """
    if not NAME.fullmatch(name):
        expected = "a name of letters, digits, '.', '_' and '-', at most 64 of them"
        raise Invalid("field-value", field="name", value=name, expected=expected)
    image_id = store.keep(locked)
    taken = next((one for one in every(store, workspace) if one.name == name), None)
    if taken is not None and taken.id != image_id:
        raise Refused("image-name-taken", name=name, image=taken.id)
    if taken is not None:
        return taken
    place = _names_of(store, workspace)
    place.mkdir(mode=0o700, exist_ok=True)
    if sum(1 for _ in place.glob("*.json")) >= MOST_NAMES:
        raise Refused("too-many", field="names", count=MOST_NAMES, limit=MOST_NAMES,
                      remedy="remove some")  # fmt: skip
    kept = _Name(image_id, now_ms(), description)
    publish(place / f"{name}.json", json.dumps(asdict(kept)))
    return Image(image_id, name, locked, False, kept.created_at, description, workspace)


def refuse_built_in(image: Image) -> None:
    """Refused for an image that the package carries."""
    if image.built_in:
        raise Refused("image-built-in", image=image.name)


def unregister(store: ImageStore, image: Image) -> None:
    """Give a name up. Refused for a built-in image; the environment is removed by itself."""
    refuse_built_in(image)
    (_names_of(store, image.workspace) / f"{image.name}.json").unlink(missing_ok=True)


def view(store: ImageStore, one: Image) -> ImageView:
    """An image with what this machine knows of it."""
    made = store.realised(one.id)
    return ImageView(
        id=one.id,
        name=one.name,
        backend=one.lock.backend,
        torch=one.torch,
        python=made.python if made else one.lock.python,
        packages=len(one.lock.wheels),
        arch=one.lock.arch,
        built_in=one.built_in,
        created_at=one.created_at,
        description=one.description,
        realised=made,
        path=str(store.environment(one.id)) if made else "",
        used_at=store.used_at(one.id) if made else 0,
        used_by=tuple(store.holders(one.id)),
        built=built.find(store, one.id),
    )


def _registered(store: ImageStore, path: Path) -> Image | None:
    try:
        kept = _Name(**json.loads(path.read_text("utf-8")))
        locked = store.lock(kept.id)
    except (OSError, ValueError, TypeError, Missing, Invalid):
        return None
    shared = path.parent == store.part("names")
    workspace = "" if shared else unquote(path.parent.name)
    return Image(kept.id, path.stem, locked, False, kept.created_at, kept.description, workspace)


def _names_of(store: ImageStore, workspace: str) -> Path:
    """Where the names of a workspace are kept."""
    return store.part("names") / quote(workspace, safe="") if workspace else store.part("names")
