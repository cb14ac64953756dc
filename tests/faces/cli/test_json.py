"""What `--json` promises: keys that programs may rely on, in every language."""

from __future__ import annotations

import json

import pytest

from tests.faces.cli.house import House

JOB = {
    "id", "name", "state", "unreachable", "description", "flavor", "node_count", "priority",
    "created_at", "placed_at", "launched_at", "started_at", "exited_at", "ended_at", "duration_ms",
    "attempt", "user", "command", "intent", "reason", "waiting", "exit_code", "exit", "tasks",
    "inputs", "outputs", "parameters", "log_bytes",
}  # fmt: skip
PROMISES: list[tuple[list[str], set[str]]] = [
    (["ps"], {"jobs", "total"}),
    (["show", "@last"], JOB),
    (["why", "@last"], {"id", "state", "key", "position", "sentence", "params"}),
    (["flavors"], {"flavors"}),
    (["status"], {"up", "api", "version", "pid", "data", "jobs", "capacity"}),
    (["config"], {"settings"}),
    (["up"], {"started", "api", "project_id", "pid"}),
    (["run", "--dry-run", "--no-code", "--", "true"], {"spec", "paths", "tasks", "flavor"}),
]  # fmt: skip


@pytest.fixture(scope="module")
def busy(house: House) -> House:
    house.good("run", house.script("print('hi')"))
    return house


@pytest.mark.parametrize(("args", "keys"), PROMISES, ids=[one[0][0] for one in PROMISES])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_one_object_with_these_keys(
    busy: House, args: list[str], keys: set[str], language: str
) -> None:
    said = busy.good("--json", "--lang", language, *args)
    assert said.count("\n") == 1
    assert keys <= json.loads(said).keys()


def test_streams_are_one_object_a_line(busy: House) -> None:
    busy.good("run", busy.script("print('hi')"))  # @last is whatever ran last, in any test
    events = [json.loads(line) for line in busy.good("events", "--json", "@last").splitlines()]
    assert len(events) > 3
    assert all({"sequence", "at", "level", "key", "sentence"} <= one.keys() for one in events)
    assert [one["sequence"] for one in events] == sorted(one["sequence"] for one in events)
    log = [json.loads(line) for line in busy.good("logs", "--json", "@last").splitlines()]
    assert [{"event", "task", "offset", "next", "text"} <= one.keys() for one in log] == [True]


def test_a_failure_is_an_object_on_stderr(busy: House) -> None:
    done = busy.run("show", "--json", "nope")
    assert (done.returncode, done.stdout) == (4, b"")
    said = json.loads(done.stderr)
    assert {"error_code", "error_msg", "key", "request_id", "exit"} <= said.keys()
    assert (said["key"], said["exit"]) == ("job-missing", 4)
    done = busy.run("run", "--json", "nope.py")
    assert json.loads(done.stderr)["key"] == "script-missing"


def test_quiet_prints_ids_only(busy: House) -> None:
    ids = busy.good("ps", "-q").split()
    assert all(len(one) == 36 for one in ids)
    assert busy.good("show", "-q", ids[0][:12]).strip() == ids[0]
    assert busy.good("flavors", "-q").split()[0] == "danlu.cpu.1u"


def test_sentences_follow_the_language_and_codes_do_not(busy: House) -> None:
    english, chinese = (
        json.loads(busy.good("why", "--json", "--lang", language, "@last"))
        for language in ("en", "zh")
    )
    assert english["key"] == chinese["key"]
    assert english["sentence"].isascii()
    assert not chinese["sentence"].isascii()
    assert "名称" in busy.good("ps", "--lang", "zh")
    refusal = busy.run("show", "nope", "--lang", "zh").stderr.decode()
    assert "没有训练作业" in refusal


def test_nothing_in_a_pipe_is_coloured_or_cut(busy: House) -> None:
    busy.good("run", "--name", "x" * 64, "--no-code", "--", "true")
    listed = busy.good("ps")
    assert "x" * 64 in listed
    assert "\x1b" not in listed
    assert "\x1b[" in busy.good("ps", "--color")
    done = busy.run("ps", env={"FORCE_COLOR": "1"})
    assert b"\x1b[" in done.stdout
    done = busy.run("ps", env={"FORCE_COLOR": "1", "NO_COLOR": "1"})
    assert b"\x1b[" not in done.stdout
