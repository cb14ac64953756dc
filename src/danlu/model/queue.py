"""Who is next, where it goes, and why the others wait. Pure: no clock, no I/O.

Order is strict: priority (3 before 1), then age, then the sequence of submission. A gang gets
all its tasks or none. While the head cannot start, a later job may (backfill) only if that
cannot delay the head whenever any of the running jobs ends: it may take nothing of what the head
lacks on a node, and must leave there what the head has enough of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from danlu.model.attempt import Placement
from danlu.model.resources import Offer, Shape, size

SHORT_ID = 8
"""So much of a job's id names it to a person."""
BACKFILL_DEPTH = 100
"""How many jobs behind a blocked head are looked at in one pass."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A queued attempt as the scheduler sees it."""

    job_id: str
    priority: int
    created_at: int
    sequence: int
    shape: Shape
    nodes: int
    avoid: frozenset[str] = frozenset()
    """Nodes that are not for it."""

    @property
    def order(self) -> tuple[int, int, int]:
        """Sorts the queue: smaller is earlier."""
        return (-self.priority, self.created_at, self.sequence)


@dataclass(frozen=True, slots=True)
class Grant:
    """A waiting job and the places its tasks get."""

    job_id: str
    places: tuple[Placement, ...]


def take(offer: Offer, places: Iterable[Placement]) -> Offer:
    """What is left of `offer` when those of `places` that lie on its node are held."""
    for place in places:
        if place.node == offer.node:
            offer = offer.without(place.cpus, place.memory_bytes, place.gpus)
    return offer


def free(totals: Sequence[Offer], held: Iterable[Placement]) -> list[Offer]:
    """The free part of each node, derived from what is held; never counted up and down."""
    by_node: dict[str, list[Placement]] = {}
    for place in held:
        by_node.setdefault(place.node, []).append(place)
    return [take(offer, by_node.get(offer.node, ())) for offer in totals]


def fit(waiting: Waiting, offers: Sequence[Offer]) -> tuple[Placement, ...] | None:
    """Places for all tasks of `waiting`, the emptiest node first, or None."""
    places: list[Placement] = []
    left = list(offers)
    for task in range(waiting.nodes):
        fitting = [
            i
            for i, offer in enumerate(left)
            if offer.node not in waiting.avoid and offer.holds(waiting.shape)
        ]
        if not fitting:
            return None
        best = max(fitting, key=lambda i: (left[i].holds(waiting.shape), -i))
        place = _place(waiting.shape, left[best], task)
        left[best] = take(left[best], (place,))
        places.append(place)
    return tuple(places)


def ever_fits(
    waiting: Waiting, totals: Sequence[Offer], avoid: frozenset[str] = frozenset()
) -> bool:
    """Whether nodes that are neither `avoid` nor avoided already could ever hold all tasks."""
    out = waiting.avoid | avoid
    holds = sum(offer.holds(waiting.shape) for offer in totals if offer.node not in out)
    return holds >= waiting.nodes


def grant(queue: Sequence[Waiting], offers: Sequence[Offer]) -> list[Grant]:
    """One scheduling pass over `queue`, already in order, and the free `offers`."""
    grants: list[Grant] = []
    left = list(offers)
    head: Waiting | None = None
    looked = 0
    for waiting in queue:
        if head is not None:
            looked += 1
            if looked > BACKFILL_DEPTH:
                break
        usable = left if head is None else [_beside(offer, head) for offer in left]
        places = fit(waiting, usable)
        if places is None:
            head = head or waiting
            continue
        left = [take(offer, places) for offer in left]
        grants.append(Grant(waiting.job_id, places))
    return grants


