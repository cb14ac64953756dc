"""The images of this machine, as faces and engines use them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from danlu.model.errors import Invalid, Missing, Refused
from danlu.model.image import Damage, Freed, ImageView
from danlu.model.installed import Frozen, Installed
from danlu.model.job import JobSpec
from danlu.model.verification import Advisory, Verification
from danlu.settings import Settings

if TYPE_CHECKING:
    from danlu.images.realise import Say
    from danlu.images.store import ImageStore

IMAGES = "images"


def root(settings: Settings) -> Path:
    """Where the images of a server lie."""
    return Path(settings.images) if settings.images else settings.data / IMAGES


def store(settings: Settings) -> ImageStore:
    """The images of a server. Nothing is made until it is needed."""
    from danlu.images.store import ImageStore

    return ImageStore(root(settings))


def named(settings: Settings, workspace: str) -> list[ImageView]:
    """The images that have a name in a workspace: built in, registered for everybody, its own."""
    from danlu.images import known

    images = store(settings)
    return [known.view(images, one) for one in known.every(images, workspace)]


def every(settings: Settings) -> list[ImageView]:
    """Every image: the named ones, then what else has an environment here."""
    from danlu.images import known

    images = store(settings)
    named = list(known.every(images))
    ids = {one.id for one in named}
    others = [known.find(images, one.id) for one in images.all() if one.id not in ids]
    return [known.view(images, one) for one in (*named, *others)]


def by_word(settings: Settings, workspace: str, word: str) -> ImageView:
    """The image of a name of a workspace, an id or the beginning of one; its lock is kept. A word
    of a client is never taken for a file.
    """
    from danlu.images import known

    images = store(settings)
    return known.view(images, known.find(images, word, workspace))


def check_default(settings: Settings) -> None:
    """Invalid where the image of jobs that name none is not there: every job would be refused."""
    if not settings.default_image:
        return
    try:
        by_word(settings, "", settings.default_image)
    except Missing:
        expected = f"one of {', '.join(one.name for one in named(settings, ''))}, or an image's id"
        raise Invalid(
            "setting-value",
            key="default_image",
            source="the settings",
            value=settings.default_image,
            expected=expected,
        ) from None


def find(settings: Settings, word: str) -> ImageView:
    """The image of a name, an id, the beginning of one, or a lock's file, which is then kept."""
    from danlu.images import known, lock

    images = store(settings)
    if word.endswith(".json") and os.path.isfile(word):  # noqa: PTH113 -- a word, perhaps a path
        word = images.keep(lock.parse(_text(word)))
    return known.view(images, known.find(images, word))


def realise(settings: Settings, word: str, say: Say) -> ImageView:
    """An image with its environment, made if need be."""
    from danlu.images.realise import Making
    from danlu.images.realise import realise as make

    image = find(settings, word)
    making = Making(say=say, variables=tuple(os.environ.items()))
    make(store(settings), image.id, image.name, making)
    return find(settings, image.id)


def register(
    settings: Settings, workspace: str, name: str, text: str, description: str
) -> ImageView:
    """Keep a lock under a name of a workspace."""
    from danlu.images import known, lock

    images = store(settings)
    made = known.register(images, name, lock.parse(text), description, workspace)
    return known.view(images, made)


def freeze(
    settings: Settings,
    workspace: str,
    found: Installed,
    name: str,
    description: str,
    without: Sequence[str],
) -> Frozen:
    """Make an image of what was installed by hand, and keep it under a name of a workspace."""
    from danlu.images import freeze, known, lock, matrix
    from danlu.images.realise import Making

    images = store(settings)
    making = Making(variables=tuple(os.environ.items()))
    made = freeze.freeze(images, matrix.packaged(), found, name, making, without)
    known.register(images, name, lock.parse(made.lock), description, workspace)
    return made


