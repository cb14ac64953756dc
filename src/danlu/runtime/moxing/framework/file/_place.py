"""Names: which of them are objects, and where they lie.

In a job the storage is the platform's. Elsewhere `MOXING_OBS_DIR` names a directory that stands
for it (`obs://bucket/key` is `bucket/key` in it), so that a script can be tried without storage.
"""

from __future__ import annotations

import os
import re
from typing import NamedTuple, Union

from moxing.framework.file._words import say

MAPPED = "MOXING_OBS_DIR"
KEY_BYTES = 1024

# os.path.normpath and pathlib make one slash of two.
_OBJECT = re.compile(r"(?:obs|s3):/{1,2}([^/]*)(?:/(.*))?", re.DOTALL)


class Place(NamedTuple):
    """An object, a prefix, or (without a key) a bucket."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"obs://{self.bucket}/{self.key}"

    @property
    def directory(self) -> Place:
        """The prefix of what lies below: with a slash at its end, unless it is the bucket."""
        key = self.key.rstrip("/")
        return Place(self.bucket, f"{key}/" if key else "")

    def below(self, name: str) -> Place:
        """What lies in this directory under `name`."""
        return Place(self.bucket, self.directory.key + name)


AnyPath = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Where = Union[Place, str]
"""An object, or the path of a local file."""


def is_object(url: object) -> bool:
    """Whether somebody names an object: obs://… or s3://…"""
    if not isinstance(url, (str, bytes, os.PathLike)):
        return False
    return os.fsdecode(url).startswith(("obs:/", "s3:/"))


def where(url: AnyPath) -> Where:
    """The object or local path that `url` names. ValueError for a bucket without a name."""
    path = os.fsdecode(url)
    found = _OBJECT.fullmatch(path)
    if found is None:
        return path
    bucket, key = found[1], found[2] or ""
    if not bucket:
        raise ValueError(say("bad-url", url=path))
    mapped = os.environ.get(MAPPED)
    if mapped:
        if ".." in (bucket, *key.split("/")):
            raise ValueError(say("outside", url=path, place=mapped))
        return os.path.join(mapped, bucket, *filter(None, key.split("/")))
    return Place(bucket, key)


def is_below(name: str) -> bool:
    """Whether a relative name stays below the directory that it is put in."""
    parts = name.split("/")
    return "\0" not in name and not any(part in ("", ".", "..") for part in parts)
