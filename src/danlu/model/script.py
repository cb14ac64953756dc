"""What a script finds when it starts: its arguments, environment and paths (ModelArts' contract).

Pure: an engine says where the fixed places lie (`Layout`), `world` says the rest. Rules and
names come from ModelArts' documentation and from what public scripts rely on: injected arguments
stand at the very end of the command as `--name=value`, parameters first, then the channels whose
access method is `parameter`; duplicates are kept.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from danlu.model.job import (
    NOTEBOOK,
    STOP_SIGNALS,
    Access,
    EngineChoice,
    Input,
    Kind,
    Output,
    Parameter,
    Volume,
)
from danlu.model.log_rules import LogRule
from danlu.model.notebook import lab_token
from danlu.model.resources import Gpu
from danlu.model.storage import StorageAccess
from danlu.model.url import ObjectUrl
from danlu.model.verification import Verify

LITERAL_HOME = "/home/ma-user"
LITERAL_CACHE = "/cache"
USER_ENVIRONMENT_LIMIT = 100
NOTEBOOK_RUNNER = "danlu_run_notebook"
"""The module of `runtime/` that executes a notebook."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the fixed places of a task lie on the engine; absolute paths.

    `home` stands for /home/ma-user, `cache` for /cache. `python` is the interpreter of the job's
    environment, `path` its PATH; `runtime` holds the modules that scripts may import beside those
    of their environment (moxing), empty = there are none.
    """

    home: str
    cache: str
    temp: str
    python: str
    path: str
    user: str = "ma-user"
    runtime: str = ""

    @property
    def literal(self) -> bool:
        """Whether a script finds the very paths that ModelArts documents."""
        return self.home == LITERAL_HOME and self.cache == LITERAL_CACHE

    @property
    def mount(self) -> str:
        """MA_MOUNT_PATH."""
        return f"{self.home}/modelarts"

    @property
    def endpoints(self) -> str:
        """Where the program of a notebook listens, and SSH of a job."""
        return f"{self.mount}/endpoints"

    @property
    def job_dir(self) -> str:
        """MA_JOB_DIR: the code directory is copied below it, under its own name."""
        return f"{self.mount}/user-job-dir"

    def channel(self, kind: str, index: int, channel: Input | Output) -> str:
        """The directory of a channel: its `local_dir` below the home, or the usual place."""
        if channel.local_dir:
            return self.below(channel.local_dir)
        return f"{self.mount}/{kind}/{channel.name}_{index}"

    def below(self, path: str) -> str:
        """Map a literal path of ModelArts' container to where it lies here."""
        if path.startswith(f"{LITERAL_HOME}/") or path == LITERAL_HOME:
            return self.home + path.removeprefix(LITERAL_HOME)
        if path.startswith(f"{LITERAL_CACHE}/") or path == LITERAL_CACHE:
            return self.cache + path.removeprefix(LITERAL_CACHE)
        return path


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """Everything that one task needs to run, independent of where.

    `hosts` names every task's host in order of index; `rendezvous_port` is the same for all.
    Both are filled in by the engine when it launches a gang.
    """

    job_id: str
    attempt: int
    index: int
    token: str
    job_name: str
    node_count: int = 1
    hosts: tuple[str, ...] = ("127.0.0.1",)
    addresses: tuple[str, ...] = ()
    """The hosts' addresses, where their names are not that already."""
    rendezvous_port: int = 0
    code: ObjectUrl | None = None
    boot_file: str = ""
    command: str = ""
    working_dir: str = ""
    local_code_dir: str = ""
    engine: EngineChoice = field(default_factory=EngineChoice)
    image: str = ""
    """The id of the image in whose environment it runs; empty = none."""
    image_name: str = ""
    packages: tuple[str, ...] = ()
    override_image: bool = False
    verify: Verify = Verify.OFF
    """Whether the image is verified before the program."""
    flavor: str = ""
    parameters: tuple[Parameter, ...] = ()
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()
    environments: Mapping[str, str] = field(default_factory=dict)
    gpus: tuple[Gpu, ...] = ()
    cpus: int = 1
    memory_bytes: int = 0
    require_isolation: bool = False
    pids: int = 0
    """How many processes and threads at a time; 0 = as many as there may be."""
    grace_s: int = 30
    stop_signal: str = STOP_SIGNALS[0]
    time_limit_s: int | None = None
    log_url: str = ""
    log_limit_bytes: int = 0
    """What is kept of the log: its head and its tail, half each; 0 = all of it."""
    api: str = ""
    """The server's API endpoint, for MA_APIGW_ENDPOINT; empty = not given."""
    hang_after_s: int = 0
    """After how many seconds in which nothing moves it is taken to hang; 0 = never."""
    log_rules: tuple[LogRule, ...] = ()
    resumes_from: int = 0
    """What lies in the outputs since this instant (UTC ms) was written by earlier attempts, and is
    brought back; 0 = there are none."""

    storage: StorageAccess | None = None
    """How the program reaches objects; None = it cannot."""
    kind: Kind = Kind.JOB
    volumes: tuple[Volume, ...] = ()
    ssh: bool = False
    """Whether OpenSSH answers beside the program of a job."""

    @property
    def listens(self) -> bool:
        """Whether it has a directory in which something of it listens."""
        return self.ssh or self.kind is Kind.NOTEBOOK

    @property
    def task_name(self) -> str:
        """`worker-0`."""
        return f"worker-{self.index}"

    @property
    def storage_variables(self) -> dict[str, str]:
        """The variables by which the program reaches objects, with its key."""
        return {} if self.storage is None else self.storage.variables(self.environments)


