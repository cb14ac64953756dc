"""A whole notebook over SSH: OpenSSH's own programs, sent on their way by the command line."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.faces.cli.failure import MISSING, RETRY, USAGE
from tests.faces.cli.house import HANG_S, House
from tests.jupyter import jupyter
from tests.services import require

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

__all__ = ["jupyter"]

PROGRAMS = ("ssh", "scp", "rsync", "ssh-keygen", "/usr/sbin/sshd")


@pytest.fixture
def house(tmp_path: Path, jupyter: Path) -> Iterator[House]:
    require(all(map(shutil.which, PROGRAMS)), "OpenSSH and rsync: apt-get install ssh rsync")
    home = tmp_path / "home 家"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    made = House(tmp_path / "da ta 数据", home)
    made.env["DANLU_DEFAULT_ENVIRONMENT"] = str(jupyter.parent.parent)
    identity = home / ".ssh" / "id_ed25519"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", identity], check=True)
    # ssh asks the system, not HOME, where a user's files are.
    (home / ".ssh" / "config").write_text(
        f'Host *.danlu *.danlu-door\n  IdentityFile "{identity}"\n'
    )
    made.good("up", "--port", "0")
    yield made
    for name in made.good("notebook", "ls", "-q").split():
        made.run("notebook", "rm", name, "--yes")
    made.run("down")


def client(house: House, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        words, env=house.env, cwd=house.home, input=stdin, capture_output=True, timeout=HANG_S,
        check=False,
    )  # fmt: skip


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_notebook_over_ssh(house: House) -> None:
    own = house.home / ".ssh"
    missing = house.run("ssh", "nb")
    assert missing.returncode == MISSING
    house.good("notebook", "create", "nb", "--ssh", "-e", "COLOUR=blue")
    keyless = house.run("ssh", "nb", "--", "true")
    assert keyless.returncode == USAGE
    assert b"danlu key add" in keyless.stderr
    house.good("key", "add", str(own / "id_ed25519.pub"), "--name", "mine")

    done = client(house, *house.command("ssh", "nb", "--", "echo $COLOUR; pwd; exit 7"))
    assert (done.returncode, done.stdout.split()) == (7, [b"blue", b"/home/ma-user/work"]), (
        done.stderr
    )
    done = client(house, *house.command("ssh", "nb", "--", "sh", "-s"), stdin=b"echo from stdin\n")
    assert (done.returncode, done.stdout) == (0, b"from stdin\n")

    # A host of ssh's own: other programs find it by its name.
    before = (own / "config").read_text()
    assert house.good("code", "nb", "--print").strip() == "nb.danlu"
    assert (own / "config").read_text() == f"Include danlu/*.conf\n{before}"
    house.good("code", "nb", "--print")
    assert (own / "config").read_text() == f"Include danlu/*.conf\n{before}"
    (config,) = (own / "danlu").glob("*.ssh")
    (house.home / "数据 a.bin").write_bytes(os.urandom(1 << 20))
    sent = client(house, "scp", "-q", "-F", str(config), "数据 a.bin", "nb.danlu:a.bin")
    assert sent.returncode == 0, sent.stderr
    through = f"ssh -F '{config}'"
    back = client(house, "rsync", "-e", through, "nb.danlu:a.bin", "back.bin")
    assert back.returncode == 0, back.stderr
    assert (house.home / "back.bin").read_bytes() == (house.home / "数据 a.bin").read_bytes()

    a_port_leads_there(house)

    # Only from some addresses, for as long as that is wanted.
    shown = house.json("notebook", "show", "nb")
    assert shown["endpoints"][0]["uri"].startswith(f"ssh://{shown['id']}@127.0.0.1:")
    for allowed, code in (("192.0.2.0/24", 255), ("127.0.0.1", 0), ("any", 0)):
        house.good("notebook", "update", "nb", "--allow-ip", allowed)
        done = client(house, "ssh", "-F", str(config), "nb.danlu", "true")
        assert done.returncode == code, (allowed, done.stderr)

    house.good("key", "rm", "mine")
    again = client(house, "ssh", "-F", str(config), "nb.danlu", "true")
    assert again.returncode == 255
    house.good("notebook", "stop", "nb")
    assert list((own / "danlu").iterdir()) == []
    assert house.run("ssh", "nb").returncode in (RETRY, MISSING)


def a_port_leads_there(house: House) -> None:
    here, there = free_port(), free_port()
    serve = f"cd /tmp && echo hello >page && exec python3 -m http.server -b 127.0.0.1 {there}"
    server = subprocess.Popen(
        house.command("ssh", "nb", "--", serve), env=house.env, cwd=house.home,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    said: list[bytes] = []
    forward = house.start("port", "nb", f"{here}:{there}")
    try:
        ends = time.monotonic() + HANG_S
        while True:
            try:
                url = f"http://127.0.0.1:{here}/page"
                with urllib.request.urlopen(url, timeout=HANG_S) as answer:
                    assert answer.read() == b"hello\n"
                break
            except OSError:
                assert time.monotonic() < ends
                if forward.poll() is not None:  # somebody else took the port, or SSH was not up
                    said.append(forward.communicate()[1])
                    assert len(said) < 20, said
                    forward = house.start("port", "nb", f"{here}:{there}")
                time.sleep(0.1)
    finally:
        for process in (forward, server):
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=HANG_S)


def test_what_is_no_port(house: House) -> None:
    for value in ("0", "65536", "x", "1:", "80:x", "１"):
        done = house.run("port", "nb", value)
        assert done.returncode == USAGE
        assert value.encode() in done.stderr
