"""Faults of the server as a process: stopped, doubled, starved, misconfigured, replaced."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from danlu.model.attempt import FINAL
from danlu.model.manifest import hidden
from danlu.node import identity
from tests.faults.chaos import Chaos
from tests.faults.checker import check
from tests.faults.client import HANG_S, Client
from tests.faults.house import opened
from tests.faults.jobs import Jobs, until, users, waiting
from tests.faults.proxy import Proxy
from tests.faults.rows import Results
from tests.services import ROOT, offered, require

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]


def test_a_server_that_stands_still_goes_on(tmp_path: Path) -> None:
    """(fault 9) SIGSTOP to the server while jobs begin and end, a second server tries to take its
    place, then SIGCONT; four times.
    """
    with opened(tmp_path) as house:
        chaos = Chaos(house, 9, 16)
        chaos.allowed = 16
        chaos.begin()
        for _ in range(4):
            time.sleep(0.7)
            os.kill(house.pid, signal.SIGSTOP)
            time.sleep(1.5)
            status, said = house.refused()
            assert status == 5, said
            assert str(house.pid) in said
            os.kill(house.pid, signal.SIGCONT)
        chaos.finish()
        history = chaos.remains()
        chaos.close()

    assert check(history) == []
    wanted = {order.label: 1 + order.retries for order in history.orders}
    assert all(len(remains.attempts) <= wanted[remains.label] for remains in history.remains)


def test_a_second_server_is_refused(tmp_path: Path) -> None:
    """(fault 10) `danlu serve` twice on one data directory; the first one does not notice."""
    with opened(tmp_path) as house, users(house) as jobs:
        job = jobs.steps("first", pause_s=0.3)
        status, said = house.refused()

        assert status == 5
        assert str(house.pid) in said
        assert str(house.data) in said
        assert jobs.until(job)["state"] == "succeeded"
        assert jobs.starts(job) == 1


def test_a_restarted_machine_is_recognised(tmp_path: Path) -> None:
    """(faults 11, 12) Everything is killed, the kernel shows another boot id, and a stranger has
    the pid of the shim: it is not touched, and the job is tried again.
    """
    offered(os.geteuid() == 0, "root, to show another boot id")
    other = tmp_path / "boot_id"
    other.write_text("00000000-1111-2222-3333-444444444444\n")
    line = f'mount --bind "{other}" /proc/sys/kernel/random/boot_id && exec "$@"'
    with opened(tmp_path) as house, users(house) as jobs:
        job = jobs.steps("before", steps=9, pause_s=1000)
        until(lambda: jobs.starts(job) == 1)
        until(lambda: jobs.show(job)["state"] == "running")
        house.close()
        for kind in ("shim", "agent"):
            for _, _, found in list(house.processes(kind)):
                identity.send(found, signal.SIGKILL)
        until(lambda: not house.survivors())
        stranger = subprocess.Popen(["sleep", "1000"])
        try:
            give_pid(jobs.directory(job), stranger.pid)
            house.restart_through("unshare", "--mount", "sh", "-c", line, "sh")
            until(lambda: jobs.attempts(job)[0][0] in FINAL)

            assert jobs.attempts(job)[0] == ("lost", "rebooted")
            until(lambda: jobs.starts(job) == 2)
            assert stranger.poll() is None
            jobs.stop(job)
            assert jobs.until(job)["state"] == "cancelled"
            assert stranger.poll() is None
        finally:
            stranger.kill()
            stranger.wait()


def give_pid(directory: Path, pid: int) -> None:
    """Write into a task's records that its processes had this pid."""
    for name, keys in (("agent.json", ["agent"]), ("task.json", ["shim", "program"])):
        record = json.loads((directory / name).read_text())
        for key in keys:
            record[key]["pid"] = pid
        (directory / name).write_text(json.dumps(record))


