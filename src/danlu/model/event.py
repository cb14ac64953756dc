"""Rows of a job's history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from danlu.model.texts import Language, text


class Level(StrEnum):
    """ModelArts' event levels."""

    INFO = "Info"
    WARNING = "Warning"
    ERROR = "Error"


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Something that happened to a job. `at` is UTC milliseconds; `key` names the text."""

    at: int
    key: str
    params: Mapping[str, str | int] = field(default_factory=dict)
    level: Level = Level.INFO
    task: str = ""
    sequence: int = 0

    def sentence(self, language: Language = "en") -> str:
        """The event as one sentence, with the task's name in front where it has one."""
        said = text(self.key, language, **self.params)
        return f"{self.task}: {said}" if self.task else said
