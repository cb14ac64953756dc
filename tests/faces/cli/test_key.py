"""`danlu key add, ls, rm`: a profile's public keys from a terminal."""

from __future__ import annotations

import json
from pathlib import Path

from tests import ssh_keys
from tests.faces.cli.house import House


def test_keys_come_and_go(house: House, tmp_path: Path) -> None:
    ssh = house.home / ".ssh"
    missing = house.run("key", "add")
    assert missing.returncode == 4
    assert b"ssh-keygen -t ed25519" in missing.stderr

    ssh.mkdir()
    ssh_keys.make(ssh / "id_ed25519", comment="me@here")
    added = house.json("key", "add")
    assert added["name"] == "me-here"
    assert added["fingerprint"] == ssh_keys.fingerprint(ssh / "id_ed25519.pub")
    again = house.run("key", "add", "--name", "twice")
    assert again.returncode == 5
    assert added["fingerprint"].encode() in again.stderr

    ssh_keys.make(tmp_path / "two", "ecdsa")
    assert house.good("key", "add", "-q", "--name", "two", str(tmp_path / "two.pub")) == "two\n"
    listed = house.good("key", "ls")
    assert added["fingerprint"] in listed
    assert "ecdsa-sha2-nistp256" in listed
    house.good("key", "rm", "two", added["fingerprint"])
    assert house.good("key", "ls", "--json") == ""


def test_a_private_key_stays_where_it_is(house: House, tmp_path: Path) -> None:
    ssh_keys.make(tmp_path / "k")
    refused = house.run("key", "add", "--json", str(tmp_path / "k"))
    assert refused.returncode == 2
    assert "private key" in json.loads(refused.stderr)["error_msg"]
