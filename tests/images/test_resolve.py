"""Asks with known answers, and every trap that people fell into."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from danlu.images import matrix, resolve
from danlu.images.matrix import Build, Matrix
from danlu.model.errors import Invalid
from danlu.model.image import CHANNELS, CPU, INDEX, PYPI, Answer, Ask, Change, Rejection, Rule
from danlu.model.texts.phrases import PHRASES

PACKAGED = matrix.packaged()
Found = tuple[str, str, str] | None


def ask(torch: str = "", cuda: str = "", gpus: str = "", **more: Any) -> Answer:
    if more.pop("index", False):
        more["channels"] = CHANNELS
    wanted = Ask(torch, cuda, tuple(one for one in gpus.split("+") if one), **more)
    return resolve.ask(PACKAGED, wanted)


def chosen(answer: Answer) -> Found:
    choice = answer.choice
    return (choice.torch, choice.cuda, choice.channel) if choice else None


def rejection(answer: Answer, cuda: str) -> Rejection:
    return next(one for one in answer.rejected if one.cuda == cuda)


def warned(answer: Answer) -> set[str]:
    return {note.key.removeprefix("image-warn-") for note in answer.warnings}


CHOICES: list[tuple[dict[str, Any], Found]] = [
    ({"torch": "2.7.1", "gpus": "T4+V100+A100", "driver": "535"}, ("2.7.1", "cu126", PYPI)),
    ({"torch": "2.8.0", "gpus": "V100+B200", "driver": "580.65.06"}, ("2.8.0", "cu128", PYPI)),
    ({"torch": "2.14.1", "gpus": "V100", "driver": "535", "index": True},
     ("2.14.1", "cu126", INDEX)),
    ({"torch": "2.7.1", "gpus": "GTX 1080"}, ("2.7.1", "cu126", PYPI)),
    ({"torch": "2.8.0", "gpus": "L4"}, ("2.8.0", "cu128", PYPI)),
    # one image for the fleet, from PyPI alone, and the newest that does
    ({"gpus": "T4+V100+A100+H100+B200+RTX50"}, ("2.10.0", "cu128", PYPI)),
    # a series takes its newest release, a local version its own build
    ({"torch": "2.7", "gpus": "V100"}, ("2.7.1", "cu126", PYPI)),
    ({"torch": "2.7.1+cu118", "gpus": "V100", "index": True}, ("2.7.1", "cu118", INDEX)),
    # newer drivers run older CUDA: the compatible range has no end
    ({"torch": "2.0.1", "gpus": "A100", "driver": "595.45.04"}, ("2.0.1", "cu117", PYPI)),
    # minor-version compatibility: 12.8 loads on the oldest driver of 12
    ({"torch": "2.8.0", "gpus": "A100", "driver": "525.60.13"}, ("2.8.0", "cu128", PYPI)),
    # of the index's builds the highest all of whose features the driver has
    ({"torch": "2.14.1", "cuda": "", "gpus": "A100", "driver": "570", "index": True},
     ("2.14.1", "cu126", INDEX)),
    ({"torch": "2.8.0", "gpus": "B300"}, ("2.8.0", "cu128", PYPI)),
    ({"torch": "2.8.0", "gpus": "H100", "python": "3.13t"}, ("2.8.0", "cu128", PYPI)),
    ({"torch": "2.6.0", "glibc": "2.17", "gpus": "T4"}, ("2.6.0", "cu124", PYPI)),
    ({"gpus": "A100", "driver": "535.104.05"}, ("2.10.0", "cu128", PYPI)),
    ({"gpus": "A100", "python": "3.10"}, ("2.14.1", "cu130", PYPI)),
    ({"gpus": "sm_90"}, ("2.15.0", "cu132", PYPI)),
    ({"index": True}, ("2.15.0", CPU, INDEX)),
    ({}, ("2.15.0", "cu132", PYPI)),
    ({"torch": "2.13.0+cpu", "index": True}, ("2.13.0", CPU, INDEX)),
    # nothing does
    ({"torch": "2.8.0", "cuda": "cu118"}, None),
    ({"torch": "2.7.1", "cuda": "cu128", "gpus": "V100", "index": True}, None),
    ({"torch": "2.14.1", "gpus": "V100"}, None),
    ({"torch": "2.13.0", "gpus": "A100", "driver": "570"}, None),
    ({"torch": "2.0.1", "gpus": "H100"}, None),
    ({"torch": "2.8.0", "glibc": "2.27"}, None),
    ({"torch": "2.15.0", "python": "3.10"}, None),
    ({"torch": "2.15.0", "cuda": "cu126", "gpus": "A100", "index": True}, None),
    ({"torch": "2.8.0", "gpus": "A100", "driver": "525.60.12"}, None),
    ({"torch": "2.8.0", "gpus": "P100"}, None),
    ({"torch": "2.12.1", "gpus": "T4", "python": "3.13t"}, None),
    ({"gpus": "K80+B200", "index": True}, None),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "expected"), CHOICES)
def test_what_is_chosen(wanted: dict[str, Any], expected: Found) -> None:
    answer = ask(**wanted)
    assert chosen(answer) == expected
    if answer.choice is None:
        assert answer.rejected
        assert all(one.fix_text() for one in answer.rejected)
    else:
        assert answer.choice.reasons


def test_a_pinned_version_is_never_exchanged() -> None:
    """(case 1) 1.5.1+cu101 was asked for and 1.6.0 installed."""
    answer = ask("2.8.0", "cu118")
    found = rejection(answer, "cu118")
    assert (found.torch, found.rule, found.found) == ("2.8.0", Rule.BUILD, "cu118")
    assert found.needs == "cu126 cu128 cu129 cpu"
    assert [change.text() for change in found.fix] == [
        "cu128",
        "cu129, from the index (--channel index)",
        "cu126, from the index (--channel index)",
        "torch 2.7.1 with cu118, from the index (--channel index)",
    ]


def test_a_build_without_cuda_is_nothing_for_a_gpu() -> None:
    """(case 2) The CPU build was taken silently."""
    answer = ask("2.13.0", CPU, "A100", index=True)
    assert answer.choice is None
    assert (answer.rejected[0].rule, answer.rejected[0].needs) == (Rule.GPU, "cu*")
    assert all(one.cuda != CPU for one in ask("2.13.0", gpus="A100", index=True).rejected)


def test_a_cuda_newer_than_the_driver_names_both_versions() -> None:
    """(case 3)"""
    answer = ask("2.13.0", gpus="A100", driver="570")
    found = rejection(answer, "cu130")
    assert (found.rule, found.found, found.needs) == (Rule.DRIVER, "570", "580.65.06")
    assert found.fix == (
        Change(driver="580.65.06"),
        Change(cuda="cu126", channel=INDEX),
        Change(torch="2.10.0", cuda="cu128"),
    )


def test_volta_and_blackwell_wheels_of_one_release_are_told_apart() -> None:
    answer = ask("2.7.1", "cu128", "V100", index=True)
    found = rejection(answer, "cu128")
    assert (found.rule, found.found) == (Rule.GPU, "V100 (sm_70)")
    assert "sm_75" in found.needs.split()
    assert found.fix[:2] == (Change(cuda="cu126"), Change(cuda="cu118"))
    assert chosen(ask("2.7.1", gpus="B200")) is None
    assert chosen(ask("2.7.1", gpus="B200", index=True)) == ("2.7.1", "cu128", INDEX)


@pytest.mark.parametrize(
    ("torch", "gpu", "fixes"),
    [
        ("2.14.1", "V100", {Change(cuda="cu126", channel=INDEX), Change("2.10.0", "cu128")}),
        ("2.0.1", "H100", {Change(cuda="cu118", channel=INDEX), Change("2.1.0", "cu121")}),
    ],
)
def test_a_gpu_that_pypi_dropped_or_does_not_know_yet(
    torch: str, gpu: str, fixes: set[Change]
) -> None:
    (found,) = (one for one in ask(torch, gpus=gpu).rejected if PYPI in _channel(one))
    assert found.rule is Rule.GPU
    assert set(found.fix) == fixes


def _channel(one: Rejection) -> str:
    return next(
        build.channel
        for release, build in PACKAGED.candidates("x86_64")
        if (release.torch, build.tag) == (one.torch, one.cuda)
    )


def test_old_systems_and_old_pythons() -> None:
    found = rejection(ask("2.8.0", gpus="T4", glibc="2.27"), "cu128")
    assert (found.rule, found.found, found.needs) == (Rule.GLIBC, "2.27", "2.28")
    assert found.fix == (Change(glibc="2.28"), Change("2.6.0", "cu124"))
    assert warned(ask("2.6.0", gpus="T4", driver="550.54.14", glibc="2.27")) == {"glibc-by-tag"}
    found = rejection(ask("2.15.0", gpus="T4", python="3.10.4"), "cu132")
    assert (found.rule, found.found) == (Rule.PYTHON, "3.10")
    assert found.fix == (Change(python="3.11"), Change("2.14.1", "cu130"))
    found = rejection(ask("2.12.1", gpus="T4", python="3.13t"), "cu130")
    assert found.fix[0] == Change(python="3.14t")


def test_unknown_data_is_refused() -> None:
    found = rejection(ask("2.15.0", gpus="A100", index=True), "cu126")
    assert (found.rule, found.found) == (Rule.UNVERIFIED, "cu126 (sm_?)")
    answer = ask("2.8.0", gpus="Ascend 910B+A100")
    assert {one.rule for one in answer.rejected} == {Rule.UNVERIFIED}
    assert "--gpu sm_86" in answer.rejected[0].fix_text()
    assert "Ascend 910B" in answer.rejected[0].found
    for torch, nearest in (("2.16.0", "2.15.0"), ("1.13.1", "2.0.0")):
        (found,) = ask(torch, gpus="T4", python="3.11").rejected
        assert (found.rule, found.torch) == (Rule.UNVERIFIED, torch)
        assert found.fix[0].torch == nearest


def test_a_driver_floor_that_nobody_knows_is_not_guessed() -> None:
    drivers = {cuda: row for cuda, row in PACKAGED.drivers.items() if cuda != "12.8"}
    answer = resolve.ask(replace(PACKAGED, drivers=drivers), Ask("2.8.0", gpus=("A100",)))
    assert rejection(answer, "cu128").rule is Rule.UNVERIFIED


def test_a_branch_alone_is_no_driver_version() -> None:
    """580 may be older than the 580.65.06 that CUDA 13 was released with."""
    assert ask("2.13.0", gpus="A100", driver="580").choice is None
    assert ask("2.13.0", gpus="A100", driver="580.65.06").choice is not None
    assert ask("2.13.0", gpus="A100", driver="580.105.08").choice is not None


def test_ptx_needs_the_driver_of_the_toolkit() -> None:
    """Compiling PTX is not part of minor-version compatibility."""
    common: dict[str, Any] = {"torch": "2.7.1", "gpus": "sm_130", "index": True}
    found = rejection(ask(**common, driver="560.28.03"), "cu128")
    assert (found.rule, found.found, found.needs) == (Rule.DRIVER, "560.28.03", "570.26")
    answer = ask(**common, driver="570.26")
    assert chosen(answer) == ("2.7.1", "cu128", INDEX)
    assert answer.choice is not None
    assert "image-why-gpu-ptx" in {note.key for note in answer.choice.reasons}
    assert chosen(ask("2.8.0", gpus="sm_130", driver="600")) is None  # PyPI's wheels have none


def test_another_architecture_has_other_wheels() -> None:
    found = rejection(ask("2.8.0", gpus="GB10", arch="riscv64"), "cu128")
    assert (found.rule, found.found, found.needs) == (Rule.ARCH, "riscv64", "x86_64")
    assert found.fix[0] == Change(arch="x86_64")
    assert chosen(ask("2.13.0", gpus="GB10", arch="aarch64")) == ("2.13.0", "cu130", PYPI)
    assert chosen(ask("2.13.0", gpus="sm_110", arch="aarch64")) == ("2.13.0", "cu130", PYPI)
    assert chosen(ask("2.10", arch="aarch64")) == ("2.10.0", CPU, PYPI)
    assert chosen(ask("2.10.0", gpus="GH200", arch="aarch64")) is None  # PyPI's has no CUDA yet
    found = rejection(ask("2.13.0", gpus="T4", arch="aarch64"), "cu130")
    assert (found.rule, found.found) == (Rule.GPU, "T4 (sm_75)")
    assert "+PTX" not in found.needs


def test_cudnn_that_dropped_a_card_is_refused_for_it() -> None:
    """A build may have kernels of torch for a Volta card and none of cuDNN."""
    newer = tuple(
        replace(one, cudnn="9.11.0.98") if one.tag == "cu128" and "2.8" in one.series else one
        for one in PACKAGED.builds
    )
    altered = replace(PACKAGED, builds=newer)
    found = rejection(resolve.ask(altered, Ask("2.8.0", gpus=("V100",))), "cu128")
    assert (found.rule, found.needs) == (Rule.CUDNN, "< 9.11")
    assert found.found == "9.11.0.98, V100 (sm_70)"
    assert resolve.ask(altered, Ask("2.8.0", gpus=("T4",))).choice is not None


def test_gpus_that_no_build_serves_together_are_given_apart() -> None:
    answer = ask("2.7.1", gpus="K80+B200", index=True)
    assert rejection(answer, "cu118").fix == (Change(gpus=("K80",)),)
    assert "an image for each model" in rejection(answer, "cu126").fix_text()


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ({"torch": "2.7.1", "gpus": "T4", "driver": "535"}, {"toolkit"}),
        ({"torch": "2.7.1", "gpus": "T4", "driver": "560.28.03"}, set()),
        ({"torch": "2.8.0", "gpus": "T4"}, {"plan"}),
        ({"torch": "2.8.0"}, {"plan", "no-gpu"}),
        ({"torch": "2.8.0", "gpus": "B300", "driver": "570.26"}, {"by-rule"}),
        ({"torch": "2.14.1", "gpus": "V100", "driver": "570.26", "index": True}, {"second-hand"}),
        ({"torch": "2.7.1", "cuda": "cu118", "gpus": "V100", "driver": "535", "index": True},
         {"carried"}),
        ({"torch": "2.13.0", "cuda": CPU, "index": True}, set()),
    ],
)  # fmt: skip
def test_what_is_not_refused_is_said(wanted: dict[str, Any], expected: set[str]) -> None:
    assert warned(ask(**wanted)) == expected


@pytest.mark.parametrize(
    ("field", "wanted"),
    [
        ("torch", {"torch": "newest"}),
        ("torch", {"torch": "2.8.0rc1"}),
        ("torch", {"torch": "２.8.0"}),
        ("torch", {"torch": "2." + "9" * 5000}),
        ("cuda", {"cuda": "12.8"}),
        ("cuda", {"cuda": "rocm6.3"}),
        ("cuda", {"torch": "2.8.0+"}),
        ("cuda", {"torch": "2.8.0+cu128", "cuda": "cu126"}),
        ("driver", {"driver": "R535"}),
        ("python", {"python": "2.7"}),
        ("python", {"python": "3"}),
        ("python", {"python": "cp311"}),
        ("glibc", {"glibc": "musl"}),
        ("channel", {"channels": ()}),
        ("channel", {"channels": ("conda",)}),
    ],
)
def test_what_cannot_be_read_is_invalid(field: str, wanted: dict[str, Any]) -> None:
    with pytest.raises(Invalid) as caught:
        ask(**wanted)
    assert caught.value.params["field"] == field
    assert str(caught.value.params["value"]) in str(caught.value) or len(str(caught.value)) < 400
    expected = str(caught.value.params["expected"])
    assert expected in PHRASES or expected.startswith("one of ")


def test_everything_can_be_said_in_chinese() -> None:
    for answer in (ask("2.7.1", gpus="T4+L4", driver="535"), ask("2.8.0", gpus="K80+Foo"),
                   ask("2.13.0", gpus="A100+V100", driver="535", python="3.9")):  # fmt: skip
        notes = [*answer.warnings, *(answer.choice.reasons if answer.choice else ())]
        said = [*(note.text("zh") for note in notes), *(r.fix_text("zh") for r in answer.rejected)]
        assert said
        assert all("?" not in one and not one.isascii() for one in said), said


def test_a_matrix_without_builds_answers_too() -> None:
    empty: tuple[Build, ...] = ()
    hollow: Matrix = replace(PACKAGED, builds=empty)
    answer = resolve.ask(hollow, Ask("2.8.0"))
    assert answer.choice is None
    assert answer.rejected[0].rule is Rule.UNVERIFIED
