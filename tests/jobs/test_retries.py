"""Real scripts that fail, are killed or lose their machine's programs, and come back."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

from danlu.node import identity
from danlu.ports import task_directory as files
from tests.faces.cli.house import House, until

COUNTS = """
import os, pathlib, sys
out = pathlib.Path(sys.argv[1].partition("=")[2])
seen = sorted(file.name for file in out.iterdir())
print("attempt", os.environ["DANLU_ATTEMPT"], os.environ.get("DANLU_RESUME", "-"), *seen)
(out / f"step-{len(seen) + 1}.ckpt").write_text("x" * 1000)
sys.exit(0 if len(seen) == 2 else 10 + len(seen))
"""

WAITS = """
import os, pathlib, sys, time
out = pathlib.Path(sys.argv[1].partition("=")[2])
if os.environ["DANLU_ATTEMPT"] == "2":
    print("resumed with", *sorted(file.name for file in out.iterdir()))
    sys.exit(0)
(out / "step-1.ckpt").write_text("x")
print("up", flush=True)
while True:
    time.sleep(60)
"""

SMALL_GANG = ("--nodes", "2", "--flavor", "danlu.cpu.1u")

GANG = """
import os, sys, time
rank, attempt = os.environ["VC_TASK_INDEX"], os.environ["DANLU_ATTEMPT"]
print("rank", rank, "attempt", attempt, flush=True)
if attempt == "1":
    if rank == "1":
        sys.exit(9)
    time.sleep(600)
"""


def submit(house: House, text: str, *options: str) -> str:
    return house.good("run", "-d", "-q", *options, house.script(text)).strip()


def history(house: House, job: str) -> list[str]:
    return [json.loads(line)["key"] for line in house.good("events", job, "--json").splitlines()]


def directory(house: House, job: str, attempt: int) -> Path:
    return house.data / "engine" / "tasks" / f"{job}-{attempt}-0"


def shim(house: House, job: str) -> Any:
    return json.loads((directory(house, job, 1) / files.TASK).read_text("utf-8"))["shim"]


def test_a_script_that_fails_twice_resumes_and_succeeds(house: House) -> None:
    """It finds in its output what its earlier attempts wrote there, and nothing else."""
    place = house.home / "results"
    place.mkdir()
    (place / "of-an-earlier-job").write_text("old")
    before = place.stat().st_mtime
    until(lambda: time.time() > before + 0.1)
    job = submit(house, COUNTS, "--retries", "2", "--output", f"out={place}")
    until(lambda: house.state(job) == "succeeded")
    shown = house.json("show", job)
    assert (shown["attempt"], shown["retries"]) == (3, 2)
    assert [
        (one["attempt"], one["state"], one["cause"], one["reason"]["params"]["exit_code"])
        for one in shown["earlier"]
    ] == [(1, "failed", "user-error", 10), (2, "failed", "user-error", 11)]
    assert house.good("logs", job) == "attempt 3 1 step-1.ckpt step-2.ckpt\n"
    stored = sorted(file.name for file in place.iterdir() if file.is_file())
    assert stored == ["of-an-earlier-job", "step-1.ckpt", "step-2.ckpt", "step-3.ckpt"]
    keys = history(house, job)
    assert keys.count("job-retrying") == 2
    assert keys.count("job-succeeded") == 1
    text = house.good("show", job)
    assert "user-error" in text
    assert "exited with code 10" in text


def test_a_killed_shim_is_the_platforms_fault(house: House) -> None:
    """(fault 3) No retries were asked for: the platform makes good what it lost."""
    job = submit(house, WAITS, "--output", "out")
    until(lambda: "up" in house.good("logs", job))
    assert identity.send(shim(house, job), signal.SIGKILL)
    until(lambda: house.state(job) == "succeeded")
    shown = house.json("show", job)
    assert shown["attempt"] == 2
    assert shown["earlier"][0]["cause"] == "platform"
    assert house.good("logs", job) == "resumed with step-1.ckpt\n"
    assert (directory(house, job, 1) / files.FENCED).exists()


def test_everything_killed_at_once_is_one_more_attempt(own_house: House) -> None:
    """(fault 4) Server, agent and shim: the next server finds it, counts it once, goes on."""
    house = own_house
    job = submit(house, WAITS, "--output", "out")
    until(lambda: "up" in house.good("logs", job))
    agent = json.loads((directory(house, job, 1) / files.AGENT).read_text("utf-8"))["agent"]
    killed = shim(house, job)
    house.kill_server()
    for victim in (agent, killed):
        assert identity.send(victim, signal.SIGKILL)
    house.good("up", "--port", "0")
    until(lambda: house.state(job) == "succeeded")
    assert house.json("show", job)["attempt"] == 2
    assert history(house, job).count("job-retrying") == 1


def test_a_wait_for_the_next_attempt_is_explained_and_can_be_stopped(house: House) -> None:
    """(case 29)"""
    job = submit(house, "import sys; sys.exit(3)", "--retries", "50")
    until(lambda: house.json("show", job)["attempt"] >= 3 and house.state(job) == "queued")
    why = house.json("why", job)
    assert why["key"] == "waiting-retry"
    assert why["position"] == 1
    assert why["sentence"].endswith("task worker-0 exited with code 3")
    house.good("stop", "--wait", job)
    assert house.state(job) == "cancelled"
    attempts = house.json("show", job)["attempt"]
    assert len(list((house.data / "engine" / "tasks").glob(f"{job}-*"))) < attempts


def test_all_ranks_of_a_gang_begin_again(house: House) -> None:
    """(case 34) (case 64)"""
    job = submit(house, GANG, *SMALL_GANG, "--retries", "1", "--grace", "1s")
    until(lambda: house.state(job) == "succeeded")
    for rank in range(2):
        log = house.good("logs", job, "--task", f"worker-{rank}")
        assert log == f"rank {rank} attempt 2\n"
    first = house.json("show", job)["earlier"][0]
    assert first["reason"]["params"] == {"task": "worker-1", "exit_code": 9}


def test_no_cause_at_all_means_one_attempt(house: House) -> None:
    job = submit(house, "import sys; sys.exit(3)", "--retries", "5", "--retry-on", "none")
    until(lambda: house.state(job) == "failed")
    assert house.json("show", job)["attempt"] == 1


def test_an_unknown_cause_is_refused_with_those_there_are(house: House) -> None:
    done = house.run("run", "-d", "--retry-on", "weather", house.script("pass"))
    assert done.returncode == 2
    said = done.stderr.decode()
    assert "danlu.retry_on[0]" in said
    assert "user-error" in said


TALKS = """
import os, sys
attempt = int(os.environ["DANLU_ATTEMPT"])
print("attempt", attempt, "begins")
print("attempt", attempt, "ends")
sys.exit(0 if attempt == 3 else 5)
"""


def test_whoever_stays_with_a_job_sees_every_attempt(house: House) -> None:
    done = house.run("run", "--retries", "2", house.script(TALKS))
    assert done.returncode == 0, done.stderr.decode()
    whole = "".join(f"attempt {n} {what}\n" for n in (1, 2, 3) for what in ("begins", "ends"))
    assert done.stdout.decode() == whole
    said = done.stderr.decode()
    assert "attempt 2 follows: task worker-0 exited with code 5" in said
    assert "attempt 3 follows" in said


def test_the_log_of_each_attempt_can_be_read(house: House) -> None:
    job = submit(house, TALKS, "--retries", "2")
    until(lambda: house.state(job) == "succeeded")
    for number in (1, 2, 3):
        log = house.good("logs", job, "--attempt", str(number))
        assert log == f"attempt {number} begins\nattempt {number} ends\n"
        assert house.good("logs", job, "-f", "--attempt", str(number)) == log
        tail = house.good("logs", job, "--attempt", str(number), "--tail", "1")
        assert tail == f"attempt {number} ends\n"
    assert house.good("logs", job) == house.good("logs", job, "--attempt", "3")
    missing = house.run("logs", job, "--attempt", "4")
    assert missing.returncode == 4
    assert "it has had 3" in missing.stderr.decode()


HANGS = """
import os, time
def waits_for_the_other_rank():
    time.sleep(600)
