"""Makes the container image of a lock, and takes one in that was made elsewhere."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from danlu.images import built, known
from danlu.images import lock as locks
from danlu.images.known import Image
from danlu.images.oci import layout, recipe
from danlu.images.oci.builder import Builder, Facts
from danlu.images.oci.recipe import Recipe
from danlu.images.realise import Making, realise
from danlu.images.store import SIGN, ImageStore, digits, now_ms
from danlu.model.errors import Invalid, Missing, PlatformError, Refused
from danlu.model.image import Built

LARGE, TOO_LARGE = 15 << 30, 30 << 30
"""ModelArts advises against the one, and refuses the other."""
PREFIX = "localhost/danlu"


@dataclass(frozen=True, slots=True)
class Wish:
    """How an image is to be built. Empty = as its definition and the machine say."""

    base: str = ""
    apt_sources: str = "snapshot"
    fresh: bool = False


def build(store: ImageStore, image: Image, builder: Builder, wish: Wish, making: Making) -> Built:
    """Build the container image of a lock from its environment, which is made if need be.

    Refused where the base is not the locked one, cannot be had, or breaks a rule of ModelArts'.
    """
    began = time.monotonic()
    found = recipe.of(image, wish.base, wish.apt_sources)
    base = _base(builder, found, image)
    realise(store, image.id, image.name, making)
    reference = f"{PREFIX}/{_repository(image.name)}:{digits(image.id)[:12]}"
    making.say("image-building", image=image.name, base=found.base)
    place = store.part("making") / f"{digits(image.id)}-{secrets.token_hex(4)}"
    try:
        with store.turn(image.id, making.check):
            # Links of files that are there: nobody can take the environment away meanwhile.
            parts = layout.lay_out(store.environment(image.id), image.lock, place)
        labels = {recipe.LABEL: image.id, recipe.NAME_LABEL: image.name}
        text = recipe.containerfile(image.lock, found, labels, parts)
        (place / "Containerfile").write_text(text, "utf-8")
        ca = making.sources.certificates
        ca = ca if ca and Path(ca).is_file() else ""
        oci_id = builder.build(place, base.id, reference, ca, fresh=wish.fresh)
    finally:
        store.discard(place)
    facts = builder.inspect(oci_id)
    if facts is None:
        raise Missing("image-not-built", image=image.name)
    _check(image, facts, making.say)
    record = _record(builder, image, facts, reference, found.base, base.id)
    record = replace(record, took_s=round(time.monotonic() - began, 3))
    built.save(store, record)
    making.say("image-built", image=image.name, reference=reference, took_s=f"{record.took_s:.1f}")
    return record


def load(store: ImageStore, file: Path, builder: Builder) -> Built:
    """Take in an image that was saved elsewhere: its lock is kept, under its own name if that is
    free. Refused where it is none of ours.
    """
    oci_id = builder.load(file)
    facts = builder.inspect(oci_id)
    if facts is None or recipe.LABEL not in facts.labels:
        raise Refused("image-not-ours", path=file)
    try:
        text = builder.read(oci_id, f"{recipe.PLACE}/lock.json").decode("utf-8")
        lock = locks.parse(text)
    except (UnicodeDecodeError, PlatformError) as error:
        raise Refused("image-not-ours", path=file) from error
    image_id = locks.image_id(lock)
    if image_id != facts.labels[recipe.LABEL]:
        raise Refused("image-not-ours", path=file)
    store.keep(lock)
    name = facts.labels.get(recipe.NAME_LABEL, "")
    with suppress(Refused, Invalid):
        known.register(store, name, lock)
    image = known.find(store, image_id)
    reference = f"{PREFIX}/{_repository(image.name)}:{digits(image_id)[:12]}"
    builder.tag(oci_id, reference)
    record = _record(builder, image, facts, reference, "", "")
    built.save(store, record)
    return record


def need(store: ImageStore, image: Image, builder: Builder) -> Built:
    """What was built of an image, if the builder still has it. Missing, with what to do."""
    record = built.find(store, image.id)
    if record is None or builder.inspect(record.oci_id) is None:
        raise Missing("image-not-built", image=image.name)
    return record


def _base(builder: Builder, wanted: Recipe, image: Image) -> Facts:
    """The base, which is had from its registry if it is not here."""
    found = builder.inspect(wanted.base)
    if found is None:
        builder.pull(wanted.base)
        found = builder.inspect(wanted.base)
    if found is None:
        raise Missing("image-base", base=wanted.base)
    locked = image.lock.base
    if locked and not any(one.endswith(locked) for one in (found.id, *found.digests)):
        raise Refused("image-other-base", image=image.name, base=wanted.base, needs=locked,
                      found=found.digests[0] if found.digests else found.id)  # fmt: skip
    return found


def _check(image: Image, facts: Facts, say: Callable[..., None]) -> None:
    """What ModelArts asks of an image of one's own. That it holds no driver is looked at while it
    is made.
    """
    if facts.size_bytes > TOO_LARGE:
        raise Refused("image-too-large", image=image.name, size=facts.size_bytes, limit=TOO_LARGE)
    if facts.size_bytes > LARGE:
        say("image-large", image=image.name, gib=f"{facts.size_bytes / (1 << 30):.1f}")
    user = f"{image.lock.runtime.uid}:{image.lock.runtime.gid}"
    if facts.user != user:
        raise Refused("image-other-user", image=image.name, found=facts.user or "root", needs=user)


def _record(
    builder: Builder, image: Image, facts: Facts, reference: str, base: str, base_id: str
) -> Built:
    system = builder.read(facts.id, f"{recipe.PLACE}/system").decode("utf-8", "replace")
    return Built(
        id=SIGN + digits(image.id),
        name=image.name,
        reference=reference,
        oci_id=facts.id,
        base=base,
        base_id=base_id,
        apt=tuple(line for line in system.splitlines() if re.fullmatch(r"[!-~]+=[!-~]+", line)),
        size_bytes=facts.size_bytes,
        builder=builder.version(),
        made_at=now_ms(),
        took_s=0.0,
    )


def _repository(name: str) -> str:
    """An image's name as one of a repository."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "image"
