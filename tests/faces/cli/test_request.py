"""From words on the command line to ModelArts' create body."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from danlu.faces.cli import request
from danlu.faces.cli.failure import MISSING, REFUSED, USAGE, Failure


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    for name in ("train.py", "src/main.py", "go.sh", "plain.txt", "训 练.py"):
        (tmp_path / name).write_text("")
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    return tmp_path


def test_a_script_alone_is_a_boot_file(project: Path) -> None:
    work = request.script_work(str(project / "train.py"), [], None)
    assert (work.code, work.boot_file, work.command) == (str(project), "train.py", "")
    assert (work.parameters, work.name) == ([], "train")


def test_arguments_that_are_parameters_travel_as_such(project: Path) -> None:
    args = ["--lr=0.1", "--lr=0.2", "--empty=", "--a=b=c d", "---x=1", "--文=字"]
    work = request.script_work(str(project / "train.py"), args, None)
    assert [f"--{name}={value}" for name, value in work.parameters] == args
    assert work.boot_file == "train.py"


@pytest.mark.parametrize(
    "args",
    [["--lr", "0.1"], ["word"], ["--flag"], ["-x=1"], ["--lr=1", "more"], ["--=x"], ["--a b=1"]],
)
def test_other_arguments_travel_as_a_quoted_line(project: Path, args: list[str]) -> None:
    work = request.script_work(str(project / "train.py"), args, None)
    assert work.boot_file == ""
    assert work.command.startswith('exec "$MA_SCRIPT_INTERPRETER" "$MA_CODE_DIR"/train.py ')


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
NASTY = st.sampled_from(
    ["a b", "", "$HOME", "`id`", "$(id)", "'", '"', "\\", "\n", "\r", "*", "~", "!", "a=b", "--",
     "-x", '{"k": [1]}', "中文 参数", ";rm -rf x", "&&", "|", ">f", "#", "\t"]
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(st.lists(st.one_of(TEXT, NASTY), max_size=6))
def test_a_shell_hands_on_exactly_what_was_sent(args: list[str]) -> None:
    """(case 92) As the node runs it: bash -c LINE."""
    program = "import sys; sys.stdout.buffer.write('\\0'.join(sys.argv[1:]).encode() + b'.')"
    line = request._script_line("x.py", "a 'b'/x.py", args)
    line = line.replace("\"$MA_CODE_DIR\"/'a '\"'\"'b'\"'\"'/x.py'", '-c "$PROGRAM"')
    assert '-c "$PROGRAM"' in line
    done = subprocess.run(
        ["/bin/bash", "-c", line],
        env={"MA_SCRIPT_INTERPRETER": sys.executable, "PROGRAM": program,
             "PATH": os.environ["PATH"], "PYTHONUTF8": "1"},
        capture_output=True,
        check=True,
        timeout=60,
    )  # fmt: skip
    assert done.stdout == "\0".join(args).encode() + b"."


def test_one_pair_of_dashes_behind_the_script_is_ours(project: Path) -> None:
    script = str(project / "train.py")
    assert request.script_work(script, ["--", "--a=1"], None).parameters == [("a", "1")]
    assert request.script_work(script, ["--", "--", "x"], None).command.endswith("train.py -- x")


def test_other_kinds_of_scripts(project: Path) -> None:
    assert request.script_work(str(project / "go.sh"), ["x"], None).command == (
        'exec bash "$MA_CODE_DIR"/go.sh x'
    )
    assert request.script_work(str(project / "tool"), [], None).command == (
        'exec "$MA_CODE_DIR"/tool'
    )
    with pytest.raises(Failure, match="chmod"):
        request.script_work(str(project / "plain.txt"), [], None)


def test_the_code_directory_may_be_above_the_script(project: Path) -> None:
    work = request.script_work(str(project / "src" / "main.py"), [], str(project))
    assert (work.code, work.boot_file) == (str(project), "src/main.py")
    with pytest.raises(Failure, match="not below") as caught:
        request.script_work(str(project / "train.py"), [], str(project / "src"))
    assert caught.value.exit_status == USAGE


def test_what_is_not_there_is_said(project: Path) -> None:
    for script, words in ((project / "nope.py", "does not exist"), (project, "is a directory")):
        with pytest.raises(Failure, match=words) as caught:
            request.script_work(str(script), [], None)
        assert caught.value.exit_status == MISSING
    with pytest.raises(Failure, match="does not exist"):
        request.script_work(str(project / "train.py"), [], str(project / "nope"))


def test_a_command_is_an_argument_list_or_one_shell_line(project: Path) -> None:
    work = request.command_work(["python", "-m", "x y", "$HOME"], str(project), no_code=False)
    assert work.command == "python -m 'x y' '$HOME'"
    assert (work.code, work.name) == (str(project), "python")
    line = request.command_work(["cd x && torchrun a.py"], None, no_code=True)
    assert (line.command, line.code, line.name) == ("cd x && torchrun a.py", "", "a")
    with pytest.raises(Failure, match="nothing stands behind"):
        request.command_work([], None, no_code=True)


@pytest.mark.parametrize(
    ("file", "name"),
    [("train.py", "train"), ("训练.py", "job"), ("my model v2.py", "my-model-v2"), (".py", "py"),
     ("a.b.py", "a-b"), ("x" * 80 + ".py", "x" * 64), ("job_1", "job_1")],
)  # fmt: skip
def test_a_job_is_named_after_its_file(file: str, name: str) -> None:
    assert request.job_name(file) == name


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("30m", 1800),
        ("2h", 7200),
        ("1d", 86400),
        ("1h30m", 5400),
        ("0", 0),
    ],
)
def test_times(text: str, seconds: int) -> None:
    assert request.duration_s(text, "--time-limit") == seconds


@pytest.mark.parametrize("text", ["", "h", "1x", "1h30", "-5", "1.5h", "１０", " 5", "9" * 11])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(Failure, match="--grace"):
        request.duration_s(text, "--grace")


def test_channels(project: Path) -> None:
    made = request.inputs([f"data={project}", "obs=obs://b/k/"], None)
    assert [one["remote"]["obs"]["obs_url"] for one in made] == [f"file://{project}", "obs://b/k/"]
    made = request.outputs(["model", "logs=/x/y/../z"], "obs://danlu/jobs/j/outputs/", remote=False)
    assert [one["remote"]["obs"]["obs_url"] for one in made] == [
        "obs://danlu/jobs/j/outputs/model/",
        "file:///x/z",
    ]


@pytest.mark.parametrize("word", ["data", "=x", ""])
def test_a_channel_without_name_or_path(word: str) -> None:
    with pytest.raises(Failure, match="NAME=VALUE"):
        request.inputs([word], None)


def test_an_output_with_an_empty_path() -> None:
    with pytest.raises(Failure, match="NAME=VALUE"):
        request.outputs(["model="], "", remote=False)


def test_paths_of_this_machine_mean_nothing_elsewhere(project: Path) -> None:
    with pytest.raises(Failure, match="obs://") as caught:
        request.outputs([f"data={project}"], "", remote=True)
    assert caught.value.exit_status == REFUSED
    with pytest.raises(Failure, match="does not exist"):
        request.inputs([f"data={project}/nope"], None)


def test_bytes_that_are_no_text_are_refused(project: Path) -> None:
    with pytest.raises(Failure, match="UTF-8"):
        request.script_work(str(project / "train.py"), ["a\udcff"], None)
    with pytest.raises(Failure, match="UTF-8"):
        request.assignments(["a=\udcff"], "--env")
