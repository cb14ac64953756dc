"""Public keys of SSH, as a user's profile holds them: read strictly, shown by fingerprint.

The text form is that of authorized_keys (sshd(8)) and `.pub` files, the binary one that of RFC 4253
section 6.6, RFC 5656 section 3.1 and RFC 8709; `sk-` kinds are OpenSSH's PROTOCOL.u2f.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass

from danlu.model.errors import Invalid

MOST_CHARS = 16_384
MOST_KEYS = 100
"""How many keys one user may have."""
NAME_CHARS = 64
RSA_BITS = (2048, 16_384)
_CURVES = {"nistp256": 65, "nistp384": 97, "nistp521": 133}
"""The bytes of an uncompressed point."""

KINDS = (
    "ssh-ed25519",
    *(f"ecdsa-sha2-{curve}" for curve in _CURVES),
    "ssh-rsa",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)
"""The kinds of keys that are taken, as their own texts call them."""


@dataclass(frozen=True, slots=True)
class SshKey:
    """A public key of a user, under a name of the user's own. `public` is its kind and its Base64,
    nothing else; `fingerprint` is `SHA256:…` as `ssh-keygen -l` shows it. One key belongs to one
    user only: it says who somebody is.
    """

    name: str
    user_id: str
    public: str
    fingerprint: str
    created_at: int


@dataclass(frozen=True, slots=True)
class Given:
    """A public key as somebody gave it."""

    public: str
    fingerprint: str
    comment: str


def read(text: str, field: str = "public_key") -> Given:
    """The one public key in `text`; Invalid that says what else it is."""
    if len(text) > MOST_CHARS:
        raise Invalid(
            "field-too-long",
            field=field,
            size=len(text),
            unit="characters",
            limit=MOST_CHARS,
            remedy="send one public key",
        )
    if "PRIVATE KEY" in text:
        # Not quoted: it must not get into a log.
        raise Invalid("ssh-key-private", field=field)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if len(lines) != 1:
        raise Invalid("ssh-key-count", field=field, count=len(lines))
    kind, _, rest = lines[0].strip().partition(" ")
    encoded, _, comment = rest.strip().partition(" ")
    if kind not in KINDS:
        raise Invalid("ssh-key-kind", field=field, value=kind, kinds=", ".join(KINDS))
    blob = _blob(encoded, field)
    problem = _problem(kind, blob)
    if problem:
        raise Invalid("ssh-key-malformed", field=field, found=problem)
    return Given(f"{kind} {encoded}", fingerprint(blob), comment.strip())


def fingerprint(blob: bytes) -> str:
    """`SHA256:…` of a key in its binary form."""
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode()
    return f"SHA256:{digest.rstrip('=')}"


def check_name(name: str, field: str = "name") -> str:
    """`name` itself; Invalid for what no key can be called."""
    plain = name.replace("-", "").replace("_", "").replace(".", "")
    if not name or len(name) > NAME_CHARS or not (plain.isascii() and plain.isalnum()):
        raise Invalid(
            "field-value",
            field=field,
            value=name,
            expected=f"1 to {NAME_CHARS} letters, digits, '-', '_' or '.'",
        )
    return name


def _blob(encoded: str, field: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise Invalid("ssh-key-malformed", field=field, found="its Base64 is damaged") from None


def _problem(kind: str, blob: bytes) -> str:
    """What is wrong with a key in its binary form; empty = nothing."""
    parts = _parts(blob)
    if not parts or parts[0] != kind.encode():
        return "what it holds is not what its first word says, or it is cut off"
    inside = parts[1:]
    if kind == "ssh-rsa":
        return _rsa_problem(inside)
    if kind.startswith("sk-"):
        if not inside or not inside[-1]:
            return "it names no application"
        inside = inside[:-1]
    if "ed25519" in kind:
        whole = len(inside) == 1 and len(inside[0]) == 32
    else:
        curve = kind.partition("@")[0].rpartition("-")[2]
        whole = (
            len(inside) == 2
            and inside[0] == curve.encode()
            and len(inside[1]) == _CURVES[curve]
            and inside[1][0] == 4
        )
    return "" if whole else "its point has not the length that its kind asks for"


def _rsa_problem(numbers: list[bytes]) -> str:
    if len(numbers) != 2:
        return "an RSA key holds two numbers"
    exponent, modulus = (int.from_bytes(number) for number in numbers)
    low, high = RSA_BITS
    if not low <= modulus.bit_length() <= high:
        return f"its modulus has {modulus.bit_length()} bits; {low} to {high} are taken"
    return "" if exponent >= 3 and exponent % 2 else "its exponent is none"


def _parts(blob: bytes) -> list[bytes]:
    """The strings of a binary form (each behind its length); empty where it ends in the middle."""
    parts = []
    at = 0
    while at < len(blob):
        end = at + 4 + int.from_bytes(blob[at : at + 4])
        if end > len(blob) or at + 4 > len(blob):
            return []
        parts.append(blob[at + 4 : end])
        at = end
    return parts
