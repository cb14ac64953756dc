"""danlu backup and restore: with a server that runs, and jobs that did."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faces.cli.house import House, until


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    home = tmp_path / "home"
    home.mkdir()
    made = House(tmp_path / "da ta", home)
    yield made
    made.run("down")


def ran(house: House, line: str, state: str = "succeeded") -> str:
    """The id of a job that runs `line`, when it is in `state`."""
    job = house.good("run", "-q", "-d", "--no-code", "--", line).strip()
    until(lambda: house.state(job) == state)
    return job


def test_a_server_comes_back_from_a_backup_that_was_made_while_it_ran(
    house: House, tmp_path: Path
) -> None:
    """(cases 109, 33) What ran then is not claimed to run, nor run again: it is lost, and why."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        house.env["DANLU_SSH_PORT"] = str(free.getsockname()[1])
    house.good("up", "--port", "0")
    done = ran(house, "echo done")
    running = ran(house, "sleep 1000", "running")
    known = door_key(house)

    made = house.json("backup", str(tmp_path / "b"), "--objects")

    assert made["files"] > 3
    assert made["key"] is True
    refused = house.run("restore", str(tmp_path / "b"), "--force", "--json")
    assert refused.returncode == 5
    assert json.loads(refused.stderr)["key"] == "data-dir-in-use"
    house.good("stop", "--wait", running)
    house.good("down")
    shutil.rmtree(house.data)

    house.good("restore", str(tmp_path / "b"))

    house.good("up", "--port", "0")
    assert house.state(done) == "succeeded"
    until(lambda: house.state(running) == "lost")
    reason = house.json("show", running)["reason"]
    assert reason["code"] == "restored"
    assert "restored from that backup" in json.dumps(reason)
    ran(house, "echo again")
    # Clients that know it by its key are not told of a man in the middle.
    assert door_key(house) == known
    keyless = tmp_path / "keyless"
    house.good("backup", str(keyless), "--without-key")
    assert not (keyless / "ssh_host_key").exists()


def door_key(house: House) -> bytes:
    """The host key of the door for SSH, which makes it when the first client comes."""
    port = int(house.env["DANLU_SSH_PORT"])
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        assert client.recv(8).startswith(b"SSH-2.0-")
    found = house.data / "ssh_host_key"
    assert found.stat().st_mode & 0o777 == 0o600
    return found.read_bytes()


def test_what_backup_and_restore_say(house: House, tmp_path: Path) -> None:
    house.good("up", "--port", "0")
    said = house.run("backup", str(tmp_path / "b"), "--without-key")
    assert (said.returncode, said.stdout) == (0, b"")
    assert str(tmp_path / "b").encode() in said.stderr
    assert b"The key is not in it" in said.stderr
    house.good("down")
    assert house.run("restore", str(tmp_path / "b")).returncode == 5
    said = house.run("restore", str(tmp_path / "b"), "--force", "--lang", "zh")
    assert said.returncode == 0
    assert b"before-restore-" in said.stderr
    assert b"danlu up" in said.stderr
    house.good("up", "--port", "0")
    again = house.run("backup", str(tmp_path / "b"))
    assert again.returncode == 5
    assert b"exists already" in again.stderr


def test_records_in_postgresql_have_tools_of_their_own(house: House, tmp_path: Path) -> None:
    house.data.mkdir()
    (house.data / "danlu.toml").write_text('database = "postgresql://me:canary@db/danlu"\n')
    done = house.run("backup", str(tmp_path / "b"))
    assert done.returncode == 5
    assert b"pg_dump" in done.stderr
    assert b"canary" not in done.stderr
    done = house.run("restore", str(tmp_path / "b"))
    assert done.returncode == 5
    assert b"pg_restore" in done.stderr