def test_a_lock_that_somebody_holds_is_waited_for(tmp_path: Path) -> None:
    """(fault 29) Another program holds the database's write lock for 15 s: 503 and when to come
    back, never 500, and everything goes on when it lets go.
    """
    with opened(tmp_path) as house, users(house) as jobs:
        job = jobs.steps("running", steps=2)
        jobs.until(job)
        with house.database(write=True) as database:
            database.execute("BEGIN IMMEDIATE")
            status, headers = jobs.submit_once("blocked")
            assert status == 503
            assert int(headers["retry-after"]) > 0
            assert jobs.show(job)["state"] == "succeeded", "reads go on"
            database.execute("ROLLBACK")
        assert jobs.until(jobs.steps("after", steps=1))["state"] == "succeeded"
        assert not jobs.client.refusals


def test_a_submission_whose_reply_is_lost_is_one_job(tmp_path: Path) -> None:
    """(fault 43) A proxy throws the replies to submissions away, and the client asks again."""
    with opened(tmp_path) as house, users(house) as jobs:
        proxy = Proxy(house.port)
        far = Jobs(house, Client(house.ready() or {}, proxy.port, host_port=house.port))
        try:
            code = far.steps("warm", steps=1)
            far.until(code)
            proxy.lose = 3
            job = far.steps("again", steps=2, pause_s=0.5)

            assert proxy.lost == 3
            assert far.until(job)["state"] == "succeeded"
            assert [one["name"] for one in jobs.client.get("jobs")["jobs"]] == ["again", "warm"]
            assert far.starts(job) == 1
        finally:
            far.close()
            proxy.close()


