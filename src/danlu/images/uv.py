"""Runs uv: found beside this Python or on PATH, told of the package sources that pip is told of.

uv reads none of pip's settings. Whoever has set PIP_INDEX_URL or PIP_FIND_LINKS for a machine means
every installer on it, so their values are handed on; uv's own variables win. Settings files are
left out: what an image is made of must not depend on who makes it.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from danlu.model.errors import Unavailable

TORCH_INDEX = "https://download.pytorch.org/whl"
LOOK_EVERY_S = 0.02
SAID_BYTES = 8192
SAID_LINES = 6
FULL = f"(os error {errno.ENOSPC})"

Check = Callable[[], None]
"""Called often; raises when the work is no longer wanted."""


def nothing(*_: object, **__: object) -> None:
    """For whoever does not stop, or does not listen."""


class Failed(Exception):
    """uv ended with an error; `said` is the end of what it printed."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.said = said


@dataclass(frozen=True, slots=True)
class Sources:
    """Where packages come from."""

    index: str = ""
    extra: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    insecure_hosts: tuple[str, ...] = ()
    certificates: str = ""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Sources:
        """What uv's and pip's variables say."""
        found = environ.get
        return cls(
            found("UV_DEFAULT_INDEX") or found("UV_INDEX_URL") or found("PIP_INDEX_URL") or "",
            _words(
                found("UV_INDEX") or found("UV_EXTRA_INDEX_URL") or found("PIP_EXTRA_INDEX_URL")
            ),
            # uv separates these by commas, pip by spaces.
            _words((found("UV_FIND_LINKS") or found("PIP_FIND_LINKS") or "").replace(",", " ")),
            (found("UV_NO_INDEX") or found("PIP_NO_INDEX") or "").lower()
            in ("1", "true", "yes", "on"),
            _words(found("UV_INSECURE_HOST") or found("PIP_TRUSTED_HOST")),
            found("SSL_CERT_FILE") or found("PIP_CERT") or found("REQUESTS_CA_BUNDLE") or "",
        )

    def options(self) -> list[str]:
        """As options of uv."""
        words = ["--no-index"] if self.no_index else []
        if self.index and not self.no_index:
            words += ["--default-index", self.index]
        for name, values in (
            ("--index", () if self.no_index else self.extra),
            ("--find-links", self.find_links),
            ("--allow-insecure-host", self.insecure_hosts),
        ):
            words += [word for value in values for word in (name, value)]
        return words

    def lies_here(self, filename: str) -> bool:
        """Whether a directory of find-links holds that file."""
        return any((place / filename).is_file() for place in self.directories())

    def directories(self) -> list[Path]:
        """The find-links that are directories of this machine."""
        found = []
        for link in self.find_links:
            parts = urlsplit(link)
            if parts.scheme in ("", "file"):
                found.append(Path(unquote(parts.path)))
        return found


def _words(value: str | None) -> tuple[str, ...]:
    return tuple((value or "").split())


def find() -> str:
    """The program. Unavailable, with what to do, where there is none."""
    beside = Path(sys.executable).parent / "uv"
    if os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which("uv")
    if found is None:
        raise Unavailable("image-no-uv")
    return found


class Uv:
    """uv with one cache. What runs is ended when `check` raises; a command holds `held`, a lock's
    descriptor, for as long as it lives, also when whoever started it was killed.
    """

    def __init__(
        self, cache: Path, sources: Sources, *, check: Check = nothing, held: int | None = None
    ) -> None:
        self._program = find()
        self._cache = cache
        self.sources = sources
        self._check = check
        self._held = held

    def __call__(self, *words: str, cwd: Path | None = None) -> str:
        """Run one command of uv; what it printed to stdout. Failed where it fails, OSError where
        the disk is full.
        """
        command = [self._program, "--no-config", "--quiet", "--color", "never", *words]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=said,
                cwd=cwd,
                env=self._environment(),
                start_new_session=True,
                pass_fds=() if self._held is None else (self._held,),
            )
            code = self._wait(process)
            if code != 0:
                raise self._failure(_end(said), code)
            out.seek(0)
            return out.read().decode("utf-8", "replace")

    def _environment(self) -> dict[str, str]:
        kept = {
            n: v for n, v in os.environ.items() if not n.startswith(("UV_", "PIP_", "VIRTUAL_"))
        }
        certificates = self.sources.certificates
        return {
            **kept,
            **({"SSL_CERT_FILE": certificates} if certificates else {}),
            "UV_CACHE_DIR": str(self._cache),
            "UV_PYTHON_INSTALL_DIR": str(self._cache.parent / "pythons"),
        }

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        try:
            while True:
                self._check()
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(LOOK_EVERY_S)
        except BaseException:
            process.kill()
            process.wait()
            raise

    def _failure(self, said: str, code: int) -> Exception:
        if FULL in said or os.strerror(errno.ENOSPC) in said:
            return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._cache.parent))
        return Failed(said or f"uv exited with {code}")


def _end(file: IO[bytes]) -> str:
    """The last lines of what was printed, as one."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - SAID_BYTES))
    text = file.read().decode("utf-8", "replace")
    lines = [" ".join(line.split()).lstrip("×╰─▶│ ") for line in text.splitlines()]
    return " ".join([line for line in lines if line][-SAID_LINES:]).removeprefix("error: ")


def index_of(version: str) -> str:
    """PyTorch's own index for builds of a local version (`2.13.0+cpu`); empty for PyPI's."""
    _, _, tag = version.partition("+")
    return f"{TORCH_INDEX}/{tag}" if tag == "cpu" or tag.startswith("cu") else ""


def extended(sources: Sources, wanted: Sequence[tuple[str, str]]) -> list[str]:
    """Options for sources that have all of these files, given as version and file name: with
    PyTorch's own index for builds that are not on this machine. Several indexes may then name one
    package, and digests say which file is meant.
    """
    indexes = dict.fromkeys(
        index_of(version)
        for version, filename in wanted
        if index_of(version) and not sources.lies_here(filename)
    )
    words = sources.options()
    if indexes and not sources.no_index:
        words += [word for one in indexes for word in ("--index", one)]
    if indexes or sources.extra:
        words += ["--index-strategy", "unsafe-best-match"]
    return words


def wait_for(condition: Callable[[], bool], check: Check, every_s: float = 0.1) -> None:
    """Until a condition holds."""
    while not condition():
        check()
        time.sleep(every_s)