@dataclass(frozen=True, slots=True)
class World:
    """What the task is started with: no shell stands between `argv` and the program."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    code_dir: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def world(plan: TaskPlan, layout: Layout) -> World:
    """The arguments, environment and directories of `plan` on an engine with `layout`."""
    code_dir = _code_dir(plan, layout)
    inputs = tuple(layout.channel("inputs", i, channel) for i, channel in enumerate(plan.inputs))
    outputs = tuple(layout.channel("outputs", i, channel) for i, channel in enumerate(plan.outputs))
    injected = _injected(plan, inputs, outputs)
    env = _environment(plan, layout, code_dir, inputs, outputs)
    if plan.boot_file:
        runner = ("-m", NOTEBOOK_RUNNER) if plan.boot_file.endswith(NOTEBOOK) else ()
        boot_file = f"{code_dir}/{plan.boot_file}"
        argv: tuple[str, ...] = (layout.python, *runner, boot_file, *injected)
        cwd = code_dir
    else:
        # A shell line, as on ModelArts: the arguments belong to its last command.
        line = " ".join([plan.command.rstrip(), *(shlex.quote(arg) for arg in injected)])
        argv = ("/bin/bash", "-c", line)
        cwd = layout.home
    if plan.working_dir:
        cwd = layout.below(plan.working_dir)
    if plan.ssh and layout.runtime:
        # It becomes the program, with a process beside it that answers until the program ends.
        sshd = (layout.python, "-I", f"{layout.runtime}/danlu_sshd.py")
        argv = (*sshd, "--at", layout.endpoints, "--home", cwd, "--", *argv)
    return World(argv, env, cwd, code_dir, inputs, outputs)


def _code_dir(plan: TaskPlan, layout: Layout) -> str:
    if plan.code is None:
        return layout.job_dir
    if plan.local_code_dir:
        return f"{layout.below(plan.local_code_dir).rstrip('/')}/{plan.code.name}"
    return f"{layout.job_dir}/{plan.code.name}"


def _injected(plan: TaskPlan, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> tuple[str, ...]:
    arguments = [f"--{parameter.name}={parameter.value}" for parameter in plan.parameters]
    arguments.extend(
        f"--{channel.name}={place}"
        for channel, place in _placed(plan, inputs, outputs)
        if channel.access is Access.PARAMETER
    )
    if plan.boot_file and plan.node_count > 1 and _preset(plan.engine):
        # A preset PyTorch image hands its boot file the rendezvous.
        arguments.extend(
            [
                f"--init_method=tcp://{plan.hosts[0]}:{plan.rendezvous_port}",
                f"--rank={plan.index}",
                f"--world_size={plan.node_count}",
            ]
        )
    return tuple(arguments)


def _preset(engine: EngineChoice) -> bool:
    return bool(engine.engine_id or engine.engine_name)


def _environment(
    plan: TaskPlan,
    layout: Layout,
    code_dir: str,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
) -> dict[str, str]:
    instance = f"modelarts-job-{plan.job_id}-worker-{plan.index}"
    job_name = f"ma-job-{plan.job_id}"
    env = {
        "PATH": layout.path,
        "HOME": layout.home,
        "USER": layout.user,
        "LOGNAME": layout.user,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "SHELL": "/bin/bash",
        "TMPDIR": layout.temp,
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8",
        "PYTHONPATH": _python_path(plan, layout, code_dir),
        "MA_HOME": layout.home,
        "MA_JOB_DIR": layout.job_dir,
        "MA_CODE_DIR": code_dir,
        "MA_MOUNT_PATH": layout.mount,
        "MA_LOG_DIR": f"{layout.mount}/log",
        "MA_CACHE_DIR": layout.cache,
        "MA_SCRIPT_INTERPRETER": layout.python,
        "WORKSPACE": layout.home,
        "MA_NUM_HOSTS": str(plan.node_count),
        "VC_WORKER_NUM": str(plan.node_count),
        "VC_TASK_INDEX": str(plan.index),
        "VC_WORKER_HOSTS": ",".join(plan.hosts),
        "MA_NUM_GPUS": str(len(plan.gpus)),
        "MA_TASK_NAME": "worker",
        "MA_CURRENT_IP": (plan.addresses or plan.hosts)[plan.index],
        "MA_CURRENT_HOST_IP": (plan.addresses or plan.hosts)[plan.index],
        "MA_CURRENT_INSTANCE_NAME": instance,
        "MA_VJ_NAME": job_name,
        "MA_HJ_NAME": job_name,
        "MA_NAMESPACE": "default",
        "MA_JOB_KIND": "job",
        "MA_RUN_METHOD": "boot_file" if plan.boot_file else "command",
        "MA_INPUTS": _channels_json(plan.inputs, inputs),
        "MA_OUTPUTS": _channels_json(plan.outputs, outputs),
        "MA_RENDEZVOUS_PORT": str(plan.rendezvous_port),
        "DANLU_JOB_ID": plan.job_id,
        "DANLU_ATTEMPT": str(plan.attempt),
        # An empty list hides every GPU from a task whose flavor has none.
        "CUDA_VISIBLE_DEVICES": ",".join(gpu.uuid for gpu in plan.gpus),
    }
    env.update(_if_any(plan, layout))
    env.update(
        (channel.name, place)
        for channel, place in _placed(plan, inputs, outputs)
        if channel.access is Access.ENV
    )
    return _with_own(env, plan, layout)


def _with_own(env: dict[str, str], plan: TaskPlan, layout: Layout) -> dict[str, str]:
    """With the variables that the job's user asks for, which win."""
    own = dict(plan.environments)
    if "PYTHONPATH" in own and layout.runtime:
        # A script that names its own modules still finds the platform's.
        own["PYTHONPATH"] += f":{layout.runtime}"
    return {**env, **plan.storage_variables, **own}