def test_ten_thousand_jobs_at_once(tmp_path: Path, faults: Results) -> None:
    """(fault 44) 10,000 submissions on 8 connections, more than may wait: each is accepted or told
    to come back (429), none fails, reads go on, and the first come first.
    """
    wanted, room = 10_000, 9_000
    found: Counter[int] = Counter()
    slowest = 0.0
    with opened(tmp_path, f"max_queued = {room}\n") as house, users(house) as jobs:
        first = jobs.steps("first", steps=1, pause_s=1000)
        until(lambda: jobs.starts(first) == 1)

        def submit(share: int) -> None:
            with closing(house.client()) as client:
                for number in range(wanted // 8):
                    body = json.dumps(waiting(f"crowd-{share}-{number}"))
                    status, headers, _ = client.once("POST", "jobs", body.encode())
                    found[status] += 1
                    if status == 429:
                        assert int(headers["retry-after"]) > 0

        began = time.monotonic()
        threads = [threading.Thread(target=submit, args=(share,)) for share in range(8)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            asked = time.monotonic()
            assert jobs.show(first)["state"] == "running"
            slowest = max(slowest, time.monotonic() - asked)
            time.sleep(0.05)
        took = time.monotonic() - began
        faults.figures["crowd"] = {
            "submissions": wanted,
            "accepted": found[201],
            "refused": found[429],
            "took_s": round(took, 1),
            "slowest_read_s": round(slowest, 2),
        }
        assert found.keys() <= {201, 429}, found
        assert found.total() == wanted
        assert room <= found[201] <= room + 8, "no more than were on their way together"
        with house.database() as database:
            assert database.execute("SELECT count(*) FROM jobs").fetchone() == (found[201] + 1,)


def test_a_server_without_descriptors_recovers(tmp_path: Path) -> None:
    """(fault 57) 64 descriptors at most, and clients that take all of them."""
    require(shutil.which("prlimit"), "prlimit: apt install util-linux")
    prefix = ["prlimit", "--nofile=64:64"]
    with opened(tmp_path, cold=True, prefix=prefix) as house, users(house) as jobs:
        before = jobs.steps("before", steps=3, pause_s=0.5)
        until(lambda: jobs.starts(before) == 1)
        crowd = [socket.create_connection(("127.0.0.1", house.port)) for _ in range(100)]
        time.sleep(2)
        assert house.alive()
        for one in crowd:
            one.close()

        assert jobs.until(before)["state"] == "succeeded"
        assert jobs.until(jobs.steps("after", steps=1))["state"] == "succeeded"
        assert not jobs.client.refusals
        assert house.said().count("Too many open files") < 20, "it is not told without end"


@pytest.mark.parametrize(
    ("line", "near"), [("prot = 1", "port"), ("max_qeued = 5", "max_queued"), ("zzz = 1", "zzz")]
)
def test_a_misspelt_setting_stops_the_start(tmp_path: Path, line: str, near: str) -> None:
    """(fault 59) An unknown key in danlu.toml."""
    with opened(tmp_path) as house:
        house.kill()
        text = (house.data / "danlu.toml").read_text()
        (house.data / "danlu.toml").write_text(f"{line}\n{text}")
        status, said = house.refused()

        assert status == 2
        assert line.split(maxsplit=1)[0] in said
        assert near in said
        assert "danlu.toml" in said


FIRST = "src/danlu/stores/folder/uploads.py"
"""Came with version 2 of the index of objects. Agents of before, which no release has ever had,
cannot store anything beside a later server; those of then and after have to.
"""


def earlier_sources(root: Path) -> Path:
    """The sources of an earlier commit, checked out below `root`."""
    git = shutil.which("git")
    require(git and (ROOT / ".git").exists(), "a git checkout, for an earlier version")
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "log", "--first-parent", "--format=%H", "-n", "400", "--", "src"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    able = [one for one in listed[1:] if has(one, FIRST)]
    if not able:
        pytest.skip("no earlier version that the harness can run is in this checkout")
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", able[-1], "src"], check=True, capture_output=True
    ).stdout
    root.mkdir()
    subprocess.run(["tar", "-x", "-C", str(root)], input=archive, check=True)
    return root / "src"


def has(commit: str, path: str) -> bool:
    words = ["git", "-C", str(ROOT), "cat-file", "-e", f"{commit}:{path}"]
    return subprocess.run(words, check=False, capture_output=True).returncode == 0


def danlu(sources: Path, data: Path, *words: str) -> str:
    """What the command line of these sources prints."""
    variables = {"PATH": os.environ["PATH"], "HOME": str(data), "LANG": "C.UTF-8"}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "danlu", *words],
        env={**variables, "PYTHONPATH": str(sources), "DANLU_DATA": str(data)},
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_upgrade_under_running_jobs(tmp_path: Path) -> None:
    """(fault 60; case 110) A server of an earlier commit starts jobs and is killed; the one of this
    commit adopts them with the agents that they have, and stops one of them. The command line of
    that earlier commit goes on with it.
    """
    old = earlier_sources(tmp_path / "old")
    with opened(tmp_path, sources=old) as house, users(house) as jobs:
        going = [jobs.steps(f"going-{number}", steps=20, pause_s=0.4) for number in range(4)]
        ending = jobs.steps("ending", steps=6, pause_s=0.2)
        doomed = jobs.steps("doomed", steps=1, pause_s=1000)
        until(lambda: all(jobs.starts(job) == 1 for job in (*going, ending, doomed)))
        until(lambda: jobs.show(going[-1])["state"] == "running")
        house.close_server()
        until(lambda: len(jobs.witness.living()) == 5)
        house.sources = ROOT / "src"
        house.start()
        jobs.stop(doomed)

        assert jobs.until(doomed)["state"] == "cancelled"
        assert [jobs.until(job)["state"] for job in (*going, ending)] == ["succeeded"] * 5
        assert all(jobs.starts(job) == 1 for job in (*going, ending, doomed))
        assert jobs.log(ending).count(b"\n") == 6
        assert sum(not hidden(name) for name in jobs.outputs("faults/ending/")) == 8
        assert danlu(old, house.data, "logs", ending).count("\n") == 6
        assert json.loads(danlu(old, house.data, "show", doomed, "--json"))["state"] == "cancelled"
        house.kill()
        assert house.integrity() == "ok"


def test_going_back_to_an_earlier_version(tmp_path: Path) -> None:
    """(fault 31) The database of a newer program, with jobs in it: refused with both versions and
    left as it is.
    """
    with opened(tmp_path) as house, users(house) as jobs:
        job = jobs.steps("kept", steps=1)
        jobs.until(job)
        house.kill()
        with house.database(write=True) as database:
            (mine,) = database.execute("SELECT version_num FROM danlu_revision").fetchone()
            database.execute("UPDATE danlu_revision SET version_num = '9999'")
        status, said = house.refused()
        assert status != 0
        assert "9999" in said
        assert mine in said
        with house.database(write=True) as database:
            database.execute("UPDATE danlu_revision SET version_num = ?", (mine,))
        house.start()
        assert jobs.show(job)["state"] == "succeeded"
