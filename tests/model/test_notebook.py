"""The states of a notebook, and what is counted of it."""

from __future__ import annotations

import pytest

from danlu.model.notebook import (
    CHANGEABLE,
    FINAL,
    LIVE,
    MOVES,
    STARTS,
    Event,
    Lease,
    Notebook,
    NotebookSpec,
    State,
    after,
    diagram,
    lab_token,
)


def test_every_state_can_be_reached_and_only_deleted_is_final() -> None:
    reached = {State.CREATING}
    while more := {to for (source, _), to in MOVES.items() if source in reached} - reached:
        reached |= more

    assert reached == set(State)
    assert frozenset({State.DELETED}) == FINAL


def test_whatever_ends_it_a_notebook_comes_to_rest() -> None:
    """From every state in which something runs, the end of its job leads out of it."""
    for state in LIVE - {State.DELETING}:
        for event in (Event.ENDED, Event.FAILED):
            reached = after(state, event)
            assert reached is not None
            assert reached not in LIVE


@pytest.mark.parametrize("state", sorted(set(State) - FINAL - {State.DELETING}))
def test_every_notebook_can_be_deleted(state: State) -> None:
    assert after(state, Event.DELETE) is State.DELETING


def test_a_notebook_at_rest_can_be_started_and_changed() -> None:
    assert all(after(state, Event.START) is State.STARTING for state in CHANGEABLE)
    assert all(after(state, Event.START) is None for state in LIVE)
    assert all(after(state, Event.READY) is State.RUNNING for state in STARTS)


def test_the_diagram_has_every_move() -> None:
    table = diagram()

    assert all(f"{event} → {to}" in table for (_, event), to in MOVES.items())


def test_only_running_is_metered() -> None:
    spec = NotebookSpec("n")
    waits = Notebook("i", "w", "u", spec, State.STARTING, 0, 0, ran_ms=5000)
    runs = Notebook("i", "w", "u", spec, State.RUNNING, 0, 0, ran_ms=5000, ready_at=10_000)

    assert waits.metered_ms(99_000) == 5000
    assert runs.metered_ms(12_000) == 7000
    assert runs.metered_ms(9_000) == 5000  # the clock was set back


def test_a_lease_without_a_duration_does_not_end() -> None:
    assert Lease().ends_at is None
    assert Lease(3_600_000, 1000).ends_at == 3_601_000


def test_the_token_of_lab_is_not_the_token_of_the_attempt() -> None:
    one, other = lab_token("a" * 32), lab_token("b" * 32)

    assert one != other
    assert one == lab_token("a" * 32)
    assert len(one) == 64
