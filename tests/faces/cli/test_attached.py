"""Staying with a job: Ctrl-C, terminals, pipes that close, servers that die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.faces.cli import local
from tests.faces.cli.house import HANG_S, House, Typed, opened, until
from tests.faces.cli.scripted import Scripted, reply

COUNT = """\
import os, time
n, gate = 0, os.environ["GATE"]
while not os.path.exists(gate):
    print("line", n, flush=True)
    n += 1
    time.sleep(0.02)
print("last", n, flush=True)
"""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[House]:
    """A house of the test's own, because its server gets killed."""
    with opened(tmp_path) as made:
        yield made


def gate(house: House) -> Path:
    return house.home / f"gate-{os.urandom(4).hex()}"


def last_job(house: House) -> str:
    return str(house.json("show", "@last")["id"])


def test_the_first_ctrl_c_detaches_and_says_how_to_go_on(house: House) -> None:
    """(sky#402) The job goes on; both ways back are named."""
    until_there = gate(house)
    typed = Typed(house, "run", "--env", f"GATE={until_there}", house.script(COUNT))
    typed.read_until(b"line 3")
    typed.press(b"\x03")
    assert typed.finish() == 130
    job = last_job(house)
    assert f"danlu logs -f {job[:8]}".encode() in typed.seen
    assert f"danlu stop {job[:8]}".encode() in typed.seen
    assert house.state(job) == "running"
    until_there.touch()
    log = house.good("logs", "-f", job)
    assert log.splitlines()[-1] == f"last {len(log.splitlines()) - 1}"


def test_ctrl_c_without_a_terminal_detaches_without_a_question(house: House) -> None:
    until_there = gate(house)
    process = house.start("run", "--env", f"GATE={until_there}", house.script(COUNT))
    assert process.stdout is not None
    assert process.stdout.readline() == b"line 0\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 130
    assert b"still running" in err
    assert house.state(last_job(house)) == "running"
    until_there.touch()
    house.good("logs", "-f", "@last")


def test_following_a_log_detaches_alike(house: House) -> None:
    until_there = gate(house)
    job = house.good("run", "-d", "--env", f"GATE={until_there}", house.script(COUNT)).strip()
    typed = Typed(house, "logs", "-f", job)
    typed.read_until(b"line 3")
    typed.press(b"\x03")
    assert typed.finish() == 130
    assert house.state(job) == "running"
    until_there.touch()
    house.good("logs", "-f", job)


def test_a_terminal_sees_no_control_characters_but_colours(house: House) -> None:
    script = house.script(
        "print('\\x1b[31mred\\x1b[0m \\x1b[2J\\x1b]0;title\\x07 50%\\r100%', '中文')\n"
    )
    typed = Typed(house, "run", script)
    assert typed.finish() == 0
    assert b"\x1b[31mred\x1b[0m \\x1b[2J\\x1b]0;title\\x07 50%\r100% " in typed.seen
    assert "中文".encode() in typed.seen


def test_a_waiting_job_says_why_in_one_line(house: House) -> None:
    most = house.json("flavors")["flavors"][-1]["id"]
    until_there = gate(house)
    first = house.good(
        "run", "-d", "--flavor", most, "--env", f"GATE={until_there}", house.script(COUNT)
    ).strip()
    # A job of another test may be ending; nobody but the first is to be waited for.
    until(lambda: house.json("show", first)["state"] == "running")
    process = house.start("run", "--flavor", most, house.script("print('now')"))
    until(lambda: len(house.json("ps", "--state", "queued")["jobs"]) == 1)
    waiting = house.json("ps", "--state", "queued")["jobs"][0]["id"]
    assert first[:8] in house.good("why", waiting)
    assert house.good("logs", waiting) == ""  # (case 12) not written yet is no error
    typed = Typed(house, "logs", "-f", waiting)
    typed.read_until(b"waiting: ")
    until_there.touch()
    typed.read_until(b"now")
    assert typed.finish() == 0
    out, err = process.communicate(timeout=HANG_S)
    assert (process.returncode, out) == (0, b"now\n")
    assert err.count(b"waiting: ") == 1
    assert first[:8].encode() in err


