"""Over SSH into running jobs: OpenSSH's own programs, sent on their way by the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from danlu.faces.cli.failure import MISSING, USAGE
from tests.faces.cli.house import HANG_S, House
from tests.services import require

pytestmark = pytest.mark.timeout(300)

PROGRAMS = ("ssh", "scp", "rsync", "ssh-keygen", "/usr/sbin/sshd")
FLAVOR = "danlu.cpu.1u"
UNTIL_TOLD = """\
import os, pathlib, time
print("began", flush=True)
while not pathlib.Path("stop").exists():
    time.sleep(0.05)
print("told", os.environ["COLOUR"], flush=True)
"""


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    require(all(map(shutil.which, PROGRAMS)), "OpenSSH and rsync: apt-get install ssh rsync")
    home = tmp_path / "home 家"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    made = House(tmp_path / "da ta 数据", home)
    identity = home / ".ssh" / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", identity], check=True)
    # ssh asks the system, not HOME, where a user's files are.
    (home / ".ssh" / "config").write_text(
        f'Host *.danlu *.danlu-door\n  IdentityFile "{identity}"\n'
    )
    made.good("up", "--port", "0")
    made.good("key", "add", f"{identity}.pub", "--name", "mine")
    yield made
    for job in made.good("ps", "-q").split():
        made.run("stop", job)
    made.run("down")


def submitted(house: House, *options: str) -> str:
    """A running job that ends when it finds the file `stop` in its directory."""
    script = house.script(UNTIL_TOLD)
    words = ("run", "-d", "-q", "--env", "COLOUR=blue", "--flavor", FLAVOR, *options, script)
    job = house.good(*words).strip()
    until(lambda: house.state(job) == "running")
    return job


def until(condition: Callable[[], object]) -> None:
    ends = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < ends, "it never came"
        time.sleep(0.1)


def client(house: House, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        words, env=house.env, cwd=house.home, input=stdin, capture_output=True, timeout=HANG_S,
        check=False,
    )  # fmt: skip


def within(house: House, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """`danlu ssh`, once SSH answers."""
    done = client(house, *house.command("ssh", *words), stdin=stdin)
    ends = time.monotonic() + HANG_S
    while (
        done.returncode != 0 and b"does not answer yet" in done.stderr and time.monotonic() < ends
    ):
        time.sleep(0.2)
        done = client(house, *house.command("ssh", *words), stdin=stdin)
    return done


def test_a_job_over_ssh_that_ends_as_if_nobody_were_there(house: House) -> None:
    """Its environment is there in commands and in logins; a session ends with the job, which does
    not wait for it.
    """
    job = submitted(house, "--ssh", "--name", "train")
    say = 'echo "$COLOUR|$VC_TASK_INDEX|$PWD"; exit 7'
    done = within(house, job, "--", say)
    assert done.returncode == 7, done.stderr
    colour, index, cwd = done.stdout.decode().strip().split("|")
    assert (colour, index) == ("blue", "0")
    script = b'shopt login_shell; echo "$COLOUR|$PWD|$MA_SCRIPT_INTERPRETER"; exit 3\n'
    login = within(house, "train", stdin=script)
    assert login.returncode == 3, login.stderr
    assert login.stdout.decode().splitlines()[-1].startswith(f"blue|{cwd}|/")

    # A host of ssh's own, for other programs.
    assert house.good("code", "train", "--print").strip() == "train.danlu"
    (config,) = (house.home / ".ssh" / "danlu").glob("*.ssh")
    (house.home / "数据.bin").write_bytes(os.urandom(1 << 20))
    sent = client(house, "scp", "-q", "-F", str(config), "数据.bin", "train.danlu:a.bin")
    assert sent.returncode == 0, sent.stderr
    back = client(house, "rsync", "-e", f"ssh -F '{config}'", "train.danlu:a.bin", "back.bin")
    assert back.returncode == 0, back.stderr
    assert (house.home / "back.bin").read_bytes() == (house.home / "数据.bin").read_bytes()

    open_session = subprocess.Popen(
        house.command("ssh", job, "--", "echo in; exec sleep 100000"), env=house.env,
        cwd=house.home, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert open_session.stdout is not None
        assert open_session.stdout.readline() == b"in\n"
        assert within(house, job, "--", "touch stop").returncode == 0
        until(lambda: house.state(job) == "succeeded")
        assert open_session.wait(HANG_S) != 0
    finally:
        open_session.kill()
        open_session.communicate()
    assert house.good("logs", job).split() == ["began", "told", "blue"]
    assert house.run("ssh", job, "--", "true").returncode == MISSING


def test_which_task_of_a_job(house: House) -> None:
    job = submitted(house, "--ssh", "--nodes", "2")
    for words, index in (((), "0"), (("--task", "1"), "1"), (("--task", "worker-0"), "0")):
        done = within(house, *words, job, "--", "echo $VC_TASK_INDEX")
        assert done.stdout.decode().strip() == index, done.stderr
    done = house.run("ssh", "--task", "2", job)
    assert done.returncode == MISSING
    assert b"worker-0, worker-1" in done.stderr


def test_who_gets_in(house: House) -> None:
    """Nobody where SSH was not asked for; with keys named, only those."""
    quiet = submitted(house)
    done = house.run("ssh", quiet, "--", "true")
    assert done.returncode != 0
    assert b"--ssh" in done.stderr
    body = {
        "metadata": {"name": "keys"},
        "algorithm": {"command": "sleep 1000"},
        "spec": {"resource": {"flavor_id": FLAVOR}},
        "endpoints": {"ssh": {"key_pair_names": ["hers"]}},
    }
    job = house.home / "job.json"
    job.write_text(json.dumps(body))
    refused = house.run("run", "-d", "-f", str(job))
    assert refused.returncode == USAGE
    assert b"endpoints.ssh.key_pair_names" in refused.stderr
    assert b"'hers'" in refused.stderr
    assert b"mine" in refused.stderr
    body["endpoints"] = {"ssh": {"key_pair_names": ["mine"]}}
    job.write_text(json.dumps(body))
    made = house.good("run", "-d", "-q", "-f", str(job)).strip()
    until(lambda: house.state(made) == "running")
    done = within(house, made, "--", "id -un")
    assert done.returncode == 0, done.stderr
