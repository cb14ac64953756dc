"""What a word of the command line names: objects, or files of this machine."""

from __future__ import annotations

import os

from danlu.faces.cli.failure import USAGE, Failure
from danlu.faces.cli.session import utf8

SCHEMES = ("obs://", "s3://")
MAX_KEY_BYTES = 1024


class Remote:
    """A bucket and a key or prefix in it. An empty bucket stands for all of them."""

    __slots__ = ("bucket", "key")

    def __init__(self, bucket: str, key: str) -> None:
        self.bucket = bucket
        self.key = key

    def __str__(self) -> str:
        return f"obs://{self.bucket}/{self.key}" if self.bucket else "obs://"

    @property
    def is_directory(self) -> bool:
        """Whether it can only be a prefix."""
        return not self.key or self.key.endswith("/")

    @property
    def prefix(self) -> str:
        """The key as that of a directory: empty, or ending in `/`."""
        return self.key if self.is_directory else f"{self.key}/"

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rstrip("/").rpartition("/")[2]


class Local:
    """A file or directory of this machine, or one that is to be made."""

    __slots__ = ("path", "word")

    def __init__(self, word: str) -> None:
        self.word = word
        self.path = os.path.abspath(os.path.expanduser(word))

    def __str__(self) -> str:
        return self.word

    @property
    def is_directory(self) -> bool:
        """Whether it is one, or is meant to be one."""
        return self.word.endswith(("/", os.sep)) or os.path.isdir(self.path)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return os.path.basename(self.path)


Place = Remote | Local


def remote(word: str) -> Remote:
    """Objects: `obs://bucket/key`, `s3://bucket/key`, `/bucket/key` or `bucket/key`."""
    text = utf8(word, "PLACE")
    for scheme in SCHEMES:
        if text.startswith(scheme):
            text = text[len(scheme) :]
            break
    else:
        text = text.removeprefix("/")
        if "://" in text:
            raise Failure(USAGE, "obs-scheme", value=word)
    bucket, _, key = text.partition("/")
    if (key and not bucket) or len(key.encode()) > MAX_KEY_BYTES:
        raise Failure(USAGE, "obs-place", value=word)
    return Remote(bucket, key)


def pair(words: tuple[str, ...]) -> tuple[Place, Place]:
    """Where to copy from and to. `/bucket/key` stands for objects where neither has a scheme and
    no such file is there.
    """
    places = [_place(word) for word in words]
    if all(isinstance(place, Local) for place in places):
        for at, word in enumerate(words):
            if (
                word.startswith("/")
                and not os.path.lexists(word)
                and _nowhere(word, target=at == 1)
            ):
                places[at] = remote(word)
                break
        else:
            raise Failure(USAGE, "obs-two-local", source=words[0], dest=words[1])
    source, dest = places
    for place in places:
        if isinstance(place, Remote) and not place.bucket:
            raise Failure(USAGE, "obs-place", value=str(place))
    return source, dest


def _place(word: str) -> Place:
    return remote(word) if "://" in word else Local(word)


def _nowhere(word: str, *, target: bool) -> bool:
    """Whether a path leads nowhere: a file that is to be made has a directory to be made in."""
    return (
        not target
        or not os.path.isdir(os.path.dirname(word.rstrip("/")) or "/")
        or (os.path.dirname(word.rstrip("/")) == "/")
    )


def local_name(name: str) -> str | None:
    """The name of an object behind its prefix as a path below a directory; None where it cannot be
    one: files have no empty, `.` or `..` parts, and none of more than 255 bytes.
    """
    for part in name.split("/"):
        if part in ("", ".", "..") or len(part.encode()) > 255:
            return None
    return None if "\0" in name or _is_part(name) else name


def is_own(name: str) -> bool:
    """Whether a file is one of ours that is not complete yet."""
    return name.startswith(".danlu-") and name.endswith((".part", ".parts"))


def _is_part(name: str) -> bool:
    return is_own(name.rpartition("/")[2])
