"""Why an attempt ended: a code, who has to act on it, and whether trying again can help."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from danlu.model.texts import Language, text


class Blame(StrEnum):
    """Whose side the cause lies on."""

    NOBODY = "nobody"
    USER = "user"
    PLATFORM = "platform"
    CAPACITY = "capacity"


class ReasonCode(StrEnum):
    """The typed cause of an end. Its text stands in `danlu.model.texts.reasons`."""

    COMPLETED = "completed"
    EXIT = "exit"
    SIGNAL = "signal"
    OUT_OF_MEMORY = "out-of-memory"
    PIDS_LIMIT = "pids-limit"
    NOT_ISOLATED = "not-isolated"
    OUT_OF_DISK = "out-of-disk"
    STOPPED = "stopped"
    TIME_LIMIT = "time-limit"
    INPUT_FAILED = "input-failed"
    CODE_FAILED = "code-failed"
    ENVIRONMENT_FAILED = "environment-failed"
    REQUIREMENTS_FAILED = "requirements-failed"
    BOOT_FAILED = "boot-failed"
    IMAGE_FAILED = "image-failed"
    IMAGE_UNVERIFIED = "image-unverified"
    CONTAINER_FAILED = "container-failed"
    GPUS_MISSING = "gpus-missing"
    OUTPUT_FAILED = "output-failed"
    LAUNCH_FAILED = "launch-failed"
    AGENT_LOST = "agent-lost"
    TASK_LOST = "task-lost"
    RESTORED = "restored"
    REBOOTED = "rebooted"
    PREEMPTED = "preempted"
    HUNG = "hung"
    LEASE_ENDED = "lease-ended"
    IDLE = "idle"
    RUN_LIMIT = "run-limit"
    HOME_KEPT = "home-kept"
    LAB_MISSING = "lab-missing"
    CELL_FAILED = "cell-failed"
    NOTEBOOK_FAILED = "notebook-failed"


BLAME: Mapping[ReasonCode, Blame] = MappingProxyType(
    {
        ReasonCode.COMPLETED: Blame.NOBODY,
        ReasonCode.EXIT: Blame.USER,
        ReasonCode.SIGNAL: Blame.USER,
        ReasonCode.OUT_OF_MEMORY: Blame.USER,
        ReasonCode.PIDS_LIMIT: Blame.USER,
        ReasonCode.NOT_ISOLATED: Blame.USER,
        ReasonCode.OUT_OF_DISK: Blame.CAPACITY,
        ReasonCode.STOPPED: Blame.USER,
        ReasonCode.TIME_LIMIT: Blame.USER,
        ReasonCode.INPUT_FAILED: Blame.USER,
        ReasonCode.CODE_FAILED: Blame.USER,
        ReasonCode.ENVIRONMENT_FAILED: Blame.PLATFORM,
        ReasonCode.REQUIREMENTS_FAILED: Blame.USER,
        ReasonCode.BOOT_FAILED: Blame.USER,
        ReasonCode.IMAGE_FAILED: Blame.USER,
        ReasonCode.IMAGE_UNVERIFIED: Blame.PLATFORM,
        ReasonCode.CONTAINER_FAILED: Blame.PLATFORM,
        ReasonCode.GPUS_MISSING: Blame.PLATFORM,
        ReasonCode.OUTPUT_FAILED: Blame.PLATFORM,
        ReasonCode.LAUNCH_FAILED: Blame.PLATFORM,
        ReasonCode.AGENT_LOST: Blame.PLATFORM,
        ReasonCode.TASK_LOST: Blame.PLATFORM,
        ReasonCode.RESTORED: Blame.PLATFORM,
        ReasonCode.REBOOTED: Blame.PLATFORM,
        ReasonCode.PREEMPTED: Blame.CAPACITY,
        ReasonCode.HUNG: Blame.USER,
        ReasonCode.LEASE_ENDED: Blame.NOBODY,
        ReasonCode.IDLE: Blame.NOBODY,
        ReasonCode.RUN_LIMIT: Blame.NOBODY,
        ReasonCode.HOME_KEPT: Blame.PLATFORM,
        ReasonCode.LAB_MISSING: Blame.USER,
        ReasonCode.CELL_FAILED: Blame.USER,
        ReasonCode.NOTEBOOK_FAILED: Blame.USER,
    }
)


@dataclass(frozen=True, slots=True)
class Reason:
    """A typed cause with the values its sentence needs (strings and whole numbers)."""

    code: ReasonCode
    params: Mapping[str, str | int] = field(default_factory=dict)

    @property
    def blame(self) -> Blame:
        """Whose side the cause lies on."""
        return BLAME[self.code]

    def told(self) -> dict[str, str | int]:
        """Values for a text with a `because`: it becomes this reason's sentence."""
        return {**self.params, "because": str(self.code)}

    def sentence(self, language: Language = "en") -> str:
        """The cause as one sentence."""
        said = text(self.code, language, **self.params)
        if "rule" not in self.params:
            return said
        why = text(f"rule-{self.params['rule']}", language, **self.params)
        return f"{said}；{why}" if language == "zh" else f"{said}; {why}"
