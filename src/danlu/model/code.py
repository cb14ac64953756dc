"""A code directory: which files it may hold, and the digest that names its content. Pure.

The digest covers path, execute bit, size and content of every file, and nothing else: no time,
no owner, no empty directory. Client and server compute it alike, so code that is stored already
need not be sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from danlu.model import limits
from danlu.model.errors import Invalid

NAME_BYTES = 128
PATH_BYTES = 768
"""With bucket prefix, digest and name in front, this stays within the 1,024 bytes of a key."""
PART_BYTES = 255
"""No file system of Linux takes a longer name."""
DEPTH = 32

MODE = "mode"
"""The metadata of an object that holds the file's mode, in octal; plain files go without."""
EXECUTABLE = "755"

_FORMAT = b"danlu-code-1\n"


class CodeLimits:
    """How much a code directory may hold. ModelArts' own limits are the defaults."""

    # A plain class, as below: the client's path imports this, and dataclasses brings inspect.
    __slots__ = ("files", "size")

    def __init__(self, files: int = limits.CODE_FILES, size: int = limits.CODE_BYTES) -> None:
        self.files = files
        self.size = size

    def check(self, files: int | str, size: int | str) -> None:
        """Raise Invalid, with the exact figures, for more than that.

        A text such as `more than 100000` says that counting was given up, at a bound that is
        above the limit.
        """
        if isinstance(files, str) or files > self.files:
            raise Invalid("code-too-many-files", count=files, limit=self.files)
        if isinstance(size, str) or size > self.size:
            raise Invalid("code-too-large", size=size, limit=self.size)


class CodeFile:
    """One file of a code directory. `path` is relative, with `/`; `sha256` hexadecimal."""

    __slots__ = ("executable", "path", "sha256", "size")

    def __init__(self, path: str, size: int, sha256: str, *, executable: bool = False) -> None:
        self.path = path
        self.size = size
        self.sha256 = sha256
        self.executable = executable

    @property
    def record(self) -> bytes:
        """Everything that makes it this file, in a form that no name can forge."""
        path = self.path.encode()
        kind = "x" if self.executable else "-"
        return f"{kind} {self.size} {self.sha256} {len(path)} ".encode() + path + b"\n"

    def at(self, path: str) -> CodeFile:
        """The same content under another path."""
        return CodeFile(path, self.size, self.sha256, executable=self.executable)


def digest(files: Iterable[CodeFile]) -> str:
    """The name of this content: 64 hexadecimal digits.

    SHA-256 over one record a file, in the order of the paths' bytes. A path is preceded by its
    length, so no name, whatever it holds, can look like another record.
    """
    whole = hashlib.sha256(_FORMAT)
    for file in sorted(files, key=lambda file: file.path.encode()):
        whole.update(file.record)
    return whole.hexdigest()


def is_digest(value: str) -> bool:
    """Whether `value` has the form that `digest` gives."""
    return len(value) == 64 and set(value) <= set("0123456789abcdef")


def check_name(name: str) -> None:
    """Raise Invalid for what cannot be the name of a code directory."""
    encoded = _utf8(name)
    size = len(encoded) if encoded is not None else 0
    if encoded is None or not _is_part(name) or name == ".complete" or size > NAME_BYTES:
        raise Invalid("code-name", name=printable(name), limit=NAME_BYTES)


def check_path(path: str) -> None:
    """Raise Invalid, naming the file, for what cannot be a path below the code directory."""
    encoded = _utf8(path)
    if encoded is None:
        raise Invalid("code-path-encoding", path=printable(path))
    parts = path.split("/")
    if not all(_is_part(part) for part in parts):
        raise Invalid("code-path-outside", path=path)
    longest = max(len(part.encode()) for part in parts)
    if longest > PART_BYTES:
        raise Invalid("code-path-long", path=path, size=longest, limit=PART_BYTES)
    if len(encoded) > PATH_BYTES:
        raise Invalid("code-path-long", path=path, size=len(encoded), limit=PATH_BYTES)
    if len(parts) > DEPTH:
        raise Invalid("code-path-deep", path=path, depth=len(parts) - 1, limit=DEPTH - 1)


def check_tree(paths: Iterable[str]) -> None:
    """Raise Invalid where a path is used twice, or is a file here and a directory there."""
    seen: set[str] = set()
    for path in paths:
        if path in seen:
            raise Invalid("code-path-twice", path=path)
        seen.add(path)
    for path in seen:
        above = path.rpartition("/")[0]
        while above:
            if above in seen:
                raise Invalid("code-path-both", path=above, below=path)
            above = above.rpartition("/")[0]


def target(path: str, link: str) -> str | None:
    """The path that a symbolic link at `path` leads to; None where it leaves the directory.

    Purely by the text: other links on the way are not followed.
    """
    if link.startswith("/"):
        return None
    parts = path.split("/")[:-1]
    for part in link.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) or None


def printable(path: str) -> str:
    r"""A path for a message: bytes that are not UTF-8 are written as `\xff`."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _is_part(part: str) -> bool:
    return part not in ("", ".", "..") and "/" not in part and "\0" not in part


def _utf8(text: str) -> bytes | None:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None
