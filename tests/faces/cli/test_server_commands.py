"""up, down, status, serve: one server a data directory, found and ended by proof."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.faces.cli import local
from tests.faces.cli.house import HANG_S, House, until


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[House]:
    """A house whose server does not run yet."""
    home = tmp_path / "home"
    home.mkdir()
    made = House(tmp_path / "da ta", home)
    yield made
    made.run("down")


def test_two_ups_at_once_start_one_server(empty: House) -> None:
    both = [empty.start("up", "--port", "0", "--json") for _ in range(3)]
    said = [json.loads(one.communicate(timeout=HANG_S)[0]) for one in both]
    assert [one.returncode for one in both] == [0, 0, 0]
    assert len({one["pid"] for one in said}) == 1
    assert sorted(one["started"] for one in said) == [False, False, True]
    assert "secret_key" not in said[0]
    assert said[0]["pid"] == empty.server_pid()


def test_down_ends_it_and_is_content_with_nothing(empty: House) -> None:
    empty.good("up", "--port", "0")
    pid = empty.server_pid()
    assert empty.json("down") == {"stopped": True, "pid": pid}
    assert not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()
    assert empty.json("down") == {"stopped": False, "pid": None}
    assert not (empty.data / "server.json").exists()


def test_status_of_a_server_and_of_none(empty: House) -> None:
    done = empty.run("status")
    assert done.returncode == 75
    assert b"danlu up" in done.stderr
    assert local.held_by(str(empty.data)) is None  # asking does not start it
    assert json.loads(empty.run("status", "--json").stdout)["up"] is False
    empty.good("up", "--port", "0")
    found = empty.json("status")
    assert found["up"] is True
    assert found["pid"] == empty.server_pid()
    assert found["version"] in empty.good("status")


def test_any_command_starts_the_server(empty: House) -> None:
    done = empty.run("ps", "--json", env={"DANLU_PORT": "0"})
    assert (done.returncode, json.loads(done.stdout)) == (0, {"jobs": [], "total": 0})
    assert b"the server is up" in done.stderr
    assert stat.S_IMODE((empty.data / "server.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(empty.data.stat().st_mode) == 0o700


def test_a_server_outlives_the_session_that_started_it(empty: House) -> None:
    """(case 77)"""
    empty.good("up", "--port", "0")
    pid = empty.server_pid()
    assert os.getsid(pid) != os.getsid(0)
    assert os.getsid(pid) == pid


def test_a_taken_port_is_no_obstacle_unless_it_was_asked_for(empty: House) -> None:
    """(case 81) Said before anything starts, with the port and the way out."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = door.getsockname()[1]
        done = empty.run("up", "--port", str(port))
        assert done.returncode == 70
        assert str(port) in done.stderr.decode()
        assert "--port" in done.stderr.decode()
        assert local.held_by(str(empty.data)) is None


def test_a_setting_that_does_not_exist_stops_the_start(empty: House) -> None:
    empty.data.mkdir(mode=0o700)
    (empty.data / "danlu.toml").write_text("prot = 1\n")
    done = empty.run("ps")
    assert done.returncode == 2
    assert b"did you mean 'port'" in done.stderr
    assert empty.run("serve").returncode == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_in_the_foreground(empty: House, number: signal.Signals) -> None:
    ready = empty.home / "ready.json"
    process = empty.start("serve", "--port", "0", "--ready-file", str(ready))
    until(ready.exists)
    said = json.loads(ready.read_text())
    assert {"api", "region", "project_id", "access_key", "secret_key"} <= said.keys()
    assert stat.S_IMODE(ready.stat().st_mode) == 0o600
    process.send_signal(number)
    process.communicate(timeout=HANG_S)
    assert process.returncode == 0


def test_clients_find_a_server_that_runs_in_the_foreground(empty: House) -> None:
    ready = empty.home / "ready.json"
    process = empty.start("serve", "--port", "0", "--ready-file", str(ready))
    until(ready.exists)
    assert empty.json("ps")["total"] == 0
    assert empty.json("up")["pid"] == process.pid
    empty.good("down")
    process.communicate(timeout=HANG_S)


def test_a_second_server_on_the_same_data_is_refused(empty: House) -> None:
    empty.good("up", "--port", "0")
    done = empty.run("serve", "--port", "0")
    assert done.returncode == 5
    assert str(empty.server_pid()) in done.stderr.decode()


@pytest.mark.parametrize("args", [["--host", "0.0.0.0"], ["--port", "70000"]])
def test_an_open_door_and_an_impossible_port_are_refused(empty: House, args: list[str]) -> None:
    """(case 83) Ports are 0 to 65535."""
    done = empty.run("serve", *args)
    assert done.returncode in (2, 5)
    assert b"--" in done.stderr


def test_a_listener_restarted_at_once_binds_again(empty: House) -> None:
    """(case 83)"""
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = str(door.getsockname()[1])
    for _ in range(3):
        empty.good("up", "--port", port)
        empty.good("ps")
        empty.good("down")


