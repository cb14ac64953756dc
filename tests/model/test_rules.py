"""What a job may not be, said with field, value and remedy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from danlu.model import limits
from danlu.model.errors import Invalid
from danlu.model.job import Access, Input, JobSpec, Output, Parameter
from danlu.model.resources import Shape
from danlu.model.rules import check
from danlu.model.url import ObjectUrl

CODE = ObjectUrl("danlu", "code/x/")
GOOD = JobSpec("train", "cpu", Shape(1, 1), code=CODE, boot_file="train.py")


def said(**changes: Any) -> str:
    with pytest.raises(Invalid) as caught:
        check(replace(GOOD, **changes))
    assert caught.value.http == 400
    assert caught.value.message("zh") != caught.value.message("en")
    return str(caught.value)


def test_a_good_job_passes() -> None:
    check(GOOD)
    check(replace(GOOD, boot_file="", command="cd x && torchrun train.py"))


def test_a_name_of_65_characters() -> None:
    message = said(name="n" * 65)
    assert "metadata.name" in message
    assert "65 characters" in message
    assert "64" in message


@pytest.mark.parametrize("name", ["", "a b", "训练", "a/b", "a\n", "x\0", "名"])
def test_names_outside_the_grammar(name: str) -> None:
    assert "metadata.name" in said(name=name)


def test_a_parameter_of_100_megabytes() -> None:
    message = said(parameters=(Parameter("x", "v" * 100_000_000),))
    assert "algorithm.parameters[0].value (parameter 'x')" in message
    assert "100000000 bytes" in message
    assert "input" in message
    assert len(message) < 500


def test_newline_and_equals_may_stand_in_a_value_but_nul_may_not() -> None:
    check(replace(GOOD, parameters=(Parameter("x", "a\nb=c ' $HOME `id` 中文"),)))
    message = said(parameters=(Parameter("x", "a\0b"),))
    assert "NUL" in message
    assert "a\\x00b" in message


@pytest.mark.parametrize("name", ["", "a b", "a=b", "a\n", "\0"])
def test_parameter_names(name: str) -> None:
    assert "algorithm.parameters[0].name" in said(parameters=(Parameter(name, "1"),))


def test_half_a_surrogate_pair_is_refused_everywhere() -> None:
    for changes in (
        {"description": "\ud800"},
        {"command": "\ud800", "boot_file": ""},
        {"environments": {"A": "\ud800"}},
        {"parameters": (Parameter("a", "\ud800"),)},
        {"annotations": {"a": "\ud800"}},
    ):
        assert "Unicode" in said(**changes)


@pytest.mark.parametrize("key", ["MA_HOME", "DANLU_X", "1A", "A-B", "", "A=B", "变量"])
def test_variables_that_may_not_be_set(key: str) -> None:
    assert "algorithm.environments" in said(environments={key: "1"})


def test_too_many_variables_are_counted() -> None:
    message = said(environments={f"V{i}": "" for i in range(101)})
    assert "101 entries" in message
    assert "100" in message


def test_everything_together_must_fit_a_program() -> None:
    many = tuple(Parameter(f"p{i}", "v" * 100_000) for i in range(16))
    assert "together" in said(parameters=many)


@pytest.mark.parametrize("path", ["/etc", "/home/ma-user/../x", "relative", "/cachet", "/cache\0"])
def test_paths_stay_inside_the_task(path: str) -> None:
    assert "local_dir" in said(inputs=(Input("data", CODE, local_dir=path),))
    assert "working_dir" in said(working_dir=path)
    assert "local_code_dir" in said(local_code_dir=path)


def test_channel_names_are_unique_and_plain() -> None:
    both = {"inputs": (Input("data", CODE),), "outputs": (Output("data", CODE),)}
    assert "twice" in said(**both)
    assert "inputs[0].name" in said(inputs=(Input("a/b", CODE),))
    assert "outputs[0].name" in said(outputs=(Output("..", CODE),))
    assert "inputs[0].name" in said(inputs=(Input("a-b", CODE, Access.ENV),))
    assert "MA_" in said(inputs=(Input("MA_HOME", CODE, Access.ENV),))


def test_a_job_runs_a_file_or_a_command_not_both_and_not_neither() -> None:
    assert "command" in said(command="x")
    assert "boot_file" in said(boot_file="")
    assert "code_dir" in said(code=None)
    assert ".py" in said(boot_file="train.sh")


@pytest.mark.parametrize(
    "changes",
    [
        {"node_count": 0},
        {"node_count": 10**9},
        {"priority": 4},
        {"time_limit_s": 0},
        {"grace_s": -1},
        {"time_limit_s": 1 << 63},
    ],
)
def test_numbers_out_of_range(changes: dict[str, int]) -> None:
    assert str(next(iter(changes.values()))) in said(**changes)


def test_limits_are_what_linux_gives() -> None:
    assert limits.STRING_BYTES < 128 * 1024
