"""Queue, places, state machine and retries under everything that can happen, seed by seed.

SIM_SEEDS=20000 pytest tests/flow/test_simulation.py    that many seeds
SIM_SEED=17 pytest tests/flow/test_simulation.py        that one again
"""

from __future__ import annotations

import os

import pytest

from tests.flow.simulation import World

FEW = 150
BLOCK = 100
SEEDS = int(os.environ.get("SIM_SEEDS", FEW))
ONE = os.environ.get("SIM_SEED")
FOUND: tuple[int, ...] = ()
"""Seeds that once showed a fault."""


def lived(seed: int) -> World:
    world = World(seed)
    try:
        world.live()
    except BaseException as error:
        error.add_note(f"again with: SIM_SEED={seed} pytest {__file__}")
        raise
    return world


def blocks() -> list[tuple[int, ...]]:
    """The seeds, in parts that each fit into a test's time."""
    if ONE:
        return [(int(ONE),)]
    seeds = (*FOUND, *range(SEEDS))
    return [seeds[at : at + BLOCK] for at in range(0, len(seeds), BLOCK)]


@pytest.mark.parametrize("seeds", blocks(), ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_the_invariants_hold_for_every_seed(seeds: tuple[int, ...]) -> None:
    for seed in seeds:
        lived(seed)


@pytest.mark.skipif(ONE is not None, reason="one seed says nothing about all")
def test_a_seed_is_one_life_and_lives_are_various() -> None:
    """What is replayed is what happened; and the lives hold what they are meant to try."""
    for seed in (3, 77):
        first, second = lived(seed), lived(seed)
        assert first.disk.rows == second.disk.rows
        assert first.begun == second.begun
    worlds = [lived(seed) for seed in range(60)]
    rows = [row for world in worlds for row in world.disk.rows.values()]
    assert any(len(row.attempts) > 3 for row in rows)
    assert {one.state.value for row in rows for one in row.attempts} == {
        "succeeded", "failed", "cancelled", "lost"
    }  # fmt: skip
    reasons = {one.reason.code.value for row in rows for one in row.attempts if one.reason}
    assert len(reasons) > 9
