"""Whom the door lets in, where to, and for how long."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from danlu.faces.ssh import host_key
from danlu.flow.ssh import from_within
from danlu.flow.ssh_traffic import BUSY_BYTES, OPEN_MS, WINDOW_MS, Traffic
from tests.faces.ssh.world import BOB, HANG_S, Instance, World, until

pytestmark = pytest.mark.timeout(180)

WAYS = ["nb", "nb@door"]
NOBODY = 255


@pytest.mark.parametrize("way", WAYS)
def test_an_unknown_key_is_refused(world: World, instance: Instance, key: Path, way: str) -> None:
    stranger = world.key("stranger", None)
    done = world.ssh(stranger, way, "true")
    assert done.returncode == NOBODY
    assert b"Permission denied (publickey)" in done.stderr


@pytest.mark.parametrize("methods", ["password", "keyboard-interactive", "none", "hostbased"])
def test_nothing_but_a_key_lets_anybody_in(
    world: World, instance: Instance, key: Path, methods: str
) -> None:
    words = ("-v", "-o", "BatchMode=no", "-o", f"PreferredAuthentications={methods}", "nb@door")
    done = world.ssh(key, *words, "true")
    assert done.returncode == NOBODY
    assert b"Permission denied (publickey)" in done.stderr


def test_an_unknown_host_is_refused_by_name(world: World, instance: Instance, key: Path) -> None:
    jumped = world.ssh(key, "-J", "door", "nobody", "true")
    assert jumped.returncode == NOBODY
    assert b"'nobody'" in jumped.stderr
    named = world.ssh(key, "nobody@door", "true")
    assert named.returncode == NOBODY
    assert b"'nobody'" in named.stderr


def test_on_the_door_itself_there_is_nothing(world: World, instance: Instance, key: Path) -> None:
    for words in (["door"], ["door", "id"], ["-s", "door", "sftp"]):
        done = world.ssh(key, *words)
        assert (done.returncode, done.stdout) == (NOBODY, b""), words
        assert b"ssh NAME@HOST" in done.stderr
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    for host in ("127.0.0.1", "localhost", "nb"):
        done = world.ssh(key, "-W", f"{host}:{port}", "door")
        assert done.returncode == NOBODY
        assert done.stdout == b""
    listener.close()
    remote = world.ssh(key, "-N", "-o", "ExitOnForwardFailure=yes", "-R", "0:127.0.0.1:1", "door")
    assert remote.returncode == NOBODY


@pytest.mark.parametrize("way", WAYS)
def test_others_instances_are_as_unknown_as_none(
    world: World, instance: Instance, key: Path, way: str
) -> None:
    bob = world.key("bob", BOB)
    done = world.ssh(bob, way, "true")
    assert done.returncode == NOBODY
    assert b"you have no running notebook" in done.stderr


@pytest.mark.parametrize("way", WAYS)
def test_addresses_that_are_not_on_the_list_are_refused(
    world: World, instance: Instance, key: Path, way: str
) -> None:
    world.add("nb", instance.at, allowed=("10.0.0.0/8", "192.0.2.7"))
    done = world.ssh(key, way, "true")
    assert done.returncode == NOBODY
    assert b"127.0.0.1" in done.stderr
    world.add("nb", instance.at, allowed=("127.0.0.0/8",))
    assert world.ssh(key, way, "true").returncode == 0


def test_networks() -> None:
    assert from_within("anything", ())
    assert from_within("10.1.2.3", ["10.0.0.0/8"])
    assert from_within("::ffff:10.1.2.3", ["10.0.0.0/8"])
    assert from_within("fe80::1%eth0", ["fe80::/10"])
    assert not from_within("11.1.2.3", ["10.0.0.0/8", "11.1.2.4"])
    assert not from_within("", ["0.0.0.0/0"])


@pytest.mark.parametrize("way", WAYS)
def test_a_key_that_is_removed_loses_what_is_open_at_once(
    world: World, instance: Instance, key: Path, way: str
) -> None:
    command = world.command(key, way, "echo in; exec sleep 1000")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"in\n"
        world.profiles.keys.clear()
        world.on_loop(world.door.look_again)
        assert running.wait(HANG_S) == NOBODY
    assert world.ssh(key, way, "true").returncode == NOBODY
    # And nothing of it runs on in the instance.
    until(lambda: b"sleep 1000" not in everything_below(instance.process.pid))


def everything_below(pid: int) -> bytes:
    return subprocess.run(
        ["ps", "-o", "args=", "-g", str(pid)], capture_output=True, check=False, timeout=HANG_S
    ).stdout


def test_an_instance_that_does_not_answer_says_so(world: World, tmp_path: Path) -> None:
    key = world.key("id")
    world.add("nb", tmp_path / "empty")
    for way in WAYS:
        done = world.ssh(key, way, "true")
        assert done.returncode == NOBODY
        assert b"does not answer" in done.stderr, way


def test_an_instance_without_sshd_says_so(world: World, tmp_path: Path) -> None:
    key = world.key("id")
    (tmp_path / "ssh.json").write_text('{"problem": "ssh-not-installed", "detail": "sshd"}')
    world.add("nb", tmp_path)
    done = world.ssh(key, "nb@door", "true")
    assert b"install openssh-server" in done.stderr


@pytest.mark.parametrize(
    "said", ["[]", '{"user": 1, "host_key": "rubbish"}', '{"user": "x\\u0007", "problem": "no"}']
)
def test_what_an_instance_says_is_not_believed(
    world: World, instance: Instance, key: Path, said: str
) -> None:
    (instance.at / "ssh.json").write_text(said if said != "[]" else "{}")
    done = world.ssh(key, "nb@door", "true")
    assert done.returncode == NOBODY


def test_the_doors_key_is_kept(tmp_path: Path) -> None:
    first = host_key.kept(tmp_path)
    assert host_key.public(host_key.kept(tmp_path)) == host_key.public(first)
    assert (tmp_path / host_key.FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("way", WAYS)
def test_what_goes_through_is_counted(
    world: World, instance: Instance, key: Path, way: str
) -> None:
    traffic = world.traffics.of("nb")
    assert traffic.active_at(0) is None
    assert world.ssh(key, way, "head -c 100000 /dev/zero").returncode == 0
    until(lambda: traffic.open == 0)
    assert traffic.used_at == world.clock.now()
    assert traffic.moved_bytes >= 100_000


def test_a_window_that_is_merely_open_counts_for_half_an_hour() -> None:
    traffic = Traffic()
    assert traffic.active_at(5) is None
    traffic.came(0)
    minute = 0
    for minute in range(1, 200):
        # An editor that is open asks now and then whether the other side is there.
        traffic.moved(BUSY_BYTES // 4, minute * WINDOW_MS)
    assert traffic.used_at == 0
    assert traffic.active_at(OPEN_MS - 1) == OPEN_MS - 1
    assert traffic.active_at(minute * WINDOW_MS) == OPEN_MS
    # Somebody types.
    now = 300 * WINDOW_MS
    for key in range(100):
        traffic.moved(100, now + key)
    assert traffic.used_at == now + 99
    traffic.left()
    assert traffic.active_at(now + OPEN_MS) == now + 99