def test_what_a_dead_server_left_behind_leads_nobody_astray(empty: House, tmp_path: Path) -> None:
    """Another server has its port now: our keys mean nothing there, and ours is started."""
    empty.good("up", "--port", "0")
    old = json.loads((empty.data / "server.json").read_text())
    port = old["api"].rpartition(":")[2]
    empty.kill_server()
    other = House(tmp_path / "other", empty.home)
    other.good("up", "--port", port)
    try:
        done = empty.run("ps", env={"DANLU_PORT": "0"})
        assert done.returncode == 0, done.stderr.decode()
        assert json.loads((empty.data / "server.json").read_text())["api"] != old["api"]
    finally:
        other.good("down")


def test_down_never_hits_a_stranger(empty: House) -> None:
    """(rule 5) A number in a file is no identity."""
    empty.data.mkdir(mode=0o700)
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        (empty.data / "server.lock").write_text(f"{stranger.pid}\n")
        (empty.data / "server.json").write_text(json.dumps({"pid": stranger.pid}))
        assert empty.json("down") == {"stopped": False, "pid": None}
        assert not local.has_lock_open(str(empty.data), stranger.pid)
        time.sleep(0.05)
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_config_says_where_values_come_from(empty: House) -> None:
    empty.data.mkdir(mode=0o700)
    (empty.data / "danlu.toml").write_text('region = "lab"\n')
    done = empty.run("config", "--json", env={"DANLU_LOG_LEVEL": "debug"})
    rows = {row["name"]: row for row in json.loads(done.stdout)["settings"]}
    assert (rows["region"]["value"], rows["region"]["source"]) == ("lab", "file")
    assert (rows["log_level"]["value"], rows["log_level"]["source"]) == ("debug", "environment")
    assert rows["host"]["source"] == "default"
    assert "监听地址" in empty.good("config", "--lang", "zh")
    done = empty.run("config", env={"DANLU_DATABASE": "postgresql://u:hidden@h/d"})
    assert b"hidden" not in done.stdout


def test_doctor_looks_and_changes_nothing(empty: House) -> None:
    found = empty.json("doctor")
    assert found["ok"] is True
    assert {row["check"] for row in found["checks"]} >= {"torch", "disk", "clock", "cuda"}
    assert not empty.data.exists()
    assert "磁盘" in empty.good("doctor", "--lang", "zh")


def test_completion_offers_jobs_and_never_waits_or_complains(empty: House) -> None:
    env = {"_DANLU_COMPLETE": "bash_complete", "COMP_WORDS": "danlu show ", "COMP_CWORD": "2"}
    done = empty.run(env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    assert local.held_by(str(empty.data)) is None
    empty.good("up", "--port", "0")
    job = empty.good("run", "-d", empty.script("")).strip()
    said = empty.run(env=env).stdout.decode()
    assert job[:8] in said
    assert "@last" in said
    env = {"_DANLU_COMPLETE": "bash_complete", "COMP_WORDS": "danlu sho", "COMP_CWORD": "1"}
    assert "plain,show" in empty.run(env=env).stdout.decode()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(empty: House, shell: str) -> None:
    assert "_DANLU_COMPLETE" in empty.good("completion", shell)


def test_an_address_for_a_server_that_runs_already_is_said_to_be_too_late(empty: House) -> None:
    empty.good("up", "--port", "0")
    done = empty.run("up", "--port", "1")
    assert done.returncode == 0
    assert b"--port 1 counts at a start only" in done.stderr
    assert b"counts at a start only" not in empty.run("up").stderr


def test_last_words_are_those_of_the_server_that_was_started(empty: House) -> None:
    empty.data.mkdir()
    (empty.data / local.LOG_FILE).write_text("an old trouble\n")
    (empty.data / "danlu.toml").write_text("prot = 1\n")
    done = empty.run("serve")
    assert done.returncode == 2
    (empty.data / "danlu.toml").write_text("default_environment = '/nowhere'\n")
    done = empty.run("up", "--port", "0")
    assert done.returncode != 0
    assert b"/nowhere" in done.stderr
    assert b"an old trouble" not in done.stderr


def test_who_named_the_data_directory_is_said(empty: House, tmp_path: Path) -> None:
    def source(*args: str, env: dict[str, str] | None = None) -> str:
        rows = json.loads(empty.run("config", "--json", *args, env=env).stdout)["settings"]
        return str(next(row["source"] for row in rows if row["name"] == "data"))

    assert source() == "environment"
    assert source("--data", str(tmp_path / "x")) == "flag"
    assert source(env={"DANLU_DATA": ""}) == "default"


@pytest.mark.parametrize("words", [["config"], ["--help"], ["ps", "--help"], ["--version"]])
def test_an_output_that_takes_no_more_is_said_so_in_one_line(
    empty: House, words: list[str]
) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            empty.command(*words),
            env=empty.env,
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=HANG_S,
            check=False,
        )
    assert done.returncode == 70
    (line,) = done.stderr.decode().splitlines()
    assert "cannot be written: No space left on device" in line


def test_a_command_needs_no_file_beside_it(empty: House, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    empty.good("up", "--port", "0")
    assert empty.good("run", "--", "echo", "hi", cwd=bare) == "hi\n"
