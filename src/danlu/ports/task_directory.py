"""The task directory: how the node agent, its shim and the server tell each other things.

One directory a task, on the machine where it runs. Every file has one writer. Whole files are
published by rename (write `x.tmp`, fsync, rename); growing files are only ever appended to.

| file | writer | holds |
|---|---|---|
| `plan.json` | server, before the agent starts | `AgentPlan`: what to run |
| `lock` | agent, then shim | an exclusive flock; free = neither lives |
| `watch` | agent | an exclusive flock that the shim does not inherit; free = no agent in charge |
| `agent.json` | agent | `ProcessIdentity` of the agent, and the attempt's token |
| `agent.err` | agent | what went wrong in the agent itself, for people |
| `task.json` | shim | `ProcessIdentity` of shim and program, `started_at` |
| `program.json` | agent | what the program started with (without its key), for commands beside it |
| `cgroup.json` | agent | the directories of the task's control groups, by controller |
| `stop.json` | server | `{"grace_s": …}`; then SIGTERM to the agent |
| `hung.json` | agent | since when nothing moves in it; removed when something does |
| `stacks.txt` | agent | where its processes stood when nothing moved; append-only |
| `fenced.json` | server | `{"by": …}`: the attempt that follows; nothing may begin here any more |
| `told/verify.json`, `.word` | agent | what an image is held against; the leave to start |
| `verified.json` | agent | what came of that |
| `told/notice.json` | agent | why and until when the program is being stopped; before its SIGTERM |
| `log` | agent while staging, then shim | what the program printed, bytes, append-only |
| `log.tail/`, `log.index` | shim | a long log's end; where lines are (`node/log_files.py`) |
| `notes.jsonl` | agent, shim | one note a line, each in one write |
| `samples.jsonl` | agent | one sample a line |
| `stored.jsonl` | agent | one output file that is safely stored a line |
| `exit.json` | shim (agent if the shim died) | how the program ended; before the lock drops |
| `installed.json` | agent | what the task had changed of its environment when it ended |
| `done.json` | agent | outputs and logs are stored (or why not) |
| `box/` | agent, container | what is /run/danlu in its container (`node/container/entry.py`) |
| `view/` | agent | an empty directory, on which the program's view of files is built |
| `work/…/endpoints/` | a notebook's program | its sockets, and what it says of itself |
| `work/` | agent | code, inputs, outputs, home, cache, temp; removed once outputs are stored |

An agent that finds the directory already begun takes it over: the one before it has died (the
`watch` lock proves it). So "start an agent in this directory" is the answer to every doubt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

from danlu.model.script import Layout, TaskPlan

PLAN = "plan.json"
LOCK = "lock"
WATCH = "watch"
AGENT = "agent.json"
AGENT_ERRORS = "agent.err"
TASK = "task.json"
PROGRAM = "program.json"
CGROUP = "cgroup.json"
STOP = "stop.json"
HUNG = "hung.json"
STACKS = "stacks.txt"
FENCED = "fenced.json"
TOLD = "told"
VIEW = "view"
BOX = "box"
VERIFY = f"{TOLD}/verify.json"
VERIFY_WORD = f"{TOLD}/verify.word"
VERIFIED = "verified.json"
NOTICE = f"{TOLD}/notice.json"
"""In a directory of its own: of the others the program sees none."""
LOG = "log"
LOG_TAIL = "log.tail"
LOG_INDEX = "log.index"
NOTES = "notes.jsonl"
SAMPLES = "samples.jsonl"
STORED = "stored.jsonl"
EXIT = "exit.json"
INSTALLED = "installed.json"
DONE = "done.json"
WORK = "work"
READY = "ready"
"""Made by the program of a notebook, beside its endpoints, once they answer."""

BUSY_EXIT = 76
"""What an agent exits with when another one is in charge of its directory, or none may be."""


@dataclass(frozen=True, slots=True)
class Isolation:
    """How far the programs of an engine are kept from what is not theirs.

    `wanted` = as far as the machine allows, otherwise not at all. `hidden` are directories of the
    server's that no task may see (homes are hidden anyway); `readable` and `writable` what every
    task may use, wherever it lies.
    """

    wanted: bool = True
    hidden: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    namespaces: bool = True
    """Whether namespaces are used where the machine allows them."""
    closed: tuple[str, ...] = ()
    """Where the server keeps what is its own: no input or output is, holds or lies in one of these
    when the task begins either, whatever its place was when the job was submitted."""
    open: str = ""
    """The place within them that jobs may be given."""


@dataclass(frozen=True, slots=True)
class Datasets:
    """Where data sets stay on the machine for the next task, and how many bytes of them (0 = none
    do).
    """

    root: str = ""
    limit_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Storing:
    """How data comes and goes. Outputs are stored every `interval_s` during the run; a store that
    does not answer at the end is waited for for `patience_s` beyond the first tries. `datasets` are
    inputs that stay.
    """

    interval_s: float = 5.0
    patience_s: float = 0.0
    datasets: Datasets = Datasets()


@dataclass(frozen=True, slots=True)
class ContainerPlan:
    """The container of a task: at which socket its runtime listens, its name there, and its image.

    `network` is a network of the job's own, in which it has `address`; empty = the runtime's usual
    one. `hosts` are names that are to resolve, with their addresses. In the directory `facts` is
    kept what was found out about images. `gpu_driver` is how the runtime is asked for GPUs.
    """

    socket: str
    name: str
    image: str
    facts: str
    hostname: str = ""
    network: str = ""
    address: str = ""
    hosts: Mapping[str, str] = field(default_factory=dict)
    gpu_driver: str = "cdi"
    rootless: bool = False


@dataclass(frozen=True, slots=True)
class AgentPlan:
    """`plan.json`: a task, where its places lie, and how the agent reaches the platform.

    `objects` says which object store to open: `kind` names it (`folder`, or
    `module:Class`), the rest are its constructor's arguments. `environment` is what the task gets
    of the server's own variables; the task's own ones win. `wake` is the socket that is told of
    changes, empty = nobody.
    """

    plan: TaskPlan
    layout: Layout
    objects: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    wake: str = ""
    storing: Storing = Storing()
    isolation: Isolation = Isolation()
    images: str = ""
    """Where the machine's images lie."""
    packages: str = ""
    """Where the server's Python packages lie. The agent itself needs the standard library only;
    stores of other kinds, and reading GPUs, need more."""
    container: ContainerPlan | None = None
    """Where the program runs in a container; None = beside the agent."""
    volumes: str = ""
    """Where the volumes of tasks lie, each under its name."""


