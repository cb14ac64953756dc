"""Danlu's own JSON (`/danlu/v1`): jobs in our words, the server's state, and dry runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from danlu.model.attempt import FINAL, Attempt, State
from danlu.model.event import JobEvent
from danlu.model.flavor import Flavor
from danlu.model.job import JobSpec, JobView, Task
from danlu.model.manifest import Checked, Delivered
from danlu.model.outcome import first_failure
from danlu.model.queue import Why
from danlu.model.reason import Blame, ReasonCode
from danlu.model.resources import Offer
from danlu.model.retry import CAUSES
from danlu.model.script import LITERAL_CACHE, LITERAL_HOME, Layout, World
from danlu.model.texts import Language, text
from danlu.model.verification import Verification
from danlu.wire.danlu_verification import verification

COMMAND_CHARS = 200

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_PLATFORM = 70
EXIT_TIMED_OUT = 124


def exit_status(attempt: Attempt) -> int | None:
    """The status with which a client that waited for the job ends; None while it lives.

    0 succeeded · 1 failed or stopped · 124 stopped at its time limit · 70 the platform failed it.
    """
    if attempt.state not in FINAL:
        return None
    if attempt.state is State.SUCCEEDED:
        return EXIT_OK
    if attempt.reason is not None:
        if attempt.reason.code is ReasonCode.TIME_LIMIT:
            return EXIT_TIMED_OUT
        if attempt.reason.blame in (Blame.PLATFORM, Blame.CAPACITY):
            return EXIT_PLATFORM
    return EXIT_PLATFORM if attempt.state is State.LOST else EXIT_FAILED


def exit_code(view: JobView) -> int | None:
    """The exit code of the job's script: the first failing task's, 0 once all ended well."""
    failed = first_failure(view.tasks)
    if failed is not None:
        return failed.exit_code
    ended = [task for task in view.tasks if task.exit_code is not None]
    return 0 if ended and len(ended) == view.job.spec.node_count else None


def waiting_sentence(why: Why, language: Language) -> str:
    """Why a job waits, with how many are before it: `2 jobs ahead; needs 8 GiB, …`."""
    sentence = text(why.key, language, **why.params)
    if why.position <= 1:
        return sentence
    ahead = text("jobs-ahead", language, ahead=why.position - 1)
    return f"{ahead}{'；' if language == 'zh' else '; '}{sentence}"


def waiting(why: Why | None, language: Language) -> dict[str, Any] | None:
    """`waiting` of a job that is queued."""
    if why is None:
        return None
    return {
        "key": why.key,
        "position": why.position,
        "sentence": waiting_sentence(why, language),
    }


@dataclass(frozen=True, slots=True)
class Shown:
    """What a job reply says beyond the records: the instant, the language, why it waits, how many
    bytes of log it wrote, its attempts before the latest (None = not looked up), and how its image
    was verified.
    """

    now: int
    language: Language = "en"
    why: Why | None = None
    log_bytes: int | None = None
    earlier: Sequence[Attempt] | None = None
    verification: Verification | None = None


def job(view: JobView, shown: Shown) -> dict[str, Any]:
    """A job in our words."""
    submitted, spec, attempt = view.job, view.job.spec, view.attempt
    return {
        "id": submitted.id,
        "name": spec.name,
        "state": attempt.state.value,
        "unreachable": attempt.unreachable,
        "description": spec.description,
        "flavor": spec.flavor,
        "node_count": spec.node_count,
        "priority": spec.priority,
        "created_at": submitted.created_at,
        "placed_at": attempt.placed_at,
        "launched_at": attempt.launched_at,
        "started_at": attempt.started_at,
        "exited_at": attempt.exited_at,
        "ended_at": attempt.ended_at,
        "duration_ms": _duration(attempt, shown.now),
        "attempt": attempt.key.number,
        "due_at": attempt.due_at,
        "retries": spec.retry.limit,
        "retry_on": [cause.value for cause in spec.retry.on],
        "earlier": None
        if shown.earlier is None
        else [_earlier(one, shown.language) for one in shown.earlier],
        "user": submitted.user,
        "command": command(spec),
        "intent": submitted.intent.value,
        "reason": _reason(attempt, shown.language),
        "waiting": waiting(shown.why, shown.language) if attempt.state is State.QUEUED else None,
        "exit_code": exit_code(view),
        "exit": exit_status(attempt),
        "tasks": [_task(task) for task in _all_tasks(view)],
        "inputs": [
            {"name": item.name, "url": str(item.url), "dir": item.local_dir} for item in spec.inputs
        ],
        "outputs": [{"name": item.name, "url": str(item.url)} for item in spec.outputs],
        "parameters": [{"name": item.name, "value": item.value} for item in spec.parameters],
        "annotations": dict(spec.annotations),
        "image": spec.image,
        "image_name": spec.image_name,
        "log_bytes": shown.log_bytes,
        "verification": shown.verification and verification(shown.verification),
    }


def _earlier(attempt: Attempt, language: Language) -> dict[str, Any]:
    """An attempt that was followed by another one."""
    cause = CAUSES.get(attempt.reason.code) if attempt.reason else None
    return {
        "attempt": attempt.key.number,
        "state": attempt.state.value,
        "created_at": attempt.created_at,
        "started_at": attempt.started_at,
        "exited_at": attempt.exited_at,
        "ended_at": attempt.ended_at,
        "reason": _reason(attempt, language),
        "cause": cause.value if cause else None,
    }


def command(spec: JobSpec) -> str:
    """What a job runs, in short: the boot file with its parameters, or the command."""
    if spec.boot_file:
        parameters = (f"--{item.name}={item.value}" for item in spec.parameters)
        whole = " ".join([spec.boot_file, *parameters])
    else:
        whole = " ".join(spec.command.split())
    return whole if len(whole) <= COMMAND_CHARS else f"{whole[: COMMAND_CHARS - 1]}…"


def _duration(attempt: Attempt, now: int) -> int | None:
    if attempt.started_at is None:
        return None
    return max(0, (attempt.exited_at or attempt.ended_at or now) - attempt.started_at)


def _reason(attempt: Attempt, language: Language) -> dict[str, Any] | None:
    reason = attempt.reason
    if reason is None:
        return None
    return {
        "code": reason.code.value,
        "blame": reason.blame.value,
        "sentence": reason.sentence(language),
        "params": dict(reason.params),
    }


def _all_tasks(view: JobView) -> list[Task]:
    known = {task.index: task for task in view.tasks}
    return [known.get(index, Task(index)) for index in range(view.job.spec.node_count)]


def _task(task: Task) -> dict[str, Any]:
    return {
        "name": task.name,
        "node": task.node,
        "started_at": task.started_at,
        "ended_at": task.ended_at,
        "exit_code": task.exit_code,
        "signal": task.signal,
        "out_of_memory": task.out_of_memory,
        "hung_at": task.hung_at,
        "state": _task_state(task),
    }


def _task_state(task: Task) -> str:
    if task.ended_at is not None or task.exit_code is not None:
        return "ended"
    return "running" if task.started_at is not None else "waiting"


def why(view: JobView, reason: Why | None, language: Language) -> dict[str, Any]:
    """Why a job is where it is: what it waits for, since when it runs, or how it ended."""
    attempt = view.attempt
    found: dict[str, Any] = {"state": attempt.state.value, "position": None}
    if reason is not None:
        sentence = waiting_sentence(reason, language)
        return {
            **found,
            "key": reason.key,
            "position": reason.position,
            "sentence": sentence,
            "params": dict(reason.params),
        }
    if attempt.reason is not None:
        ended = attempt.reason
        sentence = ended.sentence(language)
        return {
            **found,
            "key": ended.code.value,
            "sentence": sentence,
            "params": dict(ended.params),
        }
    hung = next((task for task in view.tasks if task.hung_at is not None), None)
    if hung is not None and attempt.state is State.RUNNING:
        params = {"task": hung.name, "since": clock_time(hung.hung_at or 0)}
        sentence = text("is-hung", language, **params)
        return {**found, "key": "is-hung", "sentence": sentence, "params": params}
    return {**found, **_since(attempt, language)}


def clock_time(at: int) -> str:
    """An instant (UTC ms) for people, in UTC."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _since(attempt: Attempt, language: Language) -> dict[str, Any]:
    since = attempt.started_at or attempt.launched_at or attempt.placed_at or attempt.created_at
    if attempt.state is State.QUEUED:
        # The loop has taken it from the queue, or is about to look at it.
        return {
            "key": "waiting-placing",
            "sentence": text("waiting-placing", language),
            "params": {},
        }
    key = f"is-{attempt.state.value}"
    params = {"since": since}
    return {"key": key, "sentence": text(key, language), "params": params}


