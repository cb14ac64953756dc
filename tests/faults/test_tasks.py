"""Faults of jobs as processes: trees that will not end, and logs that are no text."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from danlu.node.agent import MOST_STARTS
from tests.fakes.fuse import stuck
from tests.faults.house import opened
from tests.faults.jobs import until, users

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

HOSTILE = """
    import os, signal, time

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    for _ in range(4):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.setsid()
                os.environ.clear()
                while True:
                    if os.fork() == 0:
                        time.sleep(0.05)
                        os._exit(0)
                    os.wait()
            os._exit(0)
    print("up", flush=True)
    while True:
        time.sleep(60)
"""


def test_a_hostile_tree_is_gone_after_a_stop(tmp_path: Path) -> None:
    """(faults 13, 14) Double forks, sessions of their own, no SIGTERM heard, forking on and on; a
    user stops the job with a grace of 1 s.
    """
    with opened(tmp_path) as house, users(house) as jobs:
        job = jobs.script(HOSTILE, grace_s=1)
        jobs.printed(job, b"up")
        assert len(house.survivors()) >= 1
        began = time.monotonic()
        jobs.stop(job)
        shown = jobs.until(job)

        assert shown["state"] == "cancelled"
        assert time.monotonic() - began >= 1, "it had its grace"
        assert (shown["tasks"][0]["signal"], shown["exit_code"]) == ("SIGKILL", 137)
        until(lambda: not house.survivors())


def test_agents_killed_before_the_program_cost_time_and_no_attempt(tmp_path: Path) -> None:
    """(fault 2) One agent after the other is killed while it prepares a task: the task begins in
    the same attempt all the same. Only when every start has ended like that is it given up.
    """
    with opened(tmp_path) as house, users(house) as jobs:
        announced = house.orders / "agent.announced"
        announced.write_text("kill\n" * (MOST_STARTS - 1))
        job = jobs.steps("begun", steps=1)
        shown = jobs.until(job)
        assert (shown["state"], jobs.attempts(job)) == ("succeeded", [("succeeded", "completed")])
        assert announced.read_text() == "", "all of them were killed"

        announced.write_text("kill\n" * MOST_STARTS)
        job = jobs.steps("given-up", steps=1)
        assert jobs.until(job)["state"] == "succeeded"
        assert jobs.attempts(job) == [("failed", "agent-lost"), ("succeeded", "completed")]
        assert jobs.starts(job) == 1, "no work was done twice"


def test_a_process_that_cannot_be_killed_holds_nobody_up(tmp_path: Path) -> None:
    """(fault 15) A child reads from a file system (FUSE) that never answers, and is stopped: the
    job ends within its bound and says what is left; the next one runs.
    """
    with stuck(tmp_path / "stuck") as broken, opened(tmp_path) as house, users(house) as jobs:
        job = jobs.script(
            """
            import os, sys
            where, = [a.split("=", 1)[1] for a in sys.argv if a.startswith("--data=")]
            print("reading", flush=True)
            open(os.path.join(where, "stuck"), "rb").read(1)
            """,
            grace_s=1,
            inputs=[
                {"name": "data", "remote": {"obs": {"obs_url": f"file://{broken.place}/"}}},
            ],
        )
        until(broken.waiting.is_set)
        jobs.stop(job)

        assert jobs.until(job)["state"] == "cancelled"
        assert "leftovers-unkillable" in jobs.events(job) or jobs.attempts(job)[0][1] == "stopped"
        assert jobs.until(jobs.steps("next", steps=1))["state"] == "succeeded"


def test_a_program_that_takes_more_memory_than_it_has(tmp_path: Path) -> None:
    """(fault 17) Far beyond the flavor's 64 MiB, or the machine's own limit where no control group
    can be made.
    """
    with opened(tmp_path) as house, users(house) as jobs:
        job = jobs.script(
            """
            hoard = []
            while len(hoard) < 4096:
                hoard.append(bytearray(b"x" * (1 << 20)))
            """
        )
        shown = jobs.until(job)

        if "limits-unenforced" in jobs.events(job):
            pytest.skip("no control group can be made here")
        assert shown["state"] == "failed"
        assert shown["reason"]["code"] == "out-of-memory"
        assert "64 MiB" in shown["reason"]["sentence"]
        assert house.alive()


def test_a_log_of_any_bytes(tmp_path: Path) -> None:
    """(fault 46) Every byte there is, no UTF-8, NULs, a line of 1 MiB: read back as it was."""
    with opened(tmp_path) as house, users(house) as jobs:
        job = jobs.script(
            """
            import sys
            out = sys.stdout.buffer
            out.write(bytes(range(256)) * 64 + b"\\n")
            out.write(b"\\xff\\xfe\\x00 not text \\xc3\\x28\\n" * 100)
            out.write(b"y" * (1 << 20) + b"\\n")
            out.write("丹炉\\n".encode() + b"no line end")
            """
        )
        jobs.until(job)
        wanted = bytes(range(256)) * 64 + b"\n" + b"\xff\xfe\x00 not text \xc3\x28\n" * 100
        wanted += b"y" * (1 << 20) + b"\n" + "丹炉\n".encode() + b"no line end"

        assert jobs.whole_log(job) == wanted
        assert not jobs.client.refusals