class ProcessIdentity(TypedDict):
    """A process that a pid alone cannot name: pids are used again, boots end."""

    pid: int
    start_ticks: int
    """Field 22 of /proc/<pid>/stat: clock ticks after boot at which it started."""
    boot_id: str
    """/proc/sys/kernel/random/boot_id."""


class AgentFile(TypedDict):
    """`agent.json`."""

    token: str
    agent: ProcessIdentity
    starts: NotRequired[int]
    """How many agents this directory has had, this one included."""


class TaskFile(TypedDict):
    """`task.json`."""

    token: str
    shim: ProcessIdentity
    program: ProcessIdentity
    started_at: int
    began_s: NotRequired[float]
    """When it began, on the clock that counts from the machine's start: what a time limit counts
    from. Its process is older, it is kept ready.
    """
    first: NotRequired[ProcessIdentity]
    """The first process of the program's PID namespace, where it has one: ours, not the task's."""


class StopFile(TypedDict):
    """`stop.json`. `reason` is a `StopReason`."""

    grace_s: float
    reason: NotRequired[str]


class HungFile(TypedDict):
    """`hung.json`, there while nothing moves in the task. Instants are UTC ms."""

    since: int
    at: int


class FencedFile(TypedDict):
    """`fenced.json`, written under both locks: whoever takes one later finds it."""

    by: int


class NoticeFile(TypedDict):
    """`told/notice.json`, which the program finds through DANLU_STOP_FILE.

    `reason` is `stop` (a user asked for it), `preemption`, `hang`, `gang` (another task of the job
    has failed) or `time-limit`; `deadline` the
    instant (UTC ms) at which what still runs is killed, `deadline_boot_s` the same in seconds of
    CLOCK_BOOTTIME, which nobody can set.
    """

    reason: str
    at: int
    grace_s: float
    deadline: int
    deadline_boot_s: float


class ExitFile(TypedDict):
    """`exit.json`. `signal` is a name or empty; `problem` a ReasonCode or empty."""

    token: str
    ended_at: int
    exit_code: int
    signal: str
    out_of_memory: bool
    problem: NotRequired[str]
    detail: NotRequired[dict[str, str | int]]


class DoneFile(TypedDict):
    """`done.json`. `problem` is a ReasonCode or empty."""

    token: str
    at: int
    problem: str
    detail: dict[str, str | int]
    log_bytes: int


class NoteLine(TypedDict):
    """A line of `notes.jsonl`."""

    at: int
    key: str
    params: dict[str, str | int]
    level: str


class SampleLine(TypedDict):
    """A line of `samples.jsonl`; a missing key is unknown."""

    at: int
    cpu_cores: NotRequired[float]
    memory_bytes: NotRequired[int]
    gpu_busy: NotRequired[float]
    gpu_memory: NotRequired[float]
