"""Public keys as people paste them: those of OpenSSH are taken, everything else is named."""

from __future__ import annotations

import base64
import struct
from pathlib import Path

import pytest

from danlu.model import ssh_key
from danlu.model.errors import Invalid
from tests import ssh_keys


def blob(*parts: bytes) -> str:
    return base64.b64encode(b"".join(struct.pack("!I", len(p)) + p for p in parts)).decode()


ED = blob(b"ssh-ed25519", bytes(32))
POINT = b"\x04" + bytes(64)


@pytest.mark.parametrize(
    ("kind", "bits"),
    [("ed25519", None), ("ecdsa", 256), ("ecdsa", 384), ("ecdsa", 521), ("rsa", 2048)],
)
def test_what_ssh_keygen_makes_is_taken_with_its_fingerprint(
    tmp_path: Path, kind: str, bits: int | None
) -> None:
    text = ssh_keys.make(tmp_path / "k", kind, bits, "alice@laptop 我的")

    given = ssh_key.read(text)

    assert given.public == " ".join(text.split()[:2])
    assert given.comment == "alice@laptop 我的"
    assert given.fingerprint == ssh_keys.fingerprint(tmp_path / "k.pub")


def test_keys_of_security_tokens_are_taken() -> None:
    ed = blob(b"sk-ssh-ed25519@openssh.com", bytes(32), b"ssh:")
    ec = blob(b"sk-ecdsa-sha2-nistp256@openssh.com", b"nistp256", POINT, b"ssh:")
    assert ssh_key.read(f"sk-ssh-ed25519@openssh.com {ed}").comment == ""
    assert ssh_key.read(f"\n# mine\nsk-ecdsa-sha2-nistp256@openssh.com {ec} a b\n").comment == "a b"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", "ssh-key-count"),
        ("  \n", "ssh-key-count"),
        (f"ssh-ed25519 {ED}\nssh-ed25519 {ED}", "ssh-key-count"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n", "ssh-key-private"),
        ("hello", "ssh-key-kind"),
        (f"ssh-dss {blob(b'ssh-dss', b'x')}", "ssh-key-kind"),
        (f'command="sh" ssh-ed25519 {ED}', "ssh-key-kind"),
        (f"ssh-ed25519-cert-v01@openssh.com {ED}", "ssh-key-kind"),
        ("ssh-ed25519", "ssh-key-malformed"),
        ("ssh-ed25519 ???", "ssh-key-malformed"),
        (f"ssh-ed25519 {ED[:-8]}", "ssh-key-malformed"),
        (f"ssh-ed25519 {blob(b'ssh-ed25519', bytes(31))}", "ssh-key-malformed"),
        (f"ssh-ed25519 {blob(b'ssh-ed25519', bytes(32), b'x')}", "ssh-key-malformed"),
        (f"ssh-rsa {ED}", "ssh-key-malformed"),
        (f"ssh-rsa {blob(b'ssh-rsa', b'3', bytes([255]) * 128)}", "ssh-key-malformed"),
        (f"ssh-rsa {blob(b'ssh-rsa', b'4', bytes([255]) * 256)}", "ssh-key-malformed"),
        (
            f"ecdsa-sha2-nistp256 {blob(b'ecdsa-sha2-nistp256', b'nistp384', POINT)}",
            "ssh-key-malformed",
        ),
        (f"sk-ssh-ed25519@openssh.com {blob(b'sk-ssh-ed25519@openssh.com')}", "ssh-key-malformed"),
        ("x" * 20_000, "field-too-long"),
    ],
)
def test_what_is_no_public_key_is_refused(text: str, key: str) -> None:
    with pytest.raises(Invalid) as refused:
        ssh_key.read(text)
    assert refused.value.key == key
    assert "BEGIN" not in str(refused.value)


@pytest.mark.parametrize("name", ["laptop", "KeyPair-1a2b", "a.b_c-d", "x" * 64])
def test_names_of_keys(name: str) -> None:
    assert ssh_key.check_name(name) == name


@pytest.mark.parametrize("name", ["", "a b", "ключ", "../x", "x" * 65, "-", "a\n"])
def test_names_that_no_key_has(name: str) -> None:
    with pytest.raises(Invalid):
        ssh_key.check_name(name)