def test_a_reader_that_leaves_ends_it_quietly(house: House) -> None:
    script = house.script("for n in range(100000): print('line', n)")
    with house.start("run", script) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"line 0\n"
        process.stdout.close()
        err = process.stderr.read()
        assert process.wait(HANG_S) == 141
    assert b"Traceback" not in err
    assert b"rror" not in err
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" | head -n 1', "sh", *house.command("events", "@last")],
        env=house.env,
        capture_output=True,
        timeout=HANG_S,
        check=True,
    )
    assert done.stderr == b""


def test_an_attached_run_survives_the_death_of_its_server(own: House) -> None:
    """The job goes on; the client brings the server back and misses nothing."""
    until_there = gate(own)
    process = own.start("run", "--env", f"GATE={until_there}", own.script(COUNT))
    assert process.stdout is not None
    head = [process.stdout.readline() for _ in range(5)]
    own.kill_server()
    until(lambda: local.held_by(str(own.data)) is not None)
    assert own.json("show", "@last")["state"] == "running"
    until_there.touch()
    out, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, err.decode()
    lines = (b"".join(head) + out).decode().splitlines()
    assert lines == [*(f"line {n}" for n in range(len(lines) - 1)), f"last {len(lines) - 1}"]


def test_an_attached_run_waits_for_a_server_that_was_stopped_on_purpose(own: House) -> None:
    until_there = gate(own)
    with own.start("run", "--env", f"GATE={until_there}", own.script(COUNT)) as process:
        assert process.stdout is not None
        head = [process.stdout.readline() for _ in range(5)]
        own.good("down")
        said: list[bytes] = []

        def listen() -> None:
            assert process.stderr is not None
            said.extend(iter(process.stderr.readline, b""))

        listener = threading.Thread(target=listen)
        listener.start()
        until(lambda: any(b"the server is away" in line for line in said))
        assert local.held_by(str(own.data)) is None
        own.good("up", "--port", "0")
        until_there.touch()
        out = process.stdout.read()
        listener.join(HANG_S)
        assert process.wait(HANG_S) == 0
    lines = (b"".join(head) + out).decode().splitlines()
    assert lines == [*(f"line {n}" for n in range(len(lines) - 1)), f"last {len(lines) - 1}"]


def test_the_next_command_brings_a_dead_server_back(own: House) -> None:
    job = own.good("run", "-d", own.script("print('hi')")).strip()
    own.good("logs", "-f", job)
    own.kill_server()
    done = own.run("logs", job)
    assert (done.returncode, done.stdout) == (0, b"hi\n")
    assert done.stderr.count(b"\n") == 1
    assert b"the server is up" in done.stderr


def test_tail_and_grep(house: House) -> None:
    job = house.good("run", "-d", house.script("for n in range(3000): print('line', n)")).strip()
    house.good("logs", "-f", job)
    assert house.good("logs", "--tail", "2", job) == "line 2998\nline 2999\n"
    assert house.good("logs", "--tail", "0", job) == ""
    assert len(house.good("logs", "--tail", "99999", job).splitlines()) == 3000
    assert house.good("logs", "--grep", "^line 29.9$", job).splitlines()[0] == "line 2909"
    found = [
        json.loads(one) for one in house.good("logs", "--json", "--grep", "2999", job).splitlines()
    ]
    assert [one["text"] for one in found] == ["line 2999"]
    assert house.run("logs", "--grep", "(", job).returncode == 2
    assert house.good("logs", "--lines", "7:9", job) == "line 6\nline 7\nline 8\n"
    assert house.good("logs", "-n", "--lines", "2999:", job) == (
        "  2999  line 2998\n  3000  line 2999\n"
    )
    assert house.good("logs", "--lines", "1", job) == "line 0\n"
    assert house.good("logs", "--lines", "4000:", job) == ""
    assert house.good("logs", "-n", "--grep", "line 299[89]", job) == (
        "  2999  line 2998\n  3000  line 2999\n"
    )
    assert house.good("logs", "-n", "--tail", "3", "--grep", "7", job) == "  2998  line 2997\n"
    for wrong in (["--lines", "x"], ["--lines", "0:4"], ["--lines", "1:2", "--tail", "1"]):
        assert house.run("logs", *wrong, job).returncode == 2
    assert house.run("logs", "--task", "worker-9", job).returncode == 4


