"""Images of this machine as container images, as the command line uses them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import danlu
from danlu.model.errors import Refused
from danlu.settings import Settings
from danlu.wiring import images

if TYPE_CHECKING:
    from danlu.images.known import Image
    from danlu.images.oci.builder import Builder
    from danlu.images.realise import Say
    from danlu.model.image import Built


def build(
    settings: Settings, word: str, base: str, apt_sources: str, say: Say, *, fresh: bool
) -> Built:
    """Build the container image of an image."""
    from danlu.images.oci import build as oci
    from danlu.images.realise import Making

    wish = oci.Wish(
        base or settings.image_base, apt_sources or settings.image_apt_sources, fresh=fresh
    )
    making = Making(say=say, variables=tuple(os.environ.items()))
    return oci.build(
        images.store(settings), _image(settings, word), _builder(settings), wish, making
    )


def push(settings: Settings, word: str, reference: str, *, insecure: bool) -> Built:
    """Send a built image to a registry, under another name there."""
    from danlu.model.rules import image_reference

    image_reference("reference", reference)
    made, builder = _built(settings, word)
    builder.push(made.oci_id, reference, insecure=insecure)
    return made


def save(settings: Settings, word: str, file: Path) -> Built:
    """Write a built image to a file that is not there yet."""
    made, builder = _built(settings, word)
    if file.exists():
        raise Refused("image-file-exists", path=file)
    builder.save(made.reference, file)
    return made


def load(settings: Settings, file: Path) -> Built:
    """Take in an image that was saved elsewhere."""
    from danlu.images.oci import build as oci

    return oci.load(images.store(settings), file, _builder(settings))


def sbom(settings: Settings, word: str) -> str:
    """The bill of materials of an image, with what was built of it here."""
    from danlu.images import built
    from danlu.images.sbom import cyclonedx

    image = _image(settings, word)
    made = built.find(images.store(settings), image.id)
    return cyclonedx(image, made, version=danlu.__version__)


def _built(settings: Settings, word: str) -> tuple[Built, Builder]:
    from danlu.images.oci import build as oci

    builder = _builder(settings)
    return oci.need(images.store(settings), _image(settings, word), builder), builder


def _image(settings: Settings, word: str) -> Image:
    from danlu.images import known

    return known.find(images.store(settings), images.find(settings, word).id)


def _builder(settings: Settings) -> Builder:
    from danlu.images.oci import builder

    return builder.find(settings.image_builder)
