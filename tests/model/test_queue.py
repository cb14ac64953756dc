"""Order, gangs, backfill and reasons of the scheduler."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from danlu.model.attempt import Placement
from danlu.model.queue import Line, Waiting, fit, free, grant, take, why
from danlu.model.resources import GIB, Gpu, Offer, Shape

NODE = Offer("a", 8, 64 * GIB, tuple(Gpu(f"gpu-{i}", i, "V100", 32 * GIB) for i in range(4)))


def waiting(
    job: str, cpus: int = 1, gib: int = 1, gpus: int = 0, *, nodes: int = 1, priority: int = 1
) -> Waiting:
    number = int("".join(c for c in job if c.isdigit()) or 0)
    return Waiting(job, priority, number, number, Shape(cpus, gib * GIB, gpus), nodes)


def place(cpus: int, gib: int = 1, gpus: tuple[str, ...] = (), node: str = "a") -> Placement:
    return Placement(0, node, cpus, gib * GIB, gpus)


def ordered(*queue: Waiting) -> list[Waiting]:
    return sorted(queue, key=lambda item: item.order)


def test_priority_then_age_then_sequence() -> None:
    same_instant = [Waiting(f"j{i}", 1, 5, i, Shape(1, 1), 1) for i in (3, 1, 2)]
    urgent = Waiting("urgent", 3, 9, 9, Shape(1, 1), 1)
    order = [item.job_id for item in ordered(*same_instant, urgent)]
    assert order == ["urgent", "j1", "j2", "j3"], "(case 39)"


def test_a_gang_gets_all_its_tasks_or_none() -> None:
    """(case 34)"""
    assert fit(waiting("j1", cpus=3, nodes=3), [NODE]) is None
    places = fit(waiting("j1", cpus=4, nodes=2), [NODE])
    assert places is not None
    assert [p.task for p in places] == [0, 1]


def test_gpus_are_given_by_uuid_and_never_twice() -> None:
    places = fit(waiting("j1", gpus=2, nodes=2), [NODE])
    assert places is not None
    assert sorted(u for p in places for u in p.gpus) == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]


def test_a_gpu_of_another_model_does_not_count() -> None:
    shape = Shape(1, GIB, 1, "A100")
    assert fit(Waiting("j1", 1, 1, 1, shape, 1), [NODE]) is None


def test_backfill_takes_nothing_that_the_head_lacks() -> None:
    left = take(NODE, [place(6)])
    head, small = waiting("j1", cpus=4), waiting("j2", cpus=1)
    assert grant([head, small], [left]) == []


def test_backfill_uses_what_the_head_cannot_need() -> None:
    left = take(NODE, [place(1, gpus=("gpu-0", "gpu-1"))])
    head = waiting("j1", cpus=2, gpus=4)
    cpu_only = waiting("j2", cpus=5)
    too_large = waiting("j3", cpus=6)
    granted = grant([head, too_large, cpu_only], [left])
    assert [g.job_id for g in granted] == ["j2"]


def test_a_later_job_starts_beside_a_blocked_head_on_another_kind_of_node() -> None:
    bare = Offer("b", 4, 16 * GIB)
    left = [take(NODE, [place(1, gpus=("gpu-0",))]), bare]
    granted = grant([waiting("j1", cpus=1, gpus=4), waiting("j2", cpus=3)], left)
    assert [(g.job_id, g.places[0].node) for g in granted] == [("j2", "a")]


shapes = st.builds(
    Shape,
    cpus=st.integers(1, 8),
    memory_bytes=st.integers(1, 64).map(lambda gib: gib * GIB),
    gpus=st.integers(0, 4),
)
queues = st.lists(
    st.builds(
        lambda shape, nodes, priority: (shape, nodes, priority),
        shapes,
        st.integers(1, 3),
        st.integers(1, 3),
    ),
    max_size=8,
).map(lambda rows: ordered(*(Waiting(f"j{i}", p, i, i, s, n) for i, (s, n, p) in enumerate(rows))))


@given(queues, st.lists(shapes, max_size=4))
def test_no_pass_gives_out_more_than_there_is(queue: list[Waiting], running: list[Shape]) -> None:
    held = _held(running)
    granted = grant(queue, free([NODE], held))
    left = free([NODE], [*held, *(p for g in granted for p in g.places)])
    assert left[0].cpus >= 0
    assert left[0].memory_bytes >= 0
    uuids = [u for p in [*held, *(p for g in granted for p in g.places)] for u in p.gpus]
    assert len(uuids) == len(set(uuids))


@given(queues, st.lists(shapes, min_size=1, max_size=4))
def test_backfill_never_delays_the_head(queue: list[Waiting], running: list[Shape]) -> None:
    """Whichever of the running jobs end: if the head fits without the backfilled, it fits
    with them."""
    held = _held(running)
    granted = {g.job_id: g.places for g in grant(queue, free([NODE], held))}
    head = next((item for item in queue if item.job_id not in granted), None)
    if head is None:
        return
    before = [p for item in _before(queue, head) for p in granted[item.job_id]]
    behind = [p for job, places in granted.items() for p in places if p not in before]
    for count in range(len(held) + 1):
        for staying in itertools.combinations(held, count):
            without = fit(head, free([NODE], [*staying, *before]))
            with_them = fit(head, free([NODE], [*staying, *before, *behind]))
            assert without is None or with_them is not None


@given(queues)
def test_strict_order_holds_among_equal_needs(queue: list[Waiting]) -> None:
    same = [
        Waiting(w.job_id, w.priority, w.created_at, w.sequence, Shape(3, GIB), 1) for w in queue
    ]
    granted = [g.job_id for g in grant(same, [NODE])]
    assert granted == [w.job_id for w in same][: len(granted)]


def _before(queue: Sequence[Waiting], head: Waiting) -> list[Waiting]:
    return list(itertools.takewhile(lambda item: item is not head, queue))


def _held(running: Sequence[Shape]) -> list[Placement]:
    held: list[Placement] = []
    for i, shape in enumerate(running):
        places = fit(Waiting(f"r{i}", 1, 0, i, shape, 1), free([NODE], held))
        held.extend(places or ())
    return held


def line(*queue: Waiting) -> Line:
    """Where the last one of a queue stands."""
    return Line(queue[-1], queue[0], len(queue))


def test_the_reason_names_what_is_short_and_who_holds_it() -> None:
    found = why(line(waiting("j1", cpus=4)), [NODE], {"r1": [place(6)]})
    assert found.key == "waiting-resource"
    assert found.position == 1
    assert found.params == {"needs": "4 CPU", "free": "2 CPU", "holders": "r1"}


def test_a_job_that_fits_but_may_not_start_says_whom_it_would_delay() -> None:
    queue = [waiting("j1", cpus=4), waiting("j2", cpus=1)]
    found = why(line(*queue), [NODE], {"r1": [place(6)]})
    assert (found.key, found.position) == ("holding", 2)
    assert found.params["head"] == "j1"


def test_a_job_that_no_node_could_hold_says_so_at_once() -> None:
    """(case 40)"""
    found = why(line(waiting("j0"), waiting("j1", cpus=4)), [], {})
    assert found.key == "waiting-no-node"


def test_a_gang_says_how_many_of_its_tasks_fit() -> None:
    found = why(line(waiting("j1", cpus=4, nodes=2)), [NODE], {"r1": [place(3)]})
    assert (found.key, found.params["fit"]) == ("waiting-nodes", 1)


def test_what_is_free_is_derived_so_nothing_drifts() -> None:
    """(cases 44, 45)"""
    held = [place(2), place(3), place(1)]
    for i in range(len(held) + 1):
        assert free([NODE], held[:i])[0].cpus == 8 - sum(p.cpus for p in held[:i])
    assert free([NODE], [place(2, node="gone")]) == [NODE]


def test_amounts_beyond_64_bits_are_only_numbers() -> None:
    """(case 47)"""
    exbi = 1 << 70
    offer = Offer("big", 1, exbi)
    assert offer.holds(Shape(1, exbi)) == 1
    assert offer.holds(Shape(1, exbi + 1)) == 0