def test_a_name_that_is_empty_is_told(house: House) -> None:
    """A script's variable that nobody set."""
    for command in ("stop", "show", "logs", "why"):
        told = house.run(command, "")
        assert told.returncode == 2
        assert b"@last" in told.stderr


def test_a_closed_stdout_is_nobody_who_reads(house: House) -> None:
    line = ["sh", "-c", '"$@" >&-', "sh", *house.command("ps", "-q")]
    told = subprocess.run(line, env=house.env, capture_output=True, check=False, timeout=HANG_S)
    assert (told.returncode, told.stderr) == (0, b"")


def test_stop_and_remove(house: House) -> None:
    job = house.good("run", "-d", house.script("import time; time.sleep(600)")).strip()
    assert house.run("rm", "--yes", job).returncode == 5
    assert house.run("rm", job).returncode == 2
    stopped = json.loads(house.good("stop", "--wait", "--json", job))
    assert stopped["state"] == "cancelled"
    typed = Typed(house, "rm", job)
    typed.read_until(b"[y/N]")
    typed.press(b"n\n")
    assert typed.finish() == 130
    house.good("rm", "--yes", job)
    assert house.run("show", job).returncode == 4
    live = house.good("run", "-d", house.script("import time; time.sleep(600)")).strip()
    told = house.run("stop", live)
    assert b"will stop" in told.stdout + told.stderr
    assert house.json("rm", "--stop", "--yes", live) == {"id": live, "deleted": True}


ANSWER = {
    "id": "1a2b3c4d-0000-4000-8000-000000000000", "name": "slow", "state": "queued",
    "node_count": 1, "exit": None, "outputs": [],
}  # fmt: skip


def slowly_submitting(tmp_path: Path, server: Scripted) -> subprocess.Popen[bytes]:
    house = House(tmp_path / "data", tmp_path)
    keys = {"DANLU_ACCESS_KEY": "A", "DANLU_SECRET_KEY": "S", "DANLU_SERVER": server.api}
    house.env |= keys
    return house.start("run", "--no-code", "--", "true")


PROJECTS = reply(b'{"projects": [{"id": "p"}]}')


def test_ctrl_c_while_submitting_still_names_the_job(tmp_path: Path) -> None:
    """(case 80) The answer is awaited, because it says what was made."""
    with (
        Scripted([[PROJECTS], [1.0, reply(json.dumps(ANSWER).encode(), "201 Created")]]) as server,
        slowly_submitting(tmp_path, server) as process,
    ):
        until(lambda: len(server.requests) == 2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 130
    assert b"danlu logs -f 1a2b3c4d" in err


def test_a_second_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    with (
        Scripted([[PROJECTS], [1.0, reply(b"{}")]]) as server,
        slowly_submitting(tmp_path, server) as process,
    ):
        until(lambda: len(server.requests) == 2)
        process.send_signal(signal.SIGINT)
        until(lambda: signal_is_default(process.pid))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=HANG_S)
    assert process.returncode == -signal.SIGINT


def signal_is_default(pid: int) -> bool:
    """Whether SIGINT is no longer caught by a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("SigCgt:"):
            return not int(line.split()[1], 16) >> (signal.SIGINT - 1) & 1
    return False
