"""What is installed in a task's environment: what is by hand, and what of it can be pinned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from danlu.model.errors import Refused
from danlu.model.texts import Language, text


class Source(StrEnum):
    """Where an installer had a package from, as it noted (direct_url.json)."""

    INDEX = "index"
    """An index, or a directory of wheels."""
    EDITABLE = "editable"
    DIRECTORY = "directory"
    VCS = "vcs"
    ARCHIVE = "archive"
    """A file by its own address."""


@dataclass(frozen=True, slots=True)
class Distribution:
    """One package as it is installed. `tags` are those of the wheel that it came in, `sha256` is
    that of an archive if it was noted. `content` is one digest of its files, the installer's own
    notes left out; empty where it lists none.
    """

    name: str
    version: str
    tags: tuple[str, ...] = ()
    source: Source = Source.INDEX
    url: str = ""
    sha256: str = ""
    content: str = ""


@dataclass(frozen=True, slots=True)
class Installed:
    """What a task has changed of its environment. `image` is the id of the image below it (empty =
    it is no image's). `removed` are names of packages, `loose` files that no package lists or that
    are not as their package lists them.
    """

    image: str
    added: tuple[Distribution, ...] = ()
    removed: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()


class Obstacle(StrEnum):
    """Why a package cannot be pinned."""

    EDITABLE = "editable"
    DIRECTORY = "directory"
    VCS = "vcs"
    ARCHIVE = "archive"
    NO_WHEEL = "no-wheel"
    OTHER_WHEEL = "other-wheel"
    FILES = "files"


@dataclass(frozen=True, slots=True)
class Unpinned:
    """What is in an environment and can be in no lock; `name` is empty for files."""

    name: str
    version: str
    why: Obstacle
    detail: str = ""

    def text(self, language: Language = "en") -> str:
        """What it is and what to do about it, for a person."""
        named = f"{self.name} {self.version}".strip()
        return text(f"freeze-{self.why}", language, package=named, detail=self.detail)


class CannotPin(Refused):
    """Something was installed that a lock cannot name; nothing of it is left out silently."""

    def __init__(self, found: Sequence[Unpinned]) -> None:
        super().__init__("freeze-unpinned", count=len(found))
        self.found = tuple(found)

    def message(self, language: Language = "en") -> str:
        """Everything that cannot be pinned, each with its remedy."""
        head = text(self.key, language, **self.params)
        return "\n".join([head, *(f"- {one.text(language)}" for one in self.found)])


@dataclass(frozen=True, slots=True)
class Changed:
    """A package in which two locks differ; empty = it is not in that one."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Frozen:
    """A new image: its definition and lock as texts, what differs from its parent, and what was
    left out because somebody said so.
    """

    id: str
    name: str
    parent: str
    definition: str
    lock: str
    changes: tuple[Changed, ...]
    left_out: tuple[Unpinned, ...] = ()