def delete(settings: Settings, workspace: str, word: str) -> ImageView:
    """Give up an image that a workspace has registered: its name and, if nobody else has one for
    it, its environment, the latter first. What it was.
    """
    from danlu.images import known

    images = store(settings)
    image = known.find(images, word, workspace)
    shown = known.view(images, image)
    known.refuse_built_in(image)
    if image.workspace != workspace:
        raise Refused("image-not-yours", image=image.name)
    others = [one for one in known.every(images) if one.id == image.id]
    if shown.realised is not None and len(others) <= 1:
        images.remove(image.id)
        images.empty_trash()
    known.unregister(images, image)
    return shown


def remove(settings: Settings, image_id: str) -> int:
    """Remove an image's environment; how large it was."""
    images = store(settings)
    size = images.remove(image_id)
    images.empty_trash()
    return size


def verify(settings: Settings, image_id: str) -> list[Damage]:
    """What of an image's environment is not as it was made, every byte read."""
    from danlu.images import seal
    from danlu.images.store import digits

    images = store(settings)
    sealed = seal.load(images.part("seals") / f"{digits(image_id)}.json")
    return seal.check_all(images.environment(image_id), sealed)


def reference(settings: Settings, image_id: str) -> str:
    """How podman or Docker is asked for an image that was built here; empty where it was not."""
    from danlu.images import built

    return built.reference(store(settings), image_id)


def verification(settings: Settings, spec: JobSpec) -> Verification | None:
    """How the image of a job was verified on its flavor, with this machine's driver."""
    from danlu.images import built, verified
    from danlu.images.verify import VENV
    from danlu.node.gpu import loaded_driver

    found, made = store(settings), VENV
    if settings.engine == "container":
        made = built.reference(found, spec.image)
    return verified.find(found, spec.image, made, spec.flavor, loaded_driver())


def verifications(settings: Settings, image_id: str) -> list[Verification]:
    """All reports about an image on this machine, the latest first."""
    from danlu.images import verified

    return verified.every(store(settings), image_id)


def holes(settings: Settings, image_id: str) -> list[Advisory]:
    """The known holes of an image's packages."""
    from danlu.images import advisories

    wheels = store(settings).lock(image_id).wheels
    return [Advisory(**one) for one in advisories.against({w.name: w.version for w in wheels})]


def collect(
    settings: Settings, *, unused_for_s: float | None, budget: int | None, dry_run: bool
) -> Freed:
    """Free what images take that nobody uses."""
    from danlu.images import gc

    return gc.collect(store(settings), unused_for_s=unused_for_s, budget=budget, dry_run=dry_run)


def usage(settings: Settings) -> int:
    """The bytes on disk of all images and their cache."""
    from danlu.images.store import usage as count

    return count(root(settings))


def lock(
    settings: Settings, file: str, backend: str, environ: Mapping[str, str]
) -> tuple[str, str, int, str]:
    """The lock of a definition's file or of a built-in definition: a name for its file, the image's
    id, how many packages it has, and its text. `backend` may be empty where there is one.
    """
    from danlu.images import definition, lock, locking, matrix
    from danlu.images.uv import Sources, Uv

    if file.endswith(definition.SUFFIX):
        one = definition.parse(_text(file))
    else:
        found = {one.id: one for one in definition.built_in()}
        if file not in found:
            expected = f"one of {', '.join(found)}"
            raise Invalid("field-value", field="definition", value=file, expected=expected)
        one = found[file]
    if not backend and len(one.backends) > 1:
        backends = ", ".join(one.backends)
        raise Invalid("field-missing", field="--backend", remedy=f"name one of {backends}")
    tool = Uv(store(settings).part("cache"), Sources.of(environ))
    made = locking.make(matrix.packaged(), one, backend or one.backends[0], tool)
    name, image_id = lock.file_name(one, made.backend), lock.image_id(made)
    return name, image_id, len(made.wheels), lock.canonical(made)


def _text(file: str) -> str:
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        detail = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Invalid("image-file-unreadable", path=file, detail=detail) from error
