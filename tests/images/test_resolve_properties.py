"""Laws of the resolver, over asks of every kind, against the tables read by other code."""

from __future__ import annotations

import csv
import functools
import itertools
from collections.abc import Iterator
from dataclasses import replace
from importlib import resources

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from danlu.images import matrix, resolve, rules
from danlu.images.rules import Candidate
from danlu.model.image import (
    CHANNELS,
    CPU,
    INDEX,
    PYPI,
    Answer,
    Ask,
    Change,
    Choice,
    Rejection,
    Rule,
)

PACKAGED = matrix.packaged()
TORCH = [release.torch for release in PACKAGED.releases]
SERIES = sorted({one.rpartition(".")[0] for one in TORCH})
TAGS = sorted({build.tag for build in PACKAGED.builds})
GPUS = [*(gpu.gpu.split("/")[0] for gpu in PACKAGED.gpus), "sm_70", "12.0", "sm_130", "Ascend 910B"]
DRIVERS = sorted(
    {v for row in PACKAGED.drivers.values() for v in (row.min_compat, row.toolkit_driver)}
    | {"", "440.33", "535.104.05", "580", "999"}
)

ASKS = st.builds(
    Ask,
    torch=st.sampled_from(["", "", *SERIES, *TORCH, *TORCH, "2.16.0", "1.13.1", "2.8.9"]),
    cuda=st.sampled_from(["", "", "", *TAGS, "cu999"]),
    gpus=st.lists(st.sampled_from(GPUS), max_size=3).map(tuple),
    driver=st.sampled_from(DRIVERS),
    python=st.sampled_from(["3.8", "3.9", "3.10", "3.11.4", "3.12", "3.13", "3.13t", "3.14"]),
    glibc=st.sampled_from(["2.5", "2.17", "2.27", "2.28", "2.36"]),
    arch=st.sampled_from(["x86_64", "x86_64", "x86_64", "aarch64", "riscv64"]),
    channels=st.sampled_from([(PYPI,), (INDEX,), CHANNELS]),
)  # fmt: skip


def ask(wanted: Ask) -> Answer:
    return resolve.ask(PACKAGED, wanted)


# ---------------------------------------------------------------- an oracle of its own


@functools.cache
def rows(name: str) -> list[dict[str, str]]:
    text = (resources.files("danlu.images") / "data" / name).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def order(version: str) -> list[int]:
    parts = [int(one) for one in version.split(".")]
    return parts + [0] * (4 - len(parts))


def covers(series: str, torch: str) -> bool:
    low, _, high = series.partition("-")
    at = order(torch)[:2]
    return order(low)[:2] <= at <= order(high or low)[:2]


