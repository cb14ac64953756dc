"""A notebook as the proxy sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from socket import socket
from typing import Protocol

from danlu.model.errors import Missing
from danlu.model.identity import Secret


class Phase(StrEnum):
    """What can be seen at a notebook's origin."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Sentence:
    """What a page says of a notebook, in both languages."""

    en: str
    zh: str


NOTHING = Sentence("", "")

Connect = Callable[[], socket]


def no_lab() -> socket:
    """For a notebook that does not run."""
    raise Missing("endpoint-missing", name="lab.sock")


@dataclass(frozen=True, slots=True)
class Instance:
    """One notebook now."""

    notebook: str
    name: str
    start: str
    """Names this run of it: another start has another one."""
    phase: Phase
    connect: Connect = no_lab
    """Gives a connection to Lab, without blocking: Missing where nothing listens, Unavailable where
    it takes none at the moment.
    """
    token: Secret = field(default_factory=lambda: Secret(""))
    detail: Sentence = NOTHING
    """How far a start is; why it was stopped or has failed."""


class Instances(Protocol):
    """Where notebooks are looked up."""

    def find(self, workspace: str, notebook: str) -> Instance | None:
        """The notebook of this id as it is now; None where there is none. Quick: every request to
        every notebook asks.
        """