def _beside(offer: Offer, head: Waiting) -> Offer:
    """What a later job may use of `offer` without ever delaying `head`."""
    need = head.shape
    tasks = max(1, min(head.nodes, offer.holds(need)))
    matching = offer.matching(need)
    short_cpus = offer.cpus < need.cpus
    short_memory = offer.memory_bytes < need.memory_bytes
    short_gpus = len(matching) < need.gpus
    wanted = {gpu.uuid for gpu in matching} if need.gpus else set()
    spare = len(matching) - need.gpus * tasks
    keep = wanted if short_gpus or spare <= 0 else {gpu.uuid for gpu in matching[spare:]}
    return Offer(
        offer.node,
        0 if short_cpus else max(0, offer.cpus - need.cpus * tasks),
        0 if short_memory else max(0, offer.memory_bytes - need.memory_bytes * tasks),
        tuple(gpu for gpu in offer.gpus if gpu.uuid not in keep),
    )


def _place(shape: Shape, offer: Offer, task: int) -> Placement:
    gpus = tuple(gpu.uuid for gpu in offer.matching(shape)[: shape.gpus])
    return Placement(task, offer.node, shape.cpus, shape.memory_bytes, gpus)


@dataclass(frozen=True, slots=True)
class Why:
    """Why a job waits: the key of a text in `texts.reasons`, its values, and the position."""

    key: str
    position: int
    params: Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Line:
    """Where a waiting job stands: itself, the first of the queue, and its position from 1."""

    me: Waiting
    head: Waiting
    position: int


def why(line: Line, totals: Sequence[Offer], held: Mapping[str, Sequence[Placement]]) -> Why:
    """Explain why a job waits. `held` maps each job that holds a place to its placements."""
    offers = free(totals, [place for places in held.values() for place in places])
    own = _lack(line.me, offers, totals, held)
    if own is None and line.position > 1:
        head = line.head
        return Why("holding", line.position, {"head": head.job_id, "needs": _needs(head)})
    key, params = own or ("waiting-placing", {})
    return Why(key, line.position, params)


def _lack(
    waiting: Waiting,
    offers: Sequence[Offer],
    totals: Sequence[Offer],
    held: Mapping[str, Sequence[Placement]],
) -> tuple[str, dict[str, str | int]] | None:
    """What `waiting` lacks now, or None if it fits."""
    shape = waiting.shape
    offers = [offer for offer in offers if offer.node not in waiting.avoid]
    fits = sum(offer.holds(shape) for offer in offers)
    if fits >= waiting.nodes:
        return None
    if not ever_fits(waiting, totals):
        return "waiting-no-node", {"needs": _needs(waiting)}
    holders = (
        ", ".join(sorted(job_id[:SHORT_ID] for job_id, places in held.items() if places)) or "?"
    )
    if waiting.nodes > 1:
        return "waiting-nodes", {
            "nodes": waiting.nodes,
            "needs": shape.describe(),
            "fit": fits,
            "holders": holders,
        }
    best = max(offers, key=lambda offer: (_closeness(offer, shape), offer.node))
    needs, has = _short(best, shape)
    return "waiting-resource", {"needs": needs, "free": has, "holders": holders}


def _closeness(offer: Offer, shape: Shape) -> int:
    return (
        (offer.cpus >= shape.cpus)
        + (offer.memory_bytes >= shape.memory_bytes)
        + (len(offer.matching(shape)) >= shape.gpus)
    )


def _short(offer: Offer, shape: Shape) -> tuple[str, str]:
    """The resources that are short, as `needs` and `free` for people."""
    needs: list[str] = []
    has: list[str] = []
    if offer.cpus < shape.cpus:
        needs.append(f"{shape.cpus} CPU")
        has.append(f"{max(0, offer.cpus)} CPU")
    if offer.memory_bytes < shape.memory_bytes:
        needs.append(size(shape.memory_bytes))
        has.append(size(max(0, offer.memory_bytes)))
    if len(offer.matching(shape)) < shape.gpus:
        model = shape.gpu_model or "GPU"
        needs.append(f"{shape.gpus} × {model}")
        has.append(f"{len(offer.matching(shape))} × {model}")
    return " + ".join(needs), " + ".join(has)


def _needs(waiting: Waiting) -> str:
    shape = waiting.shape.describe()
    return f"{waiting.nodes} × ({shape})" if waiting.nodes > 1 else shape
