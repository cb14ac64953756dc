"""A job as ModelArts' clients read it.

Three things break the official SDK and are therefore kept here: times are epoch numbers
(milliseconds; seconds in running records), environments are an object, and what is an object is
never sent as a list. Everything in a reply is taken by `modelarts_training.job_spec`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from danlu.model.attempt import FINAL, Attempt, State
from danlu.model.job import STOP_SIGNALS, Input, Intent, JobSpec, JobView, Output, Task
from danlu.model.outcome import failure
from danlu.model.reason import ReasonCode
from danlu.model.resources import Shape
from danlu.model.texts import Language
from danlu.wire import modelarts_training_retry as retry
from danlu.wire.modelarts_catalog import flavor_detail, gigabytes
from danlu.wire.shape import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    Schema,
    listing,
    reply,
)

PHASES: Mapping[State, tuple[str, str]] = MappingProxyType(
    {
        State.QUEUED: ("Pending", "Queuing"),
        State.PLACED: ("Pending", "Queuing"),
        State.LAUNCHING: ("Pending", "Creating"),
        State.RUNNING: ("Running", "Running"),
        State.STOPPING: ("Terminating", "Terminating"),
        State.COLLECTING: ("Running", "Running"),
        State.SUCCEEDED: ("Completed", "Completed"),
        State.FAILED: ("Failed", "Failed"),
        State.CANCELLED: ("Terminated", "Terminated"),
        State.LOST: ("Abnormal", "Lost"),
    }
)
"""ModelArts' phase and secondary phase of each state; a test says that no state is missing."""

MODELARTS_PHASES = (
    "Creating",
    "Pending",
    "Running",
    "Failed",
    "Completed",
    "Terminating",
    "Terminated",
    "Abnormal",
)

WORKSPACE = "0"
HOUR_S = 3600


def phases(view: JobView) -> tuple[str, str]:
    """Phase and secondary phase: a job that shall stop is terminating whatever it still does."""
    attempt = view.attempt
    stopped = attempt.reason is not None and attempt.reason.code is ReasonCode.STOPPED
    if attempt.state not in FINAL and (view.job.intent is Intent.STOP or stopped):
        return PHASES[State.STOPPING]
    phase, secondary = PHASES[attempt.state]
    if attempt.unreachable:
        return phase, "Unknown"
    if attempt.reason is not None and attempt.reason.code is ReasonCode.LAUNCH_FAILED:
        return phase, "CreateFailed"
    return phase, secondary


def job(
    view: JobView,
    now: int,
    language: Language = "en",
    earlier: Sequence[Attempt] = (),
    ssh: Sequence[str] = (),
) -> dict[str, Any]:
    """The reply for one job. `now` (UTC ms) ends the duration of one that still runs; `earlier`
    are its attempts before the latest, `ssh` the URLs of its tasks.
    """
    submitted, spec = view.job, view.job.spec
    return {
        "kind": "job",
        "metadata": {
            "id": submitted.id,
            "name": spec.name,
            "description": spec.description,
            "create_time": submitted.created_at,
            "workspace_id": WORKSPACE,
            "user_name": submitted.user,
            "annotations": dict(spec.annotations),
        },
        "status": _status(view, now, language, earlier),
        "algorithm": _algorithm(spec),
        "spec": _spec(spec),
        **({"endpoints": _endpoints(view, ssh)} if spec.ssh else {}),
        "danlu": _extras(spec),
    }


def _endpoints(view: JobView, ssh: Sequence[str]) -> dict[str, Any]:
    urls = zip(_names(view), ssh, strict=False)
    return {
        "ssh": {
            "key_pair_names": list(view.job.spec.key_pairs),
            "task_urls": [{"task": task, "url": url} for task, url in urls],
        }
    }


def jobs(
    views: Sequence[JobView], now: int, counts: Mapping[str, Any], language: Language = "en"
) -> dict[str, Any]:
    """The reply for a page of jobs; `counts` are total, count, limit, offset, sort_by, order."""
    return {
        **counts,
        "group_by": "",
        "workspace_id": WORKSPACE,
        "ai_project": "default-ai-project",
        "items": [job(view, now, language) for view in views],
    }


def tasks(view: JobView) -> list[dict[str, Any]]:
    """The reply for a job's tasks: a bare list, as the SDK's model has it."""
    known = {task.index: task for task in view.tasks}
    return [
        {"name": name, **_place(name, known.get(index), view.attempt.key.number)}
        for index, name in enumerate(_names(view))
    ]


def _names(view: JobView) -> list[str]:
    return [f"worker-{index}" for index in range(view.job.spec.node_count)]


def _place(name: str, task: Task | None, attempt: int) -> dict[str, Any]:
    host = task.host if task else ""
    return {"task": name, "ip": host, "host_ip": host, "schedule_count": attempt}