print("up", flush=True)
if os.environ["DANLU_ATTEMPT"] == "1":
    waits_for_the_other_rank()
print("well", flush=True)
"""


def test_a_hang_is_told_with_its_stacks_and_can_be_restarted(house: House) -> None:
    """(fault 53)"""
    options = ("--hang-after", "2s", "--on-hang", "restart", "--retries", "1", "--grace", "1s")
    job = submit(house, HANGS, *options)
    until(lambda: house.state(job) == "succeeded")
    (first,) = house.json("show", job)["earlier"]
    assert (first["reason"]["code"], first["cause"]) == ("hung", "hang")
    kept = Path(first["reason"]["params"]["path"]).read_text("utf-8")
    assert "--- process" in kept
    assert "waits_for_the_other_rank" in kept or "no Python stack" in kept
    keys = history(house, job)
    assert keys.index("task-hangs") < keys.index("job-stopping") < keys.index("job-retrying")


def test_a_hang_is_a_flag_unless_more_is_wanted(house: House) -> None:
    job = submit(house, HANGS, "--hang-after", "2s")
    until(lambda: house.json("show", job)["tasks"][0]["hung_at"] is not None)
    assert house.state(job) == "running"
    assert house.json("why", job)["key"] == "is-hung"
    assert "(hangs)" in house.good("show", job)
    house.good("stop", "--wait", job)


PRINTS = """
import sys
print("50%\\r100%\\rdone", flush=True)
sys.stdout.write("x" * 100_000 + "\\n")
print("ValueError: the data in row 7 are bad", file=sys.stderr)
sys.exit(3)
"""


def test_a_line_of_the_log_ends_all_trying(house: House) -> None:
    job = submit(house, PRINTS, "--retries", "3", "--no-retry-on-log", "ValueError:*row*bad")
    until(lambda: house.state(job) == "failed")
    shown = house.json("show", job)
    assert shown["attempt"] == 1
    assert shown["reason"]["sentence"] == (
        "task worker-0 exited with code 3; worker-0 printed"
        " 'ValueError: the data in row 7 are bad', after which the job is not tried again"
    )
    assert "log-matched" in history(house, job)


def test_a_line_of_another_kind_changes_nothing(house: House) -> None:
    job = submit(house, PRINTS, "--retries", "1", "--no-retry-on-log", "row*ValueError")
    until(lambda: house.state(job) == "failed")
    assert house.json("show", job)["attempt"] == 2
