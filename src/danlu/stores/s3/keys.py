"""Who asks, which keys a server can have, and what buckets are called there."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path

from danlu.model.errors import Invalid, Refused, Unavailable
from danlu.stores.names import is_bucket
from danlu.stores.s3.signing import Keys

PATHS = ("SeaweedFS", "MinIO")
"""Servers (by their `Server` header) that keep keys as paths of a file system."""
LONGEST_PART = 255


def check_key(key: str) -> bool:
    """Whether a server that keeps keys as paths keeps this one as itself.

    Not where it has parts that are empty, `.` or `..`, a NUL, a backslash (SeaweedFS takes it for
    a slash), or a part that is too long. A last `/` is kept: it makes a folder.
    """
    parts = key.removesuffix("/").split("/")
    return not {"\0", "\\"} & set(key) and all(
        part not in ("", ".", "..") and len(part.encode()) <= LONGEST_PART for part in parts
    )


def names_of(text: str) -> dict[str, str]:
    """Buckets by our name, from "ours=theirs, …". Raises Invalid."""
    found: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        ours, _, theirs = (part.strip() for part in pair.partition("="))
        theirs = theirs or ours
        if not is_bucket(ours) or not is_bucket(theirs) or theirs in found.values():
            raise Invalid("s3-buckets", value=pair)
        found[ours] = theirs
    return found


def keys_of(path: str, region: str) -> Keys:
    """The keys in a file that only its owner may read; none for no file."""
    if not path:
        return Keys("", "", region)
    place = Path(path)
    try:
        mode = place.stat().st_mode
        found = tomllib.loads(place.read_text("utf-8"))
    except (OSError, ValueError) as problem:
        raise Unavailable("s3-keys", path=path, detail=str(problem)) from problem
    if stat.S_IMODE(mode) & 0o077 and os.name == "posix":
        raise Refused("s3-keys-open", path=path)
    missing = [name for name in ("access_key", "secret_key") if not found.get(name)]
    if missing:
        raise Unavailable("s3-keys", path=path, detail=f"it has no {missing[0]}")
    return Keys(
        str(found["access_key"]), str(found["secret_key"]), region, str(found.get("token", ""))
    )
