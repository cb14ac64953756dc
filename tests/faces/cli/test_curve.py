from __future__ import annotations

import pytest

from danlu.faces.cli.curve import Growing, Point, gap, points, repeated, resumed


@pytest.mark.parametrize(
    ("line", "position", "loss"),
    [
        ("step=12 loss=0.5", (0, 12), 0.5),
        ("step 12 of 100, loss=0.250000", (0, 12), 0.25),
        ("Epoch: 3 Step: 7 loss: 1.5e-3", (3, 7), 0.0015),
        ("epoch [4/10] train_loss 0.75", (4, 0), 0.75),
        ("global_step 99", (0, 99), None),
        ("iter #5 Loss = 2", (0, 5), 2.0),
    ],
)
def test_a_line_tells_where_the_script_is(
    line: str, position: tuple[int, int], loss: float | None
) -> None:
    (found,) = points(f"starting\n{line}\n")
    assert (found.position, found.loss) == (position, loss)


@pytest.mark.parametrize("line", ["loss=0.5", "footstep 3", "steps", "step=x", ""])
def test_other_lines_tell_nothing(line: str) -> None:
    assert points(line) == []


def test_a_progress_bar_is_many_lines() -> None:
    assert [one.position[1] for one in points("step 1\rstep 2\r\nstep 3")] == [1, 2, 3]


def test_a_log_in_pieces_tells_the_same() -> None:
    text = "begin\nstep=12 loss=0.5\r\nepoch 2 step=134\nstep=5"
    for size in range(1, len(text) + 1):
        log = Growing()
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        told = [point for piece in pieces for point in log.take(piece)]

        assert [one.position for one in told] == [(0, 12), (2, 134)], "no half line counts"
        assert [one.position for one in log.end()] == [(0, 12), (2, 134), (0, 5)]


def run(*steps: int, loss: float = 1.0) -> list[Point]:
    return [Point((0, step), loss / (step + 1)) for step in steps]


CALM = run(*range(6))


def test_an_attempt_that_goes_on_has_resumed() -> None:
    attempts = [run(0, 1, 2), run(2, 3), run(4, 5)]
    assert resumed(CALM, attempts) is True
    assert repeated(attempts) == 1
    assert gap(CALM, attempts) == (6, 0.0, 0.0)


def test_an_attempt_that_begins_anew_has_not() -> None:
    attempts = [run(0, 1, 2), run(*range(6), loss=2.0)]
    assert resumed(CALM, attempts) is False
    assert repeated(attempts) == 3
    found = gap(CALM, attempts)
    assert found is not None
    assert found[:2] == (6, 1.0)


@pytest.mark.parametrize("attempts", [[run(0, 1)], [run(0), []], [[], []]])
def test_what_is_not_told_is_not_guessed(attempts: list[list[Point]]) -> None:
    assert resumed(CALM, attempts) is None
    assert resumed([], [run(0), run(1)]) is None


def test_without_losses_there_is_nothing_to_compare() -> None:
    assert gap([Point((0, 1), None)], [[Point((0, 1), 1.0)]]) is None