def _status(
    view: JobView, now: int, language: Language, earlier: Sequence[Attempt]
) -> dict[str, Any]:
    attempt = view.attempt
    phase, secondary = phases(view)
    began, ended = attempt.started_at, _ended(attempt)
    status: dict[str, Any] = {
        "phase": phase,
        "secondary_phase": secondary,
        "duration": max(0, (ended or now) - began) if began else 0,
        "start_time": began or 0,
        "node_count_metrics": _node_counts(began, ended, view.job.spec.node_count),
        "tasks": _names(view),
        "task_statuses": [
            {
                "task": task.name,
                "exit_code": task.exit_code,
                "message": _message(view, task, language),
            }
            for task in view.tasks
            if task.exit_code is not None
        ],
        "running_records": [
            record
            for one in (*earlier, attempt)
            for record in _running(one, language, last=one is attempt)
        ],
        "task_ips": [_place(task.name, task, attempt.key.number) for task in view.tasks],
    }
    if attempt.reason is not None:
        status["message"] = attempt.reason.sentence(language)
    return status


def _ended(attempt: Attempt) -> int | None:
    return attempt.exited_at or attempt.ended_at


def _node_counts(began: int | None, ended: int | None, nodes: int) -> list[list[int]]:
    if not began:
        return []
    return [[began, nodes]] if not ended else [[began, nodes], [ended, 0]]


def _message(view: JobView, task: Task, language: Language) -> str:
    if task.exit_code == 0 and not task.signal:
        return ""
    return failure(view.job, task).sentence(language)


def _running(attempt: Attempt, language: Language, *, last: bool) -> list[dict[str, Any]]:
    if not attempt.started_at:
        return []
    record: dict[str, Any] = {
        "start_at": attempt.started_at // 1000,
        "start_type": "init_or_rescheduled",
    }
    ended = _ended(attempt)
    if ended:
        record["end_at"] = ended // 1000
        record["end_reason"] = attempt.reason.sentence(language) if attempt.reason else ""
        task = attempt.reason.params.get("task", "") if attempt.reason else ""
        record["end_related_task"] = str(task)
        if not last:
            record["end_recover"] = "job_reschedule"
    return [record]


def _algorithm(spec: JobSpec) -> dict[str, Any]:
    engine = spec.engine
    algorithm: dict[str, Any] = {
        "code_dir": str(spec.code) if spec.code else "",
        "parameters": [{"name": item.name, "value": item.value} for item in spec.parameters],
        "inputs": [_channel(item) for item in spec.inputs],
        "outputs": [
            {**_channel(item), "prefetch_to_local": item.prefetch} for item in spec.outputs
        ],
        "engine": {
            "engine_id": engine.engine_id,
            "engine_name": engine.engine_name,
            "engine_version": engine.engine_version,
            "image_url": engine.image_url,
        },
        "environments": dict(spec.environments),
    }
    if spec.boot_file:
        algorithm["boot_file"] = str(spec.code.child(spec.boot_file)) if spec.code else ""
    if spec.command:
        algorithm["command"] = spec.command
    if spec.working_dir:
        algorithm["working_dir"] = spec.working_dir
    if spec.local_code_dir:
        algorithm["local_code_dir"] = spec.local_code_dir
    return algorithm


def _channel(channel: Input | Output) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": channel.name,
        "access_method": channel.access.value,
        "remote": {"obs": {"obs_url": str(channel.url)}},
    }
    if channel.local_dir:
        described["local_dir"] = channel.local_dir
    return described


def _spec(spec: JobSpec) -> dict[str, Any]:
    described: dict[str, Any] = {
        "resource": {
            "policy": "regular",
            "flavor_id": spec.flavor,
            "flavor_name": spec.flavor,
            "node_count": spec.node_count,
            "flavor_detail": flavor_detail(spec.flavor, spec.shape),
            "main_container_allocated_resources": _allocated(spec.shape),
        },
        "schedule_policy": {"priority": spec.priority, "preemptible": False},
    }
    if spec.log_url is not None:
        described["log_export_path"] = {"obs_url": str(spec.log_url)}
    if spec.time_limit_s is not None and spec.time_limit_s % HOUR_S == 0:
        hours = spec.time_limit_s // HOUR_S
        described["auto_stop"] = {"time_unit": "HOURS", "duration": hours}
    return described


def _allocated(shape: Shape) -> dict[str, Any]:
    return {
        "cpu_arch": "",
        "cpu_core_num": shape.cpus,
        "mem_size": gigabytes(shape.memory_bytes),
        "accelerator_num": shape.gpus,
        "accelerator_type": shape.gpu_model,
    }


def _extras(spec: JobSpec) -> dict[str, Any]:
    extras: dict[str, Any] = {"grace_s": spec.grace_s, **retry.shown(spec)}
    if spec.time_limit_s is not None:
        extras["time_limit_s"] = spec.time_limit_s
    if spec.require_isolation:
        extras["require_isolation"] = True
    if spec.ssh and not spec.key_pairs:
        extras["ssh"] = True
    if spec.stop_signal != STOP_SIGNALS[0]:
        extras["stop_signal"] = spec.stop_signal
    if spec.log_limit_bytes is not None:
        extras["log_limit_mib"] = spec.log_limit_bytes >> 20
    if spec.packages:
        extras["packages"] = list(spec.packages)
    if spec.override_image:
        extras["override_image"] = True
    if spec.verify_image:
        extras["verify_image"] = True
    return extras


