"""Which bucket and key a request is for: in its path, or the bucket in its host's name. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import unquote


@dataclass(frozen=True, slots=True)
class Address:
    """A bucket and a key, each empty where there is none, and what signature V2 signs of it."""

    bucket: str
    key: str
    resource: str
    host: str
    """The server's own name, without the bucket's."""


def address(name: str, raw_path: bytes, own_names: Iterable[str]) -> Address:
    """The address of a request to the host `name`.

    The path is decoded as a whole: an escaped slash means a slash, in a key as in what is signed.
    """
    sent = raw_path.decode("latin-1")
    path = unquote(sent, errors="surrogateescape").removeprefix("/")
    for own in sorted(own_names, key=len, reverse=True):
        if name == own:
            break
        if name.endswith(f".{own}"):
            bucket = name.removesuffix(f".{own}")
            return Address(bucket, path, f"/{bucket}{sent or '/'}", own)
    bucket, _, key = path.partition("/")
    return Address(bucket, key, sent or "/", name)