def event(happened: JobEvent, language: Language) -> dict[str, Any]:
    """One event of a job's history."""
    return {
        "sequence": happened.sequence,
        "at": happened.at,
        "level": happened.level.value,
        "task": happened.task,
        "key": happened.key,
        "params": dict(happened.params),
        "sentence": happened.sentence(language),
    }


def flavors(
    known: Iterable[Flavor], default: str, fits: Callable[[Flavor], bool]
) -> dict[str, Any]:
    """Every flavor; `fits` says whether this machine could ever hold one task of it."""
    return {
        "flavors": [
            {
                "id": flavor.id,
                "kind": flavor.kind,
                "cpus": flavor.shape.cpus,
                "memory_bytes": flavor.shape.memory_bytes,
                "gpus": flavor.shape.gpus,
                "gpu_model": flavor.shape.gpu_model,
                "price_per_hour": flavor.price_per_hour,
                "default": flavor.id == default,
                "fits": fits(flavor),
            }
            for flavor in known
        ]
    }


def capacity(totals: Sequence[Offer], free: Sequence[Offer]) -> list[dict[str, Any]]:
    """Each node with all that it has, and what is free of it."""
    left = {offer.node: offer for offer in free}
    return [
        {
            "node": offer.node,
            "cpus": offer.cpus,
            "memory_bytes": offer.memory_bytes,
            "gpus": [
                {"uuid": gpu.uuid, "model": gpu.model, "memory_bytes": gpu.memory_bytes}
                for gpu in offer.gpus
            ],
            "free": {
                "cpus": max(0, left[offer.node].cpus),
                "memory_bytes": max(0, left[offer.node].memory_bytes),
                "gpus": len(left[offer.node].gpus),
            },
        }
        for offer in totals
    ]


