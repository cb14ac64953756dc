"""A code directory on the client's side: look it over, name its content, send it.

Everything that can be refused is refused from names and sizes, before any content is read.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator

from danlu.faces.cli import ignore
from danlu.model import tar
from danlu.model.code import (
    CodeFile,
    CodeLimits,
    check_name,
    check_path,
    digest,
    printable,
)
from danlu.model.errors import Invalid

TYPE_CHECKING = False
if TYPE_CHECKING:  # this is on every run's path: typing, pathlib and dataclasses cost 40 ms
    from typing import BinaryIO

CHUNK = 256 << 10
MOST_FILES = 100_000
"""Files that are counted; more than that is somebody's home directory."""
IGNORE_BYTES = 1 << 20

_READ = os.O_RDONLY
for _name in ("O_BINARY", "O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"):
    _READ |= getattr(os, _name, 0)  # each where the system has it

_CREDENTIALS = frozenset(
    {".env", ".netrc", ".pypirc", ".npmrc", ".git-credentials", ".pgpass", ".htpasswd"}
    | {"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials", "kubeconfig"}
)
_CREDENTIAL_STARTS = (".env.", "credentials.")
_CREDENTIAL_ENDS = (
    *(".pem", ".key", ".p12", ".pfx", ".jks", ".keystore", ".kdbx"),
    *("credentials.json", "credentials.csv"),
)

_OURS = frozenset({"server.lock", "secret.key"})
"""What a server's data directory holds. A script that lies in somebody's home directory has it
below itself: it is no code, and its key is nothing to send.
"""


class TreeFile:
    """A file to be sent. `place` is where its content lies; for a link, the file it leads to."""

    __slots__ = ("executable", "path", "place", "size")

    def __init__(self, path: str, place: str, size: int, *, executable: bool) -> None:
        self.path = path
        self.place = place
        self.size = size
        self.executable = executable


class CodeTree:
    """The files of a code directory as they were when it was looked over."""

    def __init__(self, name: str, files: list[TreeFile]) -> None:
        self.name = name
        self.files = tuple(sorted(files, key=lambda file: file.path.encode()))
        self.size = sum(file.size for file in files)
        self._sums: dict[str, str] = {}
        self._digest = ""

    @property
    def credentials(self) -> list[str]:
        """Paths of what looks like credentials; worth a warning before they are sent."""
        return [file.path for file in self.files if _is_credential(file.path)]

    def digest(self) -> str:
        """The name of the content, as the server computes it. Reads every file, once.

        Raises Invalid for a file that changed since the look or cannot be read.
        """
        if not self._digest:
            for file in self.files:
                whole = hashlib.sha256()
                for chunk in _content(file):
                    whole.update(chunk)
                self._sums[file.path] = whole.hexdigest()
            self._digest = digest(
                CodeFile(file.path, file.size, self._sums[file.path], executable=file.executable)
                for file in self.files
            )
        return self._digest

    def write_tar(self, target: BinaryIO) -> None:
        """Write the files as an uncompressed tar; the same files always give the same bytes.

        Raises Invalid for a file that changed since the look, or since `digest` read it.
        """
        for file in self.files:
            target.write(tar.encode(file.path, file.size, executable=file.executable))
            whole = hashlib.sha256()
            for chunk in _content(file):
                whole.update(chunk)
                target.write(chunk)
            if self._sums.get(file.path, whole.hexdigest()) != whole.hexdigest():
                raise Invalid("code-changed", path=file.path)
            target.write(bytes(tar.padding(file.size)))
        target.write(tar.END)


def scan(directory: str | os.PathLike[str], limits: CodeLimits | None = None) -> CodeTree:
    """Look over a code directory: names and sizes only.

    Raises Invalid, naming the file, for what cannot be sent, and with exact figures above
    `limits`. What `.danluignore` and the built-in rules leave out is not even looked at.
    """
    root = os.path.realpath(directory)
    if not os.path.isdir(root):
        raise Invalid("code-not-directory", path=printable(os.fspath(directory)))
    check_name(os.path.basename(root))
    return _Scan(root, limits or CodeLimits()).run()


