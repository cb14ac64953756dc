"""The nearest changes that would make a refused build, or another in its place, do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from danlu.images import rules
from danlu.images.matrix import Matrix
from danlu.images.rules import Broken, Candidate, Machine
from danlu.images.versions import numbers, python_name, series
from danlu.model.image import CHANNELS, CPU, Change, Note, Rule

MOST_BUILDS = 4


class Nearest:
    """Finds changes for one machine. What does there at all is looked up once."""

    def __init__(self, matrix: Matrix, machine: Machine, everything: Sequence[Candidate]) -> None:
        self._matrix = matrix
        self._machine = machine
        self._everything = everything
        self._found: dict[str, tuple[Change, ...]] = {}

    @cached_property
    def _fitting(self) -> list[Candidate]:
        """What does on the machine, from wherever it comes."""
        ask = self._machine.ask
        anywhere = self._machine.changed(replace(ask, channels=CHANNELS))
        fitting = [
            one for one in self._everything if rules.broken(self._matrix, anywhere, one) is None
        ]
        if self._machine.cards or ask.driver or ask.cuda not in ("", CPU):
            return [one for one in fitting if one.build.tag != CPU]
        return fitting

    def fix(self, candidate: Candidate, found: Broken) -> tuple[tuple[Change, ...], Note | None]:
        """What would make the rule hold, the nearest first; advice where no change can be named."""
        if found.rule is Rule.CHANNEL:
            return (Change(channel=candidate.build.channel),), None
        own = self._of_the_machine(candidate, found)
        others = self.builds(candidate.release.torch)
        changes = (*own, *others)
        if found.rule is Rule.GPU and not others:
            changes = self._fewer_gpus(candidate)
        if found.rule is Rule.UNVERIFIED and any(card.sm is None for card in self._machine.cards):
            return changes, Note("image-advice-capability")
        if not changes:
            together = found.rule is Rule.GPU and len(self._machine.cards) > 1
            return (), Note("image-advice-split" if together else "image-advice-none")
        return changes, None

    def builds(self, torch: str) -> tuple[Change, ...]:
        """Other builds that do on this machine: of the release, then of the nearest one."""
        if torch not in self._found:
            self._found[torch] = self._builds(torch)
        return self._found[torch]

    def _builds(self, torch: str) -> tuple[Change, ...]:
        ask = self._machine.ask
        same = [one for one in self._fitting if torch in (one.release.torch, _series(one))]
        allowed = [one for one in self._fitting if one.build.channel in ask.channels]
        chosen = sorted(same, key=self._by_nearness)[:MOST_BUILDS]
        if not any(one in allowed for one in chosen):
            chosen += self._nearest_release(allowed, torch)
        if ask.cuda:
            tagged = [one for one in self._fitting if one.build.tag == ask.cuda]
            chosen += self._nearest_release(tagged, torch)
        return tuple(dict.fromkeys(self._to(one) for one in chosen))

    def _of_the_machine(self, candidate: Candidate, found: Broken) -> tuple[Change, ...]:
        if found.rule is Rule.DRIVER:
            return (Change(driver=found.needs),)
        if found.rule is Rule.GLIBC:
            return (Change(glibc=found.needs),)
        if found.rule is Rule.ARCH:
            return (Change(arch=found.needs),)
        if found.rule is Rule.PYTHON:
            pythons = candidate.release.pythons
            nearest = min(pythons, key=lambda tag: _distance(tag, self._machine.python))
            return (Change(python=python_name(nearest)),)
        return ()

    def _fewer_gpus(self, candidate: Candidate) -> tuple[Change, ...]:
        """No build does for all GPUs together: those that this one does for."""
        runs = [
            card.name
            for card in self._machine.cards
            if rules.kernels_for(candidate.build, card.sm or 0) is not None
        ]
        return (Change(gpus=tuple(runs)),) if runs else ()

    def _by_nearness(self, one: Candidate) -> tuple[bool, list[int]]:
        """Allowed channels first, then the highest CUDA."""
        outside = one.build.channel not in self._machine.ask.channels
        return outside, [-part for part in numbers(one.cuda or "0")]

    def _nearest_release(self, among: Iterable[Candidate], torch: str) -> list[Candidate]:
        """One of the release that is the fewest releases away; of two, the older."""
        order = [release.torch for release in self._matrix.releases]
        at = next((i for i, one in enumerate(order) if torch in (one, series(one))), None)
        if at is None:
            newer = not torch or numbers(torch) > self._matrix.releases[-1].order
            at = len(order) - 1 if newer else 0
        away = sorted(
            among,
            key=lambda one: (
                abs(order.index(one.release.torch) - at),
                one.release.order,
                self._by_nearness(one),
            ),
        )
        return away[:1]

    def _to(self, one: Candidate) -> Change:
        """The change of the ask that leads to `one`."""
        pinned = self._machine.ask.torch in (one.release.torch, _series(one))
        outside = one.build.channel not in self._machine.ask.channels
        return Change(
            torch="" if pinned else one.release.torch,
            cuda=one.build.tag,
            channel=one.build.channel if outside else "",
        )


def _series(one: Candidate) -> str:
    return series(one.release.torch)


def _distance(tag: str, wanted: str) -> tuple[bool, int]:
    """How far a Python is from the wanted one; free-threaded ones are far from the others."""
    minor, other = (int(one[1:].rstrip("t")) for one in (tag, wanted))
    return tag.endswith("t") != wanted.endswith("t"), abs(minor - other)
