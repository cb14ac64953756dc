"""What a job may ask for: flavors, and environments by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from danlu.model.errors import Invalid, Missing, Refused, Unavailable
from danlu.model.flavor import Flavor, default_of, of_machine
from danlu.model.image import ImageView
from danlu.model.job import EngineChoice
from danlu.model.resources import Offer, Shape
from danlu.model.rules import image_reference

DEFAULT = "default"
"""The id of the environment of jobs that name none."""


@dataclass(frozen=True, slots=True)
class Environment:
    """A place with a Python and packages in which jobs can run, as ModelArts' engines are.

    `directory` is its prefix; the interpreter is `bin/python` below it. An image's may not be there
    yet: it is made when a job wants it.
    """

    id: str
    directory: str
    python_version: str = ""
    torch_version: str = ""
    image: str = ""
    """The id of the image that it is, or will be, the environment of."""
    lab: bool = True
    """Whether JupyterLab is there, as far as can be seen without running it."""


def no_images(workspace: str, word: str) -> ImageView:  # noqa: ARG001 -- one form
    """For a platform that has none."""
    raise Missing("image-missing", image=word)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Flavors and environments. Both are asked for anew: a driver may be installed later.

    `configured` flavors stand beside those made from the machine and win over the same id;
    `default` names the flavor of a job that names none (empty = chosen by the machine).
    """

    capacity: Callable[[], Sequence[Offer]]
    environments: Callable[[str], Sequence[Environment]]
    """Those of a workspace."""
    configured: tuple[Flavor, ...] = ()
    default: str = ""
    takes_images: bool = False
    """Whether jobs run in images of any registry, and not in environments."""
    default_image: str = ""
    """The image of jobs that name none; empty = the default environment."""
    images: Callable[[str, str], ImageView] = no_images
    """The image of a workspace's name or an id; Missing where there is none."""

    def flavors(self) -> tuple[Flavor, ...]:
        """Every flavor, CPU first, small to large."""
        return tuple(_known(tuple(self.capacity()), self.configured).values())

    def flavor(self, flavor_id: str, nodes: int, field: str) -> Flavor:
        """The flavor by its id (empty = the default), or Invalid / Refused where it cannot be.

        Unavailable while no node answers that could have it. Refused when no set of nodes could
        ever hold `nodes` tasks of it, whatever runs now.
        """
        offers = tuple(self.capacity())
        by_id = _known(offers, self.configured)
        flavors = tuple(by_id.values())
        if not offers and (flavor_id or self.default) not in by_id:
            # Flavors are made from what nodes have: nothing is wrong with what was asked for.
            raise Unavailable("no-node-answers")
        wanted = flavor_id or self.default or default_of(flavors).id
        if wanted not in by_id:
            raise Invalid("flavor-unknown", field=field, value=wanted, flavors=_names(flavors))
        found = by_id[wanted]
        if sum(offer.holds(found.shape) for offer in offers) >= nodes:
            return found
        most = max((offer for offer in offers), key=lambda offer: offer.cpus, default=None)
        fitting = [
            flavor
            for flavor in flavors
            if sum(offer.holds(flavor.shape) for offer in offers) >= nodes
        ]
        raise Refused(
            "flavor-does-not-fit" if fitting else "flavor-never-fits",
            field=field,
            value=wanted,
            needs=found.shape.describe(),
            nodes=nodes,
            lacks="no node is up" if most is None else _has(most),
            flavors=_names(fitting),
        )

    def check(self, choice: EngineChoice, field: str, workspace: str) -> ImageView | None:
        """The image of ours that `choice` of a workspace means; None where it means an environment,
        one of a registry, or nothing (= the default). Invalid where there is no such thing here.
        """
        if self.takes_images:
            ours = self._built(choice, workspace)
            if ours is None:
                self._check_image(choice, field)
            return ours
        if choice.image_url:
            return self._image(choice.image_url, f"{field}.image_url", "image-unknown", workspace)
        name = choice.engine_id or choice.engine_name or self.default_image
        if not name or any(
            one.id == name and not one.image for one in self.environments(workspace)
        ):
            return None
        return self._image(name, field, "engine-unknown", workspace)

    def _image(self, word: str, field: str, key: str, workspace: str) -> ImageView:
        try:
            return self.images(workspace, word)
        except Missing:
            known = ", ".join(one.id for one in self.environments(workspace)) or "none"
            raise Invalid(key, field=field, value=word, engines=known) from None

    def _built(self, choice: EngineChoice, workspace: str) -> ImageView | None:
        """The image of ours that is meant, whose container image was built here; None where the
        words mean none. Missing, with what to do, where it was not built.
        """
        word = choice.image_url or choice.engine_id or choice.engine_name
        if not word:
            return None
        try:
            found = self.images(workspace, word)
        except Missing:
            return None
        if found.built is None:
            raise Missing("image-not-built", image=found.name)
        return found

    def _check_image(self, choice: EngineChoice, field: str) -> None:
        if choice.engine_id or choice.engine_name:
            raise Invalid(
                "field-unsupported",
                field=f"{field}.{'engine_id' if choice.engine_id else 'engine_name'}",
                remedy="jobs of this server run in containers; name an image with engine.image_url",
            )
        if not (choice.image_url or self.default_image):
            raise Invalid("image-unnamed", field=f"{field}.image_url")
        if choice.image_url:
            image_reference(f"{field}.image_url", choice.image_url)

    def environment(self, choice: EngineChoice) -> Environment | None:
        """The environment that `choice` names, or the default one; None where it is not here, or
        where jobs run in images.
        """
        if self.takes_images:
            return None
        name = choice.engine_id or choice.engine_name or DEFAULT
        return next((one for one in self.environments("") if one.id == name), None)


@functools.lru_cache(maxsize=32)
def _known(offers: tuple[Offer, ...], configured: tuple[Flavor, ...]) -> dict[str, Flavor]:
    """Flavors by id, in order. The same machines give the same ones, submit after submit."""
    by_id: dict[str, Flavor] = {}
    for offer in offers:
        for flavor in of_machine(offer):
            by_id.setdefault(flavor.id, flavor)
    by_id.update((flavor.id, flavor) for flavor in configured)
    ordered = sorted(
        by_id.values(),
        key=lambda flavor: (
            flavor.shape.gpus > 0,
            flavor.shape.gpu_model,
            flavor.shape.gpus,
            flavor.shape.cpus,
            flavor.id,
        ),
    )
    return {flavor.id: flavor for flavor in ordered}


def _names(flavors: Sequence[Flavor]) -> str:
    return ", ".join(flavor.id for flavor in flavors)


def _has(offer: Offer) -> str:
    models = {gpu.model for gpu in offer.gpus}
    shape = Shape(offer.cpus, offer.memory_bytes, len(offer.gpus), " or ".join(sorted(models)))
    return f"the largest node has {shape.describe()}"
