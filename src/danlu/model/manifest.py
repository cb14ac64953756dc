"""A manifest: the proof that an output was delivered, and what a delivery consists of.

It lies with the output, in a directory that scripts and listings pass over:

```
<output>/.danlu/<job>/<task>.<index>.json        the manifest of one task's output
<output>/.danlu/staging/<job>-<attempt>/<task>/  files that are not delivered yet
```
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum

from danlu.model.codec import from_json
from danlu.model.job import Output

HIDDEN = ".danlu"
STAGING = f"{HIDDEN}/staging/"


class Delivery(StrEnum):
    """How far an output is."""

    COMMITTING = "committing"
    """All files are there under the staging prefix; they are being moved to their names."""
    COMMITTED = "committed"


@dataclass(frozen=True, slots=True)
class File:
    """One file of an output; `sha256` in hexadecimal digits."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Owner:
    """The task of an attempt that an output belongs to; `token` proves the attempt."""

    job: str
    attempt: int
    task: str
    token: str

    @property
    def staging(self) -> str:
        """The prefix of files that are not delivered yet."""
        return f"{STAGING}{self.job}-{self.attempt}/{self.task}/"

    def staged(self, name: bytes) -> str:
        """Where a file lies that is not delivered yet. Short whatever its name is: a key that is
        just short enough must not become too long on the way.
        """
        return f"{self.staging}{hashlib.sha256(name).hexdigest()[:32]}"

    @property
    def attempt_staging(self) -> str:
        """The same for all tasks of the attempt."""
        return f"{STAGING}{self.job}-{self.attempt}/"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one task delivered to one output. `at` is UTC milliseconds."""

    job: str
    attempt: int
    task: str
    token: str
    output: str
    state: Delivery
    at: int
    exit_code: int
    files: tuple[File, ...] = ()


class Problem(StrEnum):
    """What is wrong with a file of a delivered output."""

    NONE = ""
    MISSING = "missing"
    SIZE = "size"
    CONTENT = "content"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Delivered:
    """One task's output; `manifest` is None where nothing was delivered (yet)."""

    output: Output
    task: str
    manifest: Manifest | None


@dataclass(frozen=True, slots=True)
class Checked:
    """One file of an output and what is wrong with it."""

    output: str
    name: str
    size: int
    problem: Problem


def manifest_name(job: str, task: str, index: int) -> str:
    """Where the manifest of a task's output number `index` lies, relative to the output."""
    return f"{HIDDEN}/{job}/{task}.{index}.json"


def hidden(name: str) -> bool:
    """Whether a name below an output is the platform's own."""
    return name == HIDDEN or name.startswith(f"{HIDDEN}/")


def read_manifest(data: bytes) -> Manifest | None:
    """The manifest that a document is, or None."""
    try:
        return from_json(Manifest, json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
