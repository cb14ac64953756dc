"""What was found when an image was verified where its jobs run: by check, and as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How a check ended. What could not be looked at is skipped, and never passes."""

    PASS = "PASS"  # noqa: S105 -- not a password
    WARN = "WARN"
    FAIL = "FAIL"
    SKIPPED = "SKIPPED"


class Verify(StrEnum):
    """When the image of a task is verified before its program: not at all, if it was not yet on
    such a flavor, or in any case.
    """

    OFF = "off"
    ONCE = "once"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    number: int
    name: str
    status: Status
    detail: str


@dataclass(frozen=True, slots=True)
class Advisory:
    """A version with a known hole: below which version, what it is, and who says so."""

    package: str
    version: str
    below: str
    id: str
    severity: str
    summary: str
    source: str


@dataclass(frozen=True, slots=True)
class Verification:
    """A report. It holds for one image as it is realised (`venv`, or the id of the container image)
    on one flavor with one driver. `at` is UTC ms.
    """

    image: str
    image_name: str
    flavor: str
    realisation: str
    driver: str
    system: str
    job: str
    at: int
    took_s: float
    findings: tuple[Finding, ...]
    advisories: tuple[Advisory, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing failed, and something passed."""
        return not self.of(Status.FAIL) and bool(self.of(Status.PASS))

    @property
    def on_gpus(self) -> bool:
        """Whether the rows about GPUs were looked at."""
        return any(one.number >= FIRST_GPU_ROW and one.status is not Status.SKIPPED
                   for one in self.findings)  # fmt: skip

    def of(self, status: Status) -> list[Finding]:
        """The checks that ended so."""
        return [one for one in self.findings if one.status is status]

    def counts(self) -> dict[str, int]:
        """How many checks ended how, by small names."""
        return {one.value.lower(): len(self.of(one)) for one in Status}

    def failures(self) -> str:
        """What failed, in one line."""
        return "; ".join(f"{one.number} {one.name}: {one.detail}" for one in self.of(Status.FAIL))


FIRST_GPU_ROW = 25


def read(data: Mapping[str, Any]) -> Verification:
    """A report from its JSON. Raises KeyError, TypeError or ValueError."""
    findings = tuple(
        Finding(int(one["number"]), str(one["name"]), Status(one["status"]), str(one["detail"]))
        for one in data["findings"]
    )
    advisories = tuple(Advisory(**one) for one in data["advisories"])
    plain = {key: data[key] for key in ("image", "image_name", "flavor", "realisation", "driver",
                                        "system", "job", "at", "took_s")}  # fmt: skip
    return Verification(**plain, findings=findings, advisories=advisories)