class _Scan:
    def __init__(self, root: str, limits: CodeLimits) -> None:
        self._root = root
        self._limits = limits
        self._ignore = ignore.parse(_ignore_text(os.path.join(root, ignore.FILE)))
        self._files: dict[str, TreeFile] = {}
        self._links: dict[str, str] = {}
        self._size = 0
        self._problem: Invalid | None = None
        """The first one; told only if the directory is not too large anyway."""

    def run(self) -> CodeTree:
        for count, (path, entry) in enumerate(self._walk(), 1):
            if count > MOST_FILES:
                self._limits.check(f"more than {MOST_FILES}", self._size)
            try:
                self._take(path, entry)
            except Invalid as problem:
                self._problem = self._problem or problem
        self._limits.check(len(self._files) + len(self._links), self._size)
        if self._problem is not None:
            raise self._problem
        links = [self._linked(path, place) for path, place in self._links.items()]
        self._limits.check(len(self._files) + len(links), self._size)
        return CodeTree(os.path.basename(self._root), [*self._files.values(), *links])

    def _walk(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Everything that is not left out and not a directory."""
        waiting = [""]
        while waiting:
            below = waiting.pop()
            try:
                with os.scandir(os.path.join(self._root, below)) as entries:
                    found = list(entries)
            except OSError as problem:
                self._problem = self._problem or _unreadable(below.rstrip("/"), problem)
                continue
            if below and {entry.name for entry in found} >= _OURS:
                continue
            for entry in found:
                path = f"{below}{entry.name}"
                directory = entry.is_dir(follow_symlinks=False)
                if self._ignore.leaves_out(path, directory=directory):
                    continue
                if directory:
                    waiting.append(f"{path}/")
                else:
                    yield path, entry

    def _take(self, path: str, entry: os.DirEntry[str]) -> None:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError as problem:
            raise _unreadable(path, problem) from None
        if stat.S_ISREG(status.st_mode):
            self._size += status.st_size
            executable = status.st_mode & 0o100 != 0
            place = os.path.join(self._root, path)
            self._files[path] = TreeFile(path, place, status.st_size, executable=executable)
        elif stat.S_ISLNK(status.st_mode):
            self._links[path] = os.path.join(self._root, path)
        else:
            raise Invalid("code-special", path=printable(path), kind=_kind(status.st_mode))
        check_path(path)

    def _linked(self, path: str, place: str) -> TreeFile:
        """What is sent for a symbolic link: the file of the tree that it leads to."""
        within = os.path.join(self._root, "")
        try:
            real = os.path.realpath(place, strict=True)
        except OSError:
            real = ""
        inside = real.removeprefix(within).replace(os.sep, "/") if real.startswith(within) else ""
        file = self._files.get(inside)
        if file is None:
            raise Invalid("code-link", path=path, target=printable(os.readlink(place)))
        self._size += file.size
        return TreeFile(path, file.place, file.size, executable=file.executable)


def _ignore_text(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(IGNORE_BYTES).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return ""
    except OSError as problem:
        raise _unreadable(ignore.FILE, problem) from None


def _content(file: TreeFile) -> Iterator[bytes]:
    """The bytes of a file, exactly as many as it had when it was looked at."""
    try:
        descriptor = os.open(file.place, _READ)
    except FileNotFoundError:
        raise Invalid("code-changed", path=file.path) from None
    except OSError as problem:
        raise _unreadable(file.path, problem) from None
    try:
        left = file.size
        while chunk := _read(descriptor, file.path):
            left -= len(chunk)
            if left < 0:
                break
            yield chunk
        if left:
            raise Invalid("code-changed", path=file.path)
    finally:
        os.close(descriptor)


def _read(descriptor: int, path: str) -> bytes:
    try:
        return os.read(descriptor, CHUNK)
    except OSError as problem:
        raise _unreadable(path, problem) from None


def _unreadable(path: str, problem: OSError) -> Invalid:
    detail = problem.strerror or type(problem).__name__
    return Invalid("code-unreadable", path=printable(path) or ".", detail=detail)


def _is_credential(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    account = name.startswith(("service-account", "service_account")) and name.endswith(".json")
    return (
        name in _CREDENTIALS
        or name.startswith(_CREDENTIAL_STARTS)
        or name.endswith(_CREDENTIAL_ENDS)
        or account
    )


def _kind(mode: int) -> str:
    if stat.S_ISFIFO(mode):
        return "a named pipe"
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a device"
