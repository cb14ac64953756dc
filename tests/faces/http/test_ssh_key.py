"""Public keys over the API: added, listed, removed, each in its owner's profile only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import ssh_keys
from tests.faces.http.live import Live

KEYS = "/danlu/v1/{p}/keys"


@pytest.fixture
def profile(shared: Live) -> Iterator[Live]:
    """The server, with nobody's keys in the end."""
    yield shared
    for one in shared.call("GET", KEYS).json["keys"]:
        assert shared.call("DELETE", f"{KEYS}/{one['name']}").status == 200


def test_a_key_is_added_listed_and_removed(profile: Live, tmp_path: Path) -> None:
    text = ssh_keys.make(tmp_path / "k", comment="alice@laptop")
    added = profile.call("POST", KEYS, {"public_key": text})
    assert added.status == 201, added.body
    assert added.json["name"] == "alice-laptop"
    assert added.json["fingerprint"] == ssh_keys.fingerprint(tmp_path / "k.pub")
    assert profile.call("GET", KEYS).json == {"keys": [added.json]}

    assert profile.call("DELETE", f"{KEYS}/alice-laptop").json == added.json
    assert profile.call("GET", KEYS).json == {"keys": []}
    assert profile.call("DELETE", f"{KEYS}/alice-laptop").key == "ssh-key-missing"


def test_names_and_keys_are_taken_once(profile: Live, tmp_path: Path) -> None:
    first, second = (ssh_keys.make(tmp_path / name) for name in "ab")
    assert profile.call("POST", KEYS, {"public_key": first, "name": "one"}).status == 201
    same_name = profile.call("POST", KEYS, {"public_key": second, "name": "one"})
    assert (same_name.status, same_name.key) == (409, "ssh-key-name-taken")
    same_key = profile.call("POST", KEYS, {"public_key": first, "name": "two"})
    assert (same_key.status, same_key.key) == (409, "ssh-key-taken")
    unnamed = profile.call("POST", KEYS, {"public_key": second}).json
    assert unnamed["name"].startswith("key-")
    # A fingerprint names a key as well as its name does.
    escaped = unnamed["fingerprint"].replace("/", "%2F").replace("+", "%2B").replace(":", "%3A")
    assert profile.call("DELETE", f"{KEYS}/{escaped}").json == unnamed


def test_a_profile_is_its_owners(profile: Live, tmp_path: Path) -> None:
    text = ssh_keys.make(tmp_path / "k")
    assert profile.call("POST", KEYS, {"public_key": text, "name": "mine"}).status == 201
    other, pair = profile.another("keyless")
    theirs = f"/danlu/v1/{other.id}/keys"
    assert profile.call("GET", theirs, key=pair).json == {"keys": []}
    assert profile.call("DELETE", f"{theirs}/mine", key=pair).status == 404
    assert profile.call("POST", theirs, {"public_key": text}, key=pair).key == "ssh-key-taken"
    assert profile.call("GET", KEYS, key=pair).status == 403


@pytest.mark.parametrize(
    ("body", "key"),
    [
        ({}, "field-missing"),
        ({"public_key": "x"}, "ssh-key-kind"),
        ({"public_key": "-----BEGIN OPENSSH PRIVATE KEY-----\nSECRET"}, "ssh-key-private"),
        ({"public_key": "x", "colour": "red"}, "field-unknown"),
    ],
)
def test_what_is_no_key_is_refused(profile: Live, body: dict[str, str], key: str) -> None:
    answer = profile.call("POST", KEYS, body)
    assert (answer.status, answer.key) == (400, key)
    assert b"SECRET" not in answer.body
