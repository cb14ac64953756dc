"""Which build of PyTorch runs on a machine: one choice with its reasons, or why none does.

Pure: the matrix comes in as an argument, and nothing is looked up anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from danlu.images import fixes, rules
from danlu.images.matrix import Matrix
from danlu.images.rules import Broken, Candidate, Machine
from danlu.images.versions import numbers, plain, series
from danlu.model.errors import Invalid
from danlu.model.image import CPU, PYPI, Answer, Ask, Choice, Note, Rejection, Rule

_TORCH = "a version of torch such as 2.8.0, or a series such as 2.8"
_TAG = re.compile(r"cpu|cu\d{2,4}")


def ask(matrix: Matrix, wanted: Ask) -> Answer:
    """The build for `wanted`. Raises Invalid for what cannot be read at all."""
    wanted = _read(wanted)
    machine = rules.read(matrix, wanted)
    everything = [Candidate(*one) for one in matrix.candidates(wanted.arch)]
    looked_at = [one for one in everything if _asked_for(wanted, one)]
    if not looked_at:
        return Answer(None, (), (_no_such_build(matrix, machine, everything),))
    fitting: list[Candidate] = []
    broken: list[tuple[Candidate, Broken]] = []
    for candidate in looked_at:
        found = rules.broken(matrix, machine, candidate)
        if found is None:
            fitting.append(candidate)
        else:
            broken.append((candidate, found))
    nearest = fixes.Nearest(matrix, machine, everything)
    rejected = tuple(_rejection(nearest, *one) for one in reversed(broken))
    if not fitting:
        return Answer(None, (), rejected)
    best = max(fitting, key=lambda one: preference(matrix, machine, one))
    choice = Choice(
        best.release.torch,
        best.build.tag,
        best.build.channel,
        rules.reasons(matrix, machine, best),
    )
    return Answer(choice, rules.warnings(matrix, machine, best), rejected)


def preference(
    matrix: Matrix, machine: Machine, candidate: Candidate
) -> tuple[bool, bool, tuple[int, ...], bool, tuple[int, ...]]:
    """Of builds that do, the greatest is taken: PyPI's default, of the newest release, then the
    highest CUDA all of whose features the driver gives, then the highest. A machine without a GPU
    and without a driver has no use for CUDA.
    """
    idle = not machine.cards and not machine.ask.driver
    return (
        idle and candidate.build.tag == CPU,
        candidate.build.channel == PYPI,
        candidate.release.order,
        rules.full_features(matrix, machine, candidate),
        numbers(candidate.cuda or "0"),
    )


def _read(wanted: Ask) -> Ask:
    """The ask with a local version (2.8.0+cu128) taken apart."""
    version, plus, local = wanted.torch.partition("+")
    if version:
        plain("torch", version, _TORCH)
    if plus and wanted.cuda not in ("", local):
        raise Invalid("field-value", field="cuda", value=wanted.cuda, expected=f"one of {local}")
    cuda = wanted.cuda or local
    if (cuda or plus) and not _TAG.fullmatch(cuda):
        expected = "a tag such as cu128, or cpu"
        raise Invalid("field-value", field="cuda", value=cuda, expected=expected)
    return replace(wanted, torch=version, cuda=cuda)


def _asked_for(wanted: Ask, candidate: Candidate) -> bool:
    """Builds without CUDA are nobody's candidates for a GPU, unless they are asked for by name."""
    torch, tag = candidate.release.torch, candidate.build.tag
    if tag == CPU and wanted.cuda != CPU and wanted.gpus:
        return False
    return wanted.torch in ("", torch, series(torch)) and wanted.cuda in ("", tag)


def _no_such_build(matrix: Matrix, machine: Machine, everything: Sequence[Candidate]) -> Rejection:
    """What was asked for by name does not exist, or nobody has looked at it yet."""
    wanted = machine.ask
    nearest = fixes.Nearest(matrix, machine, everything)
    tags = [one.build.tag for one in everything if _asked_for(replace(wanted, cuda=""), one)]
    if tags:
        needs = " ".join(sorted(set(tags), key=lambda tag: (tag == CPU, tag)))
        rule, found = Rule.BUILD, wanted.cuda
    elif wanted.torch:
        needs = f"{matrix.releases[0].torch} … {matrix.releases[-1].torch}"
        rule, found = Rule.UNVERIFIED, wanted.torch
    else:
        needs = " ".join(sorted({build.tag for build in matrix.builds}))
        rule, found = Rule.BUILD, wanted.cuda
    changes = nearest.builds(wanted.torch)
    advice = None if changes else Note("image-advice-none")
    return Rejection(wanted.torch, wanted.cuda, rule, found, needs, changes, advice)


def _rejection(nearest: fixes.Nearest, candidate: Candidate, found: Broken) -> Rejection:
    changes, advice = nearest.fix(candidate, found)
    return Rejection(
        candidate.release.torch, candidate.build.tag, *found, fix=changes, advice=advice
    )