# ---------------------------------------------------------------- schemas

_CHANNEL = reply(
    {
        "name": STRING,
        "access_method": STRING,
        "local_dir": STRING,
        "prefetch_to_local": BOOLEAN,
        "remote": reply({"obs": reply({"obs_url": STRING})}),
    },
    optional=("local_dir", "prefetch_to_local"),
)

_TASK = {"task": STRING, "ip": STRING, "host_ip": STRING, "schedule_count": INTEGER}

_STATUS = reply(
    {
        "phase": {"type": "string", "enum": list(MODELARTS_PHASES)},
        "secondary_phase": STRING,
        "duration": {**INTEGER, "description": "milliseconds"},
        "start_time": {**INTEGER, "description": "UTC milliseconds; 0 = not yet"},
        "node_count_metrics": listing(listing(INTEGER)),
        "tasks": listing(STRING),
        "task_statuses": listing(reply({"task": STRING, "exit_code": INTEGER, "message": STRING})),
        "running_records": listing(
            reply(
                {
                    "start_at": {**INTEGER, "description": "UTC seconds"},
                    "end_at": INTEGER,
                    "start_type": STRING,
                    "end_reason": STRING,
                    "end_related_task": STRING,
                    "end_recover": STRING,
                },
                optional=("end_at", "end_reason", "end_related_task", "end_recover"),
            )
        ),
        "task_ips": listing(reply(_TASK)),
        "message": {**STRING, "description": "why the job ended"},
    },
    optional=("message",),
)

_ALGORITHM = reply(
    {
        "code_dir": STRING,
        "boot_file": STRING,
        "command": STRING,
        "working_dir": STRING,
        "local_code_dir": STRING,
        "parameters": listing(reply({"name": STRING, "value": STRING})),
        "inputs": listing(_CHANNEL),
        "outputs": listing(_CHANNEL),
        "engine": reply(
            {
                "engine_id": STRING,
                "engine_name": STRING,
                "engine_version": STRING,
                "image_url": STRING,
            }
        ),
        "environments": {"type": "object", "additionalProperties": STRING},
    },
    optional=("boot_file", "command", "working_dir", "local_code_dir"),
)

_SPEC = reply(
    {
        "resource": reply(
            {
                "policy": STRING,
                "flavor_id": STRING,
                "flavor_name": STRING,
                "node_count": INTEGER,
                "flavor_detail": {"type": "object"},
                "main_container_allocated_resources": {"type": "object"},
            }
        ),
        "schedule_policy": reply({"priority": INTEGER, "preemptible": BOOLEAN}),
        "log_export_path": reply({"obs_url": STRING}),
        "auto_stop": reply({"time_unit": STRING, "duration": NUMBER}),
    },
    optional=("log_export_path", "auto_stop"),
)

JOB_SCHEMA: Schema = reply(
    {
        "kind": STRING,
        "metadata": reply(
            {
                "id": STRING,
                "name": STRING,
                "description": STRING,
                "create_time": {**INTEGER, "description": "UTC milliseconds"},
                "workspace_id": STRING,
                "user_name": STRING,
                "annotations": {"type": "object", "additionalProperties": STRING},
            }
        ),
        "status": _STATUS,
        "algorithm": _ALGORITHM,
        "spec": _SPEC,
        "endpoints": reply(
            {
                "ssh": reply(
                    {
                        "key_pair_names": listing(STRING),
                        "task_urls": listing(reply({"task": STRING, "url": STRING})),
                    }
                )
            }
        ),
        "danlu": reply(
            {
                "grace_s": INTEGER,
                "time_limit_s": INTEGER,
                "log_limit_mib": INTEGER,
                "stop_signal": STRING,
                "require_isolation": BOOLEAN,
                "ssh": BOOLEAN,
                "packages": listing(STRING),
                "override_image": BOOLEAN,
                "verify_image": BOOLEAN,
                **retry.SCHEMA,
            },
            optional=(
                "time_limit_s",
                "log_limit_mib",
                "stop_signal",
                "require_isolation",
                "ssh",
                "packages",
                "override_image",
                "verify_image",
                *retry.SCHEMA,
            ),
        ),
    },
    optional=("endpoints",),
)

JOBS_SCHEMA: Schema = reply(
    {
        "total": INTEGER,
        "count": INTEGER,
        "limit": INTEGER,
        "offset": {**INTEGER, "description": "the number of the page, from 0"},
        "sort_by": STRING,
        "order": STRING,
        "group_by": STRING,
        "workspace_id": STRING,
        "ai_project": STRING,
        "items": listing(JOB_SCHEMA),
    }
)

TASKS_SCHEMA: Schema = listing(reply({"name": STRING, **_TASK}))
