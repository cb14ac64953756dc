"""What a training script's log tells of its progress: steps, epochs and losses. Pure."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from collections.abc import Iterable, Sequence

    Position = tuple[int, int]
    """Epoch and step, 0 where the log names none: the order in which work is done."""

_NUMBER = r"\s*[:=#]?\s*\[?\s*(\d{1,12})"
STEP = re.compile(rf"\b(?:global[_ ]?)?(?:step|iter|iteration|batch)s?\b{_NUMBER}", re.IGNORECASE)
EPOCH = re.compile(rf"\bepochs?\b{_NUMBER}", re.IGNORECASE)
LOSS = re.compile(
    r"\b(?:train[_ ]?)?loss\b\s*[:=]?\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)", re.IGNORECASE
)


class Point:
    """A line that tells where the script is. `loss` is None where the line names none."""

    __slots__ = ("loss", "position")

    def __init__(self, position: Position, loss: float | None) -> None:
        self.position = position
        self.loss = loss


class Growing:
    """The points of a log that comes piece by piece; a progress bar counts as many lines."""

    def __init__(self) -> None:
        self.points: list[Point] = []
        self._line = ""

    def take(self, text: str) -> list[Point]:
        """The points of the lines that this piece completes."""
        *lines, self._line = re.split(r"[\r\n]", self._line + text)
        found = [point for line in lines if (point := _point(line))]
        self.points += found
        return found

    def end(self) -> list[Point]:
        """All points: the last line ends here too."""
        self.take("\n")
        return self.points


def points(text: str) -> list[Point]:
    """The points of a whole log, in its order."""
    log = Growing()
    log.take(text)
    return log.end()


def _point(line: str) -> Point | None:
    step, epoch, loss = STEP.search(line), EPOCH.search(line), LOSS.search(line)
    if not (step or epoch):
        return None
    position = (int(epoch[1]) if epoch else 0, int(step[1]) if step else 0)
    return Point(position, float(loss[1]) if loss else None)


def repeated(attempts: Sequence[Sequence[Point]]) -> int:
    """How many positions were worked on again by a later attempt."""
    seen: set[Position] = set()
    count = 0
    for attempt in attempts:
        own = {point.position for point in attempt}
        count += len(own & seen)
        seen |= own
    return count


def resumed(reference: Sequence[Point], attempts: Sequence[Sequence[Point]]) -> bool | None:
    """Whether every attempt but the first went on instead of beginning anew; None if the log does
    not tell, or there was nothing to go on from.
    """
    told = [attempt for attempt in attempts if attempt]
    if not reference or len(told) < 2 or len(told) != len(attempts):
        return None
    first = min(point.position for point in reference)
    return all(attempt[0].position > first for attempt in attempts[1:])


def gap(
    reference: Iterable[Point], attempts: Iterable[Iterable[Point]]
) -> tuple[int, float, float] | None:
    """How far the losses are from the reference's: over how many positions they could be compared,
    the largest difference, and that as a share of the reference's range. None without losses.
    """
    ours = {p.position: p.loss for one in attempts for p in one if p.loss is not None}
    theirs = {p.position: p.loss for p in reference if p.loss is not None}
    common = ours.keys() & theirs.keys()
    if not common:
        return None
    largest = max(abs(ours[one] - theirs[one]) for one in common)
    wide = max(theirs.values()) - min(theirs.values())
    return len(common), largest, largest / wide if wide else float(largest > 0)