def kernels(build: dict[str, str], sm: int) -> str:
    """How a GPU is served: by binary kernels, by PTX, or not."""
    if build["sm"] == "?":
        return ""
    if any(int(one) // 10 == sm // 10 and int(one) <= sm for one in build["sm"].split()):
        return "binary"
    return "ptx" if any(int(one) <= sm for one in build["ptx"].split()) else ""


def fits(wanted: Ask, release: dict[str, str], build: dict[str, str]) -> bool:
    major, _, minor = wanted.python.partition(".")
    tag = (
        major + minor.split(".")[0] + ("t" if wanted.python.endswith("t") and "." in minor else "")
    )
    floors = {"manylinux1": "2.5", "manylinux_2_28": "2.28"}
    found = [PACKAGED.capability(gpu) for gpu in wanted.gpus]
    served = [kernels(build, one[0]) if one else "" for one in found]
    if build["cuda_tag"] == CPU:
        driver_fits = not wanted.gpus
    else:
        cuda = f"{build['cuda_tag'][2:-1]}.{build['cuda_tag'][-1]}"
        floor = next(one for one in rows("drivers.csv") if one["cuda"] == cuda)
        least = floor["toolkit_driver" if "ptx" in served else "min_compat"]
        driver_fits = not wanted.driver or order(wanted.driver) >= order(least)
    return (
        tag in release["pythons"].split()
        and order(wanted.glibc) >= order(floors[release["wheel_tag"]])
        and build["arch"] == wanted.arch
        and build["sm"] != "?"
        and all(served)
        and driver_fits
        and build["channel"] in wanted.channels
    )


def everything_that_fits(wanted: Ask) -> Iterator[tuple[str, str, str]]:
    for release in rows("torch_pypi.csv"):
        if wanted.torch not in ("", release["torch"], release["torch"].rpartition(".")[0]):
            continue
        for build in rows("torch_builds.csv"):
            if wanted.cuda not in ("", build["cuda_tag"]):
                continue
            if covers(build["series"], release["torch"]) and fits(wanted, release, build):
                yield release["torch"], build["cuda_tag"], build["channel"]


# ---------------------------------------------------------------- the laws


@settings(max_examples=300, deadline=None)
@given(ASKS)
def test_the_choice_keeps_every_rule_and_a_refusal_means_that_nothing_does(wanted: Ask) -> None:
    answer = ask(wanted)
    fitting = set(everything_that_fits(wanted))
    if answer.choice is None:
        assert not fitting
        assert answer.rejected
    else:
        choice = (answer.choice.torch, answer.choice.cuda, answer.choice.channel)
        assert choice in fitting
        assert choice[2] == PYPI or (choice[1] == CPU) or all(one[2] != PYPI for one in fitting)
        assert answer.choice.reasons
    refused = {(one.torch, one.cuda) for one in answer.rejected}
    assert not refused & {one[:2] for one in fitting}
    assert len(refused) == len(answer.rejected)


@settings(max_examples=200, deadline=None)
@given(ASKS)
def test_every_refusal_names_a_rule_and_what_is_nearest(wanted: Ask) -> None:
    for one in ask(wanted).rejected:
        assert one.found
        assert one.needs
        assert one.fix_text("en")
        assert one.fix_text("zh")
        assert one.fix or one.advice


@settings(max_examples=200, deadline=None)
@given(ASKS, st.data())
def test_a_change_that_is_named_does_what_it_says(wanted: Ask, data: st.DataObject) -> None:
    """Another build is one that does; a change of the machine makes the broken rule hold."""
    rejected = [one for one in ask(wanted).rejected if one.fix]
    assume(rejected)
    one = data.draw(st.sampled_from(rejected))
    for change in one.fix:
        applied = change.applied(wanted)
        assert applied != wanted
        if change.cuda:
            choice = ask(applied).choice
            assert choice is not None
            assert choice.cuda == change.cuda
            assert change.torch in ("", choice.torch)
        else:
            assert one.rule not in broken(applied, one), (change, one)


def broken(wanted: Ask, one: Rejection) -> set[Rule]:
    """Every rule, not only the first, that the refused build breaks."""
    machine = rules.read(PACKAGED, wanted)
    (candidate,) = (
        Candidate(release, build)
        for release, build in PACKAGED.candidates(wanted.arch)
        if (release.torch, build.tag) == (one.torch, one.cuda)
    )
    results = (rule(PACKAGED, machine, candidate) for rule in rules.RULES)
    return {found.rule for found in results if found is not None}


@settings(max_examples=200, deadline=None)
@given(ASKS, st.sampled_from(DRIVERS))
def test_a_newer_driver_never_takes_a_choice_away(wanted: Ask, newer: str) -> None:
    assume(wanted.driver and newer and order(newer) >= order(wanted.driver))
    before = ask(wanted)
    after = ask(replace(wanted, driver=newer))
    assert before.choice is None or after.choice is not None
    gone = {(one.torch, one.cuda) for one in after.rejected}
    assert gone <= {(one.torch, one.cuda) for one in before.rejected}


@settings(max_examples=100, deadline=None)
@given(ASKS)
def test_more_to_meet_never_gives_a_choice_where_there_was_none(wanted: Ask) -> None:
    """Fewer GPUs, no driver, another channel beside: each asks for less."""
    assume(wanted.gpus)
    if ask(wanted).choice is not None:
        for less in (
            replace(wanted, gpus=wanted.gpus[:-1]),
            replace(wanted, driver=""),
            replace(wanted, channels=CHANNELS),
            replace(wanted, cuda=""),
            replace(wanted, torch=""),
        ):
            assert ask(less).choice is not None


@settings(max_examples=100, deadline=None)
@given(ASKS, st.randoms(use_true_random=False))
def test_the_order_of_gpus_and_channels_does_not_matter(wanted: Ask, random: object) -> None:
    turned = replace(wanted, gpus=wanted.gpus[::-1], channels=wanted.channels[::-1])
    first, second = ask(wanted), ask(turned)
    assert (first.choice is None) == (second.choice is None)
    if first.choice and second.choice:
        assert first.choice.cuda == second.choice.cuda
    assert [one.rule for one in first.rejected] == [one.rule for one in second.rejected]


def test_a_change_without_content_changes_nothing() -> None:
    wanted = Ask("2.8.0", gpus=("T4",))
    assert Change().applied(wanted) == wanted


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("series", SERIES)
def test_every_cell_of_the_table_keeps_the_rules(series: str) -> None:
    """Not only what is drawn: each GPU with each driver and each choice of channels. A choice keeps
    every rule; a refusal refuses every build, names its rule, and a newer driver never makes one.
    """
    cards = [gpu.gpu.split("/")[0] for gpu in PACKAGED.gpus]
    drivers = sorted((one for one in DRIVERS if one), key=order)
    for gpu, channels in itertools.product(cards, [(PYPI,), (INDEX,), CHANNELS]):
        chosen = False
        for driver in drivers:
            wanted = Ask(torch=series, gpus=(gpu,), driver=driver, channels=channels)
            answer = ask(wanted)
            fitting = set(everything_that_fits(wanted))
            cell = f"{series} {gpu} {driver} {channels}"
            assert (answer.choice is not None) == bool(fitting), cell
            assert answer.choice is None or made_of(answer.choice) in fitting, cell
            assert not {(one.torch, one.cuda) for one in answer.rejected} & {
                one[:2] for one in fitting
            }, cell
            assert answer.choice or answer.rejected, cell
            assert all(one.rule in Rule and one.found and one.needs for one in answer.rejected)
            assert answer.choice or not chosen, cell
            chosen = answer.choice is not None


def made_of(choice: Choice) -> tuple[str, str, str]:
    return choice.torch, choice.cuda, choice.channel