def _python_path(plan: TaskPlan, layout: Layout, code_dir: str) -> str:
    """The script's own modules come first: one that brings a `moxing` of its own gets that."""
    own = [] if plan.code is None else [code_dir]
    return ":".join(filter(None, [layout.job_dir, *own, layout.runtime]))


def _if_any(plan: TaskPlan, layout: Layout) -> dict[str, str]:
    """Variables that are only there where they mean something."""
    found = {"DANLU_RESUME": "1"} if plan.resumes_from else {}
    if plan.kind is Kind.NOTEBOOK:
        found["DANLU_ENDPOINTS"] = layout.endpoints
        found["DANLU_LAB_TOKEN"] = lab_token(plan.token)
    return {**found, "MA_APIGW_ENDPOINT": plan.api} if plan.api else found


def _placed(
    plan: TaskPlan, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> list[tuple[Input | Output, str]]:
    channels: list[Input | Output] = [*plan.inputs, *plan.outputs]
    return list(zip(channels, [*inputs, *outputs], strict=True))


def _channels_json(channels: Sequence[Input | Output], places: tuple[str, ...]) -> str:
    listed = [
        {
            "name": channel.name,
            "local_dir": place,
            "access_method": str(channel.access),
            "remote": {"obs": {"obs_url": str(channel.url)}},
        }
        for channel, place in zip(channels, places, strict=True)
    ]
    return json.dumps(listed, ensure_ascii=False)
