"""The server is killed in mid-job and started again: the job does not notice."""

from __future__ import annotations

import json

import pytest

from tests.faces.cli.house import House, until

COUNT = """
import sys, time
for line in range(400):
    print(f"line {line}")
    time.sleep(0.01)
sys.exit(int(sys.argv[1].partition("=")[2]))
"""
WHOLE = "".join(f"line {line}\n" for line in range(400))


@pytest.mark.parametrize("code", [0, 7])
def test_the_log_is_whole_and_the_outcome_is_right(own_house: House, code: int) -> None:
    house = own_house
    job = house.good("run", "-d", "-q", "--param", f"code={code}", house.script(COUNT)).strip()
    for lines in (20, 120, 250):
        until(lambda lines=lines: f"line {lines}\n" in house.good("logs", job))
        house.kill_server()
    assert house.run("logs", "-f", job).returncode == (1 if code else 0)
    until(lambda: house.state(job) not in {"running", "collecting"})
    assert house.good("logs", job) == WHOLE
    shown = house.json("show", job)
    assert shown["state"] == ("succeeded" if code == 0 else "failed")
    assert shown["exit_code"] == code
    assert shown["attempt"] == 1, "it was not started again"
    keys = [json.loads(line)["key"] for line in house.good("events", job, "--json").splitlines()]
    for once in ("job-launching", "job-running", "task-exit", "job-collecting"):
        assert keys.count(once) == 1


def test_a_job_that_ends_while_no_server_runs_keeps_its_own_times(own_house: House) -> None:
    """(case 27)"""
    house = own_house
    marker = house.shared / "ended"
    script = house.script(
        "import pathlib, sys, time\n"
        "print('begin', flush=True)\n"
        "time.sleep(1)\n"
        "pathlib.Path(sys.argv[1].partition('=')[2]).write_text('x')\n"
        "sys.exit(5)\n"
    )
    job = house.good("run", "-d", "-q", "--param", f"marker={marker}", script).strip()
    until(lambda: "begin" in house.good("logs", job))
    house.kill_server()
    until(marker.exists)
    ended_ms = marker.stat().st_mtime * 1000
    house.good("up", "--port", "0")
    until(lambda: house.state(job) == "failed")
    task = house.json("show", job)["tasks"][0]
    assert task["exit_code"] == 5
    assert abs(task["ended_at"] - ended_ms) < 3000


def test_a_queue_survives(own_house: House) -> None:
    """(cases 33, 46)"""
    house = own_house
    flavors = house.json("flavors")["flavors"]
    whole = max(flavors, key=lambda flavor: flavor["cpus"])["id"]
    sleeper = house.script("import time; time.sleep(600)")
    first = house.good("run", "-d", "-q", "--flavor", whole, sleeper).strip()
    until(lambda: house.state(first) == "running")
    quick = house.script("print('done')")
    waiting = [house.good("run", "-d", "-q", quick).strip() for _ in range(3)]
    house.kill_server()
    assert [house.state(job) for job in waiting] == ["queued"] * 3
    assert first[:8] in house.good("why", waiting[0])
    house.good("stop", "--wait", first)
    until(lambda: all(house.state(job) == "succeeded" for job in waiting))
