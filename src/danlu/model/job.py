"""A job is what a user asked for; after submit only its intent changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from danlu.model.attempt import Attempt
from danlu.model.hang import Hang
from danlu.model.log_rules import LogRule
from danlu.model.resources import Shape
from danlu.model.retry import Retry
from danlu.model.url import ObjectUrl, Url


class Intent(StrEnum):
    """What the user wants of a job now."""

    RUN = "run"
    STOP = "stop"


class Kind(StrEnum):
    """What a job is: what users submit and list, or one start of a notebook."""

    JOB = "job"
    NOTEBOOK = "notebook"


class Access(StrEnum):
    """How a script learns where a channel lies: an argument, or an environment variable."""

    PARAMETER = "parameter"
    ENV = "env"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A hyper-parameter; reaches the script as the single argument `--name=value`."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Input:
    """Data that is staged before the script starts; read by it."""

    name: str
    url: Url
    access: Access = Access.PARAMETER
    local_dir: str = ""


@dataclass(frozen=True, slots=True)
class Volume:
    """A directory of the machine that outlives the tasks which see it at `path`. `name` says which
    one: the engine knows where it lies.
    """

    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Output:
    """A directory that the script writes; stored during the run and at its end.

    `prefetch` (ModelArts' predownload) brings what is stored there before the start: the way in
    which a script finds the checkpoints of an earlier run.
    """

    name: str
    url: Url
    access: Access = Access.PARAMETER
    local_dir: str = ""
    prefetch: bool = False


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The environment or image a job asks for. All empty = the server's default environment."""

    engine_id: str = ""
    engine_name: str = ""
    engine_version: str = ""
    image_url: str = ""


NOTEBOOK = ".ipynb"
"""A boot file that ends so is executed cell by cell, as a notebook."""

STOP_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
"""The first one is the usual one. NCCL takes SIGUSR1 for itself in some versions."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """Everything a user asked for, already validated.

    Exactly one of `boot_file` (relative to `code`) and `command` is set.
    """

    name: str
    flavor: str
    shape: Shape
    node_count: int = 1
    description: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    engine: EngineChoice = EngineChoice()
    image: str = ""
    """The id of the image that `engine` meant when the job was submitted; empty = none."""
    image_name: str = ""
    packages: tuple[str, ...] = ()
    """Packages of the job's own, as pip writes them, beside those of pip-requirements.txt."""
    override_image: bool = False
    """Whether they may replace what an image decides: torch and what follows from it."""
    verify_image: bool = False
    """Whether its image is verified before it though it has been already."""
    code: ObjectUrl | None = None
    boot_file: str = ""
    command: str = ""
    working_dir: str = ""
    local_code_dir: str = ""
    parameters: tuple[Parameter, ...] = ()
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()
    environments: Mapping[str, str] = field(default_factory=dict)
    priority: int = 1
    time_limit_s: int | None = None
    grace_s: int = 30
    stop_signal: str = STOP_SIGNALS[0]
    """What a program is sent that is to end; SIGKILL follows after the grace."""
    log_url: Url | None = None
    require_isolation: bool = False
    """Whether it is refused rather than run where something that isolates tasks is missing."""
    log_limit_bytes: int | None = None
    """What is kept of each task's log; None = what the server allows."""
    retry: Retry = field(default_factory=Retry)
    hang: Hang = field(default_factory=Hang)
    log_rules: tuple[LogRule, ...] = ()
    kind: Kind = Kind.JOB
    volumes: tuple[Volume, ...] = ()
    ssh: bool = False
    """Whether its user gets in over SSH while it runs."""
    key_pairs: tuple[str, ...] = ()
    """Names of the keys of the user's profile that may; empty = each of them."""


@dataclass(frozen=True, slots=True)
class Job:
    """A submitted job. `sequence` orders jobs of the same instant; instants are UTC ms."""

    id: str
    workspace: str
    spec: JobSpec
    created_at: int
    user: str
    intent: Intent = Intent.RUN
    sequence: int = 0
    client_token: str = ""
    stopped_by: str = ""
    """Who asked for the stop: a user's name, or `time-limit`."""


@dataclass(frozen=True, slots=True)
class Task:
    """One process group of an attempt on one node. None = not yet, or not known."""

    index: int
    node: str = ""
    host: str = ""
    started_at: int | None = None
    ended_at: int | None = None
    exit_code: int | None = None
    signal: str = ""
    out_of_memory: bool = False
    notes_seen: int = 0
    """How many of the agent's notes are already in the job's events."""
    hung_at: int | None = None
    """Since when nothing moves in it; None = it works, as far as one can tell."""

    @property
    def name(self) -> str:
        """`worker-0`, as ModelArts names it."""
        return f"worker-{self.index}"


@dataclass(frozen=True, slots=True)
class JobView:
    """A job with its latest attempt and that attempt's tasks: what faces show."""

    job: Job
    attempt: Attempt
    tasks: tuple[Task, ...] = ()


def task_index(name: str, count: int) -> int | None:
    """The index that the task name `worker-N` stands for, or None if there is no such task."""
    prefix, _, number = name.rpartition("-")
    if prefix != "worker" or not number.isascii() or not number.isdigit() or len(number) > 6:
        return None
    index = int(number)
    return index if index < count and name == f"worker-{index}" else None
