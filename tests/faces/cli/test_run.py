"""danlu run against a real server: what arrives at the script, what comes back, how it ends."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.faces.cli.house import House
from tests.services import ROOT

ECHO = """\
import json, os, sys
with open(os.environ["OUT"], "w") as file:
    json.dump({"argv": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ)}, file)
"""

ARGUMENT = st.one_of(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
    st.sampled_from(
        ["a b", "", "$HOME", "${PATH}", "`id`", "$(id)", "'", '"', "\\", "\n", "\r\n", "*", "~",
         "!", "--", "-x", "--lr=0.1", "--a=b=c", '{"k": [1, "二"]}', "训练 参数", "; exit 1",
         "&&", "|"]
    ),
)  # fmt: skip


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(ARGUMENT, max_size=30))
def test_the_script_gets_exactly_the_arguments(house: House, args: list[str]) -> None:
    """(case 92) Through the whole platform; a leading `--` is ours to take."""
    out = house.shared / "argv.json"
    if not hasattr(test_the_script_gets_exactly_the_arguments, "script"):
        test_the_script_gets_exactly_the_arguments.script = house.script(ECHO)  # type: ignore[attr-defined]  # made once
    script = test_the_script_gets_exactly_the_arguments.script  # type: ignore[attr-defined]  # as above
    house.good("run", "--env", f"OUT={out}", script, "--", *args)
    assert json.loads(out.read_text())["argv"] == args


def test_parameters_and_variables_arrive_as_they_are(house: House) -> None:
    """(case 94) Newlines and quotes in values."""
    out = house.shared / "env.json"
    value = "a\nb\r\n\"c\" 'd' $HOME `x` =训练"
    house.good(
        "run", "--env", f"OUT={out}", "--env", f"NASTY={value}", "--param", f"p={value}",
        "--param", "q=1", "--param", "q=2", house.script(ECHO), "--own=1",
    )  # fmt: skip
    seen = json.loads(out.read_text())
    assert seen["argv"] == ["--own=1", f"--p={value}", "--q=1", "--q=2"]
    assert seen["env"]["NASTY"] == value


def test_the_log_is_stdout_byte_for_byte(house: House) -> None:
    script = house.script(
        "import sys\nsys.stdout.buffer.write(bytes(range(256)) * 400 + b'no end')\n"
    )
    done = house.run("run", script)
    assert done.returncode == 0
    assert done.stdout == bytes(range(256)) * 400 + b"no end"
    assert b"completed" in done.stderr


@pytest.mark.parametrize(("code", "status"), [(0, 0), (1, 1), (3, 1), (255, 1)])
def test_the_exit_status_is_the_jobs(house: House, code: int, status: int) -> None:
    done = house.run("run", house.script(f"raise SystemExit({code})"))
    assert done.returncode == status
    assert done.stdout == b""
    if code:
        assert f"exited with code {code}" in done.stderr.decode()


def test_a_time_limit_ends_with_124(house: House) -> None:
    done = house.run("run", "--time-limit", "1s", house.script("import time; time.sleep(60)"))
    assert done.returncode == 124


def test_quiet_leaves_only_the_log(house: House) -> None:
    done = house.run("run", "-q", house.script("print('hi')"))
    assert (done.stdout, done.stderr) == (b"hi\n", b"")


def test_detached_prints_the_id_and_nothing_else(house: House) -> None:
    done = house.run("run", "-d", house.script("print('hi')", "my job.py"))
    job_id = done.stdout.decode().strip()
    assert len(job_id) == 36
    assert f"danlu logs -f {job_id[:8]}" in done.stderr.decode()
    assert house.good("logs", "-f", job_id) == "hi\n"
    assert house.json("show", "my-job")["id"] == job_id


def test_json_lines_tell_the_whole_story(house: House) -> None:
    done = house.run("run", "--json", house.script("print('hi'); print('中文')"))
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["event"] for line in lines][0 :: max(1, len(lines) - 1)] == ["submitted", "ended"]
    assert "".join(line["text"] for line in lines if line["event"] == "log") == "hi\n中文\n"
    assert lines[-1]["job"]["exit"] == 0


def test_a_dry_run_starts_nothing(house: House) -> None:
    before = house.json("ps", "-a")["total"]
    plan = json.loads(
        house.good("run", "--dry-run", "--json", "--output", "model", house.script(""), "--lr=1")
    )
    task = plan["tasks"][0]
    assert task["argv"][1].endswith("/train.py")
    assert task["argv"][2] == "--lr=1"
    assert task["argv"][3].startswith("--model=/")
    assert plan["paths"]["outputs"]["model"] == task["argv"][3].removeprefix("--model=")
    shown = house.good("run", "--dry-run", house.script(""), "a b")
    assert "'a b'" in shown
    assert house.json("ps", "-a")["total"] == before


def test_a_command_runs_in_a_copy_of_the_code(house: House) -> None:
    folder = Path(house.script("print('from python')", "say.py")).parent
    assert house.good("run", "--", "python", "say.py", cwd=folder) == "from python\n"
    assert house.good("run", "--", "ls | wc -l", cwd=folder).strip() == "1"
    assert house.good("run", "--no-code", "--", "echo", "a  b") == "a  b\n"


def test_a_place_with_spaces_and_chinese(house: House) -> None:
    """(case 96) Directory, script, job, argument and output."""
    folder = house.home / "我的 项目"
    folder.mkdir()
    (folder / "训 练.py").write_text("import sys; print('你好', sys.argv[1:])", encoding="utf-8")
    said = house.good("run", "训 练.py", "参 数", cwd=folder)
    assert said == "你好 ['参 数']\n"


@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_the_c_locale_changes_nothing(house: House, locale: str) -> None:
    """(case 18) Output stays UTF-8, and so do names and arguments."""
    if not str(ROOT).isascii() and sys.version_info < (3, 13):
        pytest.skip("this Python cannot start from a non-ASCII editable path in the C locale")
    script = house.script("import sys; print('中文', sys.argv[1:])", "程序.py")
    env = {"LC_ALL": locale, "LANG": locale}
    done = house.run("run", script, "值", env=env)
    assert done.stdout.decode() == "中文 ['值']\n"
    shown = house.run("show", "@last", env={**env, "DANLU_LANG": "zh"})
    assert "状态" in shown.stdout.decode()


def test_inputs_and_outputs(house: House) -> None:
    data = house.home / "数据 集"
    data.mkdir()
    (data / "a.txt").write_text("17")
    script = house.script(
        "import argparse, pathlib\np = argparse.ArgumentParser()\n"
        "p.add_argument('--data'); p.add_argument('--model')\na = p.parse_args()\n"
        "n = int((pathlib.Path(a.data) / 'a.txt').read_text())\n"
        "(pathlib.Path(a.model) / 'w').write_text(str(n + 1))\n"
    )
    kept = house.home / "kept"
    done = house.run("run", "--input", f"data={data}", "--output", f"model={kept}", script)
    assert done.returncode == 0, done.stderr.decode()
    assert (kept / "w").read_text() == "18"
    done = house.run("run", "--input", f"data={data}", "--output", "model", script)
    assert b"model: obs://danlu/jobs/train-" in done.stderr


def test_a_job_file_and_options_on_top(house: House) -> None:
    script = Path(house.script("import sys; print(sys.argv[1:])"))
    (script.parent / "job.yaml").write_text(
        "metadata: {name: from-file}\nalgorithm:\n  code_dir: .\n  boot_file: train.py\n"
        "  parameters: [{name: lr, value: 0.10}]\n"
    )
    said = house.good("run", "--param", "n=2", "-f", str(script.parent / "job.yaml"))
    assert said == "['--lr=0.10', '--n=2']\n"
    assert house.json("show", "@last")["name"] == "from-file"
    house.good("run", "--name", "other", "-f", str(script.parent / "job.yaml"))
    assert house.json("show", "@last")["name"] == "other"


def test_two_tasks(house: House) -> None:
    script = house.script("import os; print('task', os.environ['VC_TASK_INDEX'])")
    done = house.run("run", "--flavor", "danlu.cpu.1u", "--nodes", "2", script)
    assert (done.returncode, done.stdout) == (0, b"task 0\n"), done.stderr.decode()
    assert house.good("logs", "@last", "--task", "worker-1") == "task 1\n"


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (["--flavor", "nope"], 2, "danlu.cpu.1u"),
        (["--name", "x" * 65], 2, "65 characters"),
        (["--name", "a b"], 2, "metadata.name"),
        (["--nodes", "1000"], 5, "flavor"),
        (["--param", "x"], 2, "NAME=VALUE"),
        (["--param", "a b=1"], 2, "parameters"),
        (["--env", "MA_X=1"], 2, "MA_"),
        (["--env", "A-B=1"], 2, "variable"),
        (["--input", "d=/nowhere/at/all"], 4, "/nowhere/at/all"),
        (["--input", "d=obs://other-bucket/x/"], 2, "other-bucket"),
        (["--output", "o=ftp://x/y"], 2, "ftp://x/y"),
        (["--code", "/nowhere"], 4, "/nowhere"),
        (["--time-limit", "soon"], 2, "--time-limit"),
        (["--param", "big=" + "x" * 131_001], 2, "131000"),
    ],
)  # fmt: skip
def test_bad_input_names_field_value_and_remedy_and_makes_nothing(
    house: House, args: list[str], status: int, words: str
) -> None:
    before = house.json("ps", "-a")["total"]
    done = house.run("run", *args, house.script(""))
    said = done.stderr.decode()
    assert (done.returncode, done.stdout) == (status, b""), said
    assert words in said
    assert "Traceback" not in said
    assert house.json("ps", "-a")["total"] == before


def test_nul_from_a_file_is_refused(house: House) -> None:
    file = house.home / "nul.json"
    file.write_text('{"metadata": {"name": "n"}, "algorithm": {"command": "echo \\u0000"}}')
    done = house.run("run", "-f", str(file))
    assert done.returncode == 2
    assert b"NUL" in done.stderr


def test_an_option_behind_the_script_is_pointed_out(house: House) -> None:
    done = house.run("run", house.script(""), "--flavor=danlu.cpu.1u")
    assert done.returncode == 0
    assert b"--flavor stands behind train.py" in done.stderr


def test_the_code_is_sent_once(house: House) -> None:
    script = house.script("print('same')")
    first, second = (house.run("run", "-d", "--debug", script).stderr.decode() for _ in range(2))
    assert "POST" in first.split("/code")[2]
    assert second.count("/code") == 1
