"""The state machine as data."""

from __future__ import annotations

import pytest

from danlu.model.attempt import FINAL, HOLDING, LIVE, MOVES, Event, State, after, diagram, sources


def test_every_state_but_the_final_ones_can_be_left() -> None:
    assert {state for state, _ in MOVES} == LIVE
    assert {State.SUCCEEDED, State.FAILED, State.CANCELLED, State.LOST} == FINAL


def test_every_state_is_reached_from_queued() -> None:
    reached = {State.QUEUED}
    while True:
        further = {to for (state, _), to in MOVES.items() if state in reached} - reached
        if not further:
            break
        reached |= further
    assert reached == set(State)


def test_every_live_state_reaches_an_end() -> None:
    ends = set(FINAL)
    while True:
        further = {state for (state, _), to in MOVES.items() if to in ends} - ends
        if not further:
            break
        ends |= further
    assert ends == set(State)


@pytest.mark.parametrize("state", sorted(FINAL))
@pytest.mark.parametrize("event", Event)
def test_nothing_leaves_a_final_state(state: State, event: Event) -> None:
    assert after(state, event) is None


def test_a_stop_is_possible_from_every_state_in_which_something_could_run() -> None:
    assert set(sources(Event.STOP)) == LIVE - {State.STOPPING, State.COLLECTING}


def test_places_are_held_by_everything_live_that_was_placed() -> None:
    assert LIVE - {State.QUEUED} == HOLDING


def test_the_diagram_names_every_move() -> None:
    table = diagram()
    for (state, event), to in MOVES.items():
        row = next(line for line in table.splitlines() if line.startswith(f"| {state} |"))
        assert f"{event} → {to}" in row
