"""What lies where a Python environment needs it: its own directory, and what it is made from."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit

LIBRARY_VARIABLES = ("LD_LIBRARY_PATH", "CUDA_HOME", "SSL_CERT_DIR")
FILE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CONFIG_FILE")
PLACE_VARIABLES = ("PIP_FIND_LINKS", "UV_FIND_LINKS")
"""Directories among addresses, where packages come from."""


def needs(python: str, variables: Mapping[str, str]) -> tuple[str, ...]:
    """The directories and files that a program of this environment reads beside its own.
    `variables` are the server's. Never all that there is: an interpreter called `/bin/python3` was
    not installed into `/`.
    """
    found = [*_environment(str(Path(python).parent.parent)), *_named(variables)]
    return tuple(path for path in dict.fromkeys(found) if os.path.realpath(path) != "/")


@functools.cache
def _environment(path: str) -> tuple[str, ...]:
    return tuple(_looked_at(Path(path)))


def _looked_at(root: Path) -> Iterator[str]:
    yield str(root)
    # Its scripts begin with the name of the place where it was made.
    yield os.path.realpath(root)
    real = Path(os.path.realpath(root / "bin" / "python"))
    # Where the interpreter itself was installed: its standard library is beside it.
    yield str(real.parent.parent)
    with suppress(OSError, UnicodeDecodeError):
        for line in (root / "pyvenv.cfg").read_text("utf-8").splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "home" and value.strip().startswith("/"):
                yield str(Path(value.strip()).parent)
    for places in root.glob("lib/python*/site-packages"):
        yield from _linked(places)


def _linked(packages: Path) -> Iterator[str]:
    """Directories that `.pth` files add: packages that are installed where they are edited. A line
    is a path, which may be meant from where the file lies, or a statement, or neither.
    """
    for file in packages.glob("*.pth"):
        with suppress(OSError, UnicodeDecodeError):
            for line in file.read_text("utf-8").splitlines():
                path = Path(os.path.normpath(packages / line.strip()))
                if line.strip() and path.is_dir():
                    yield str(path)


def _named(variables: Mapping[str, str]) -> Iterator[str]:
    for name in LIBRARY_VARIABLES:
        yield from (path for path in variables.get(name, "").split(":") if path.startswith("/"))
    for name in PLACE_VARIABLES:
        words = (urlsplit(word) for word in variables.get(name, "").replace(",", " ").split())
        yield from (unquote(word.path) for word in words if word.scheme in ("", "file"))
    yield from (variables[name] for name in FILE_VARIABLES if name in variables)
