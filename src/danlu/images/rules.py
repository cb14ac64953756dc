"""What a build has to meet on a machine, rule by rule; the first that it breaks is named."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from danlu.images.matrix import Build, GpuModel, Matrix, Release
from danlu.images.versions import (
    capability,
    cuda_version,
    numbers,
    plain,
    python_name,
    python_tag,
)
from danlu.model.errors import Invalid
from danlu.model.image import CHANNELS, CPU, INDEX, PYPI, Ask, Note, Rule

OLDEST_CUDNN_CARD = 75
CUDNN_WITHOUT_VOLTA = "9.11"
"""From this release on cuDNN has no kernels for cards below sm_75 (dev-discuss, ComfyUI#16438)."""

CARRIED = ("carried", "unverified", "experimental")
"""Words of a source's remark that make its row less than read and reported."""


class Card(NamedTuple):
    """A GPU of the ask. `sm` is None where its model is not in the matrix."""

    name: str
    sm: int | None
    row: GpuModel | None

    @property
    def shown(self) -> str:
        """For people: `V100 (sm_70)`."""
        if self.sm is None or self.name == capability(self.sm):
            return self.name
        return f"{self.name} ({capability(self.sm)})"


@dataclass(frozen=True, slots=True)
class Machine:
    """An ask, read: where a build has to run."""

    ask: Ask
    cards: tuple[Card, ...]
    python: str

    def changed(self, ask: Ask) -> Machine:
        """The same machine under an ask with another torch, CUDA or channel."""
        return replace(self, ask=ask)


class Candidate(NamedTuple):
    """One build of one release."""

    release: Release
    build: Build

    @property
    def cuda(self) -> str:
        """`12.8`; empty for a build without CUDA."""
        return cuda_version(self.build.tag)


class Broken(NamedTuple):
    """A rule that does not hold, what was found, and what it needs."""

    rule: Rule
    found: str
    needs: str


def read(matrix: Matrix, ask: Ask) -> Machine:
    """The ask with its versions checked and its GPUs looked up. Raises Invalid."""
    if ask.driver:
        plain("driver", ask.driver, "a driver's version such as 535.104.05, as nvidia-smi shows it")
    plain("glibc", ask.glibc, "a version of the C library such as 2.28")
    if not ask.channels or not set(ask.channels) <= set(CHANNELS):
        value = ", ".join(ask.channels)
        raise Invalid("field-value", field="channel", value=value, expected="pypi or index")
    found = [(name, matrix.capability(name)) for name in dict.fromkeys(ask.gpus)]
    cards = tuple(Card(name, *(one or (None, None))) for name, one in found)
    return Machine(ask, cards, python_tag(ask.python))


def broken(matrix: Matrix, machine: Machine, candidate: Candidate) -> Broken | None:
    """The first rule that the candidate breaks on this machine, or None."""
    for rule in RULES:
        found = rule(matrix, machine, candidate)
        if found is not None:
            return found
    return None


# ---------------------------------------------------------------------- the rules


def _python(_matrix: Matrix, machine: Machine, candidate: Candidate) -> Broken | None:
    pythons = candidate.release.pythons
    if machine.python in pythons:
        return None
    needs = " ".join(map(python_name, pythons))
    return Broken(Rule.PYTHON, python_name(machine.python), needs)


def _glibc(_matrix: Matrix, machine: Machine, candidate: Candidate) -> Broken | None:
    floor = candidate.release.glibc
    if numbers(machine.ask.glibc) >= numbers(floor):
        return None
    return Broken(Rule.GLIBC, machine.ask.glibc, floor)


def _arch(_matrix: Matrix, machine: Machine, candidate: Candidate) -> Broken | None:
    if machine.ask.arch == candidate.build.arch:
        return None
    return Broken(Rule.ARCH, machine.ask.arch, candidate.build.arch)


def _unverified(matrix: Matrix, machine: Machine, candidate: Candidate) -> Broken | None:
    """Nothing is guessed: neither a build's kernels, nor a GPU's capability, nor a driver floor."""
    build = candidate.build
    if build.sm is None:
        return Broken(Rule.UNVERIFIED, f"{build.tag} (sm_?)", "sm_NN")
    unknown = [card.name for card in machine.cards if card.sm is None]
    if unknown:
        return Broken(Rule.UNVERIFIED, f"{', '.join(unknown)} (sm_?)", "sm_NN")
    if candidate.cuda and candidate.cuda not in matrix.drivers:
        return Broken(Rule.UNVERIFIED, f"CUDA {candidate.cuda} (min_compat ?)", "min_compat")
    return None


def _gpu(_matrix: Matrix, machine: Machine, candidate: Candidate) -> Broken | None:
    build = candidate.build
    wrong = [card for card in machine.cards if kernels_for(build, card.sm or 0) is None]
    if not wrong:
        return None
    found = ", ".join(card.shown for card in wrong)
    if build.tag == CPU:
        return Broken(Rule.GPU, found, "cu*")
    needs = [capability(one) for one in build.sm or ()]
    return Broken(Rule.GPU, found, " ".join([*needs, *(f"{capability(p)}+PTX" for p in build.ptx)]))


def kernels_for(build: Build, sm: int) -> tuple[int, bool] | None:
    """The kernels of a build that a GPU runs, and whether they are compiled from PTX at start.

    Binary kernels run on their own major capability from their minor one up; PTX is compiled for
    any later capability. None where neither is there.
    """
    same = [one for one in build.sm or () if one // 10 == sm // 10 and one <= sm]
    if same:
        return max(same), False
    older = [one for one in build.ptx if one <= sm]
    return (max(older), True) if older else None


def _cudnn(_matrix: Matrix, machine: Machine, candidate: Candidate) -> Broken | None:
    version = candidate.build.cudnn
    old = [card for card in machine.cards if (card.sm or 0) < OLDEST_CUDNN_CARD]
    if not old or not version or numbers(version) < numbers(CUDNN_WITHOUT_VOLTA):
        return None
    found = f"{version}, {', '.join(card.shown for card in old)}"
    return Broken(Rule.CUDNN, found, f"< {CUDNN_WITHOUT_VOLTA}")


def _driver(matrix: Matrix, machine: Machine, candidate: Candidate) -> Broken | None:
    floor = driver_floor(matrix, machine, candidate)
    driver = machine.ask.driver
    if not driver or not floor or numbers(driver) >= numbers(floor):
        return None
    return Broken(Rule.DRIVER, driver, floor)


def driver_floor(matrix: Matrix, machine: Machine, candidate: Candidate) -> str:
    """The oldest driver on which the build works here; empty for a build without CUDA.

    Minor-version compatibility lets any driver of the major version load it, but compiling PTX
    takes a driver that knows the toolkit.
    """
    if not candidate.cuda:
        return ""
    row = matrix.drivers[candidate.cuda]
    kernels = [kernels_for(candidate.build, card.sm or 0) for card in machine.cards]
    from_ptx = any(one is not None and one[1] for one in kernels)
    return row.toolkit_driver if from_ptx else row.min_compat


def _channel(_matrix: Matrix, machine: Machine, candidate: Candidate) -> Broken | None:
    """Last, so that a build which is refused for its channel alone would do in every other way."""
    if candidate.build.channel in machine.ask.channels:
        return None
    return Broken(Rule.CHANNEL, " ".join(machine.ask.channels), candidate.build.channel)


RULES: tuple[Callable[[Matrix, Machine, Candidate], Broken | None], ...] = (
    _python, _glibc, _arch, _unverified, _gpu, _cudnn, _driver, _channel,
)  # fmt: skip


# ---------------------------------------------------------------------- what a build that does says


def reasons(matrix: Matrix, machine: Machine, candidate: Candidate) -> tuple[Note, ...]:
    """Why the candidate does on this machine, a sentence a rule."""
    ask, (release, build) = machine.ask, candidate
    notes = [
        Note("image-why-python", {"torch": release.torch, "python": python_name(machine.python)}),
        Note("image-why-glibc", {"needs": release.glibc, "found": ask.glibc}),
    ]
    for card in machine.cards:
        kernels = kernels_for(build, card.sm or 0)
        if kernels is None:
            continue
        sm, from_ptx = kernels
        key = "ptx" if from_ptx else "own" if sm == card.sm else "older"
        notes.append(Note(f"image-why-gpu-{key}", {"gpu": card.shown, "kernels": capability(sm)}))
    if candidate.cuda and ask.driver:
        floor = driver_floor(matrix, machine, candidate)
        values = {"found": ask.driver, "needs": floor, "cuda": candidate.cuda}
        notes.append(Note("image-why-driver", values))
    if build.channel == PYPI:
        notes.append(Note("image-why-pypi", {"torch": release.torch, "cuda": build.tag}))
    else:
        notes.append(Note("image-why-index", {"torch": release.torch, "cuda": build.tag}))
    return tuple(notes)


def warnings(matrix: Matrix, machine: Machine, candidate: Candidate) -> tuple[Note, ...]:
    """What is not refused, and should be known."""
    ask, (release, build) = machine.ask, candidate
    notes = []
    if candidate.cuda and not ask.driver:
        values = {"needs": driver_floor(matrix, machine, candidate), "cuda": candidate.cuda}
        notes.append(Note("image-warn-plan", values))
    if candidate.cuda and not machine.cards:
        notes.append(Note("image-warn-no-gpu"))
    if ask.driver and not full_features(matrix, machine, candidate):
        full = matrix.drivers[candidate.cuda].toolkit_driver
        values = {"found": ask.driver, "full": full, "cuda": candidate.cuda}
        notes.append(Note("image-warn-toolkit", values))
    guessed = [card.shown for card in machine.cards if card.row is None or card.row.by_rule]
    notes += [Note("image-warn-by-rule", {"gpu": gpu}) for gpu in guessed]
    if build.channel == INDEX and candidate.cuda and not build.read_from_wheel:
        carried = any(word in build.source.lower() for word in CARRIED)
        key = "image-warn-carried" if carried else "image-warn-second-hand"
        notes.append(Note(key, {"source": build.source, "cuda": build.tag}))
    if not release.wheel_tag.startswith("manylinux_"):
        values = {"tag": release.wheel_tag, "torch": release.torch}
        notes.append(Note("image-warn-glibc-by-tag", values))
    return tuple(notes)


def full_features(matrix: Matrix, machine: Machine, candidate: Candidate) -> bool:
    """Whether the driver gives all that the build's CUDA can do. A driver not given does not count
    against a build.
    """
    if not candidate.cuda or not machine.ask.driver:
        return True
    full = matrix.drivers[candidate.cuda].toolkit_driver
    return numbers(machine.ask.driver) >= numbers(full)