def plan(
    body: Mapping[str, Any], layout: Layout | None, worlds: Sequence[World], spec: JobSpec
) -> dict[str, Any]:
    """What a dry run shows. `body` is the job as understood, in ModelArts' words; without a
    layout the engine cannot say beforehand where things lie.
    """
    first = worlds[0] if worlds else None
    inputs = zip(spec.inputs, first.inputs if first else (), strict=False)
    outputs = zip(spec.outputs, first.outputs if first else (), strict=False)
    return {
        "spec": body,
        "literal_paths": layout is not None and layout.literal,
        "paths": {
            "home": layout.home if layout else LITERAL_HOME,
            "cache": layout.cache if layout else LITERAL_CACHE,
            "code": first.code_dir if first else "",
            "inputs": {channel.name: place for channel, place in inputs},
            "outputs": {channel.name: place for channel, place in outputs},
        },
        "tasks": [
            {
                "task": f"worker-{index}",
                "argv": list(world.argv),
                "env": dict(world.env),
                "cwd": world.cwd,
            }
            for index, world in enumerate(worlds)
        ],
    }


def delivered(one: Delivered) -> dict[str, Any]:
    """One task's output; the attempt is 0 where nothing was delivered."""
    manifest = one.manifest
    files = manifest.files if manifest is not None else ()
    return {
        "name": one.output.name,
        "url": str(one.output.url),
        "task": one.task,
        "state": "none" if manifest is None else manifest.state.value,
        "attempt": 0 if manifest is None else manifest.attempt,
        "at": None if manifest is None else manifest.at,
        "exit_code": None if manifest is None else manifest.exit_code,
        "files": len(files),
        "bytes": sum(file.size for file in files),
    }


def checked(one: Checked) -> dict[str, Any]:
    """One file; `problem` is missing, size, content, unreadable, or empty."""
    return {
        "output": one.output,
        "file": one.name,
        "bytes": one.size,
        "problem": one.problem.value,
    }
