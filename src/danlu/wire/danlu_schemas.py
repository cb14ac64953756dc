"""JSON Schemas of the replies in `wire/danlu.py`, for OpenAPI."""

from __future__ import annotations

from danlu.model.attempt import State
from danlu.wire.danlu_verification import VERIFICATION
from danlu.wire.modelarts_training_reply import JOB_SCHEMA as MODELARTS_JOB
from danlu.wire.shape import (
    BOOLEAN,
    INTEGER,
    NUMBER,
    STRING,
    Schema,
    listing,
    or_null,
    reply,
)

AT: Schema = {"type": ["integer", "null"], "description": "UTC milliseconds; null = not yet"}
PARAMS: Schema = {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}
STRINGS: Schema = {"type": "object", "additionalProperties": STRING}

STATE: Schema = {"type": "string", "enum": [state.value for state in State]}

WAITING = reply({"key": STRING, "position": INTEGER, "sentence": STRING})

TASK = reply(
    {
        "name": STRING,
        "node": STRING,
        "started_at": AT,
        "ended_at": AT,
        "exit_code": or_null(INTEGER),
        "signal": STRING,
        "out_of_memory": BOOLEAN,
        "hung_at": {**AT, "description": "since when nothing moves in it; null = it works"},
        "state": {"type": "string", "enum": ["waiting", "running", "ended"]},
    }
)

REASON = or_null(reply({"code": STRING, "blame": STRING, "sentence": STRING, "params": PARAMS}))

EARLIER = reply(
    {
        "attempt": INTEGER,
        "state": STATE,
        "created_at": INTEGER,
        "started_at": AT,
        "exited_at": AT,
        "ended_at": AT,
        "reason": REASON,
        "cause": or_null(STRING),
    }
)

JOB: Schema = reply(
    {
        "id": STRING,
        "name": STRING,
        "state": STATE,
        "unreachable": BOOLEAN,
        "description": STRING,
        "flavor": STRING,
        "node_count": INTEGER,
        "priority": INTEGER,
        "created_at": INTEGER,
        "placed_at": AT,
        "launched_at": AT,
        "started_at": AT,
        "exited_at": AT,
        "ended_at": AT,
        "duration_ms": or_null(INTEGER),
        "attempt": INTEGER,
        "due_at": {**AT, "description": "UTC milliseconds before which it is not placed"},
        "retries": INTEGER,
        "retry_on": listing(STRING),
        "earlier": or_null({**listing(EARLIER), "description": "null in lists"}),
        "user": STRING,
        "command": STRING,
        "intent": {"type": "string", "enum": ["run", "stop"]},
        "reason": REASON,
        "waiting": or_null(WAITING),
        "exit_code": or_null(INTEGER),
        "exit": {
            "type": ["integer", "null"],
            "description": "the status with which a client that waited should end",
        },
        "tasks": listing(TASK),
        "inputs": listing(reply({"name": STRING, "url": STRING, "dir": STRING})),
        "outputs": listing(reply({"name": STRING, "url": STRING})),
        "parameters": listing(reply({"name": STRING, "value": STRING})),
        "annotations": {"type": "object", "additionalProperties": STRING},
        "image": STRING,
        "image_name": STRING,
        "log_bytes": or_null(INTEGER),
        "verification": or_null({**VERIFICATION, "description": "null in lists"}),
    }
)

JOBS = reply({"jobs": listing(JOB), "total": INTEGER})

WHY = reply(
    {
        "state": STATE,
        "key": STRING,
        "position": or_null(INTEGER),
        "sentence": STRING,
        "params": PARAMS,
    }
)

EVENTS = reply(
    {
        "events": listing(
            reply(
                {
                    "sequence": INTEGER,
                    "at": INTEGER,
                    "level": STRING,
                    "task": STRING,
                    "key": STRING,
                    "params": PARAMS,
                    "sentence": STRING,
                }
            )
        )
    }
)

FLAVOR = reply(
    {
        "id": STRING,
        "kind": STRING,
        "cpus": INTEGER,
        "memory_bytes": INTEGER,
        "gpus": INTEGER,
        "gpu_model": STRING,
        "price_per_hour": NUMBER,
        "default": BOOLEAN,
        "fits": BOOLEAN,
    }
)

FLAVORS = reply({"flavors": listing(FLAVOR)})

PLAN = reply(
    {
        "spec": MODELARTS_JOB,
        "literal_paths": BOOLEAN,
        "paths": reply(
            {
                "home": STRING,
                "cache": STRING,
                "code": STRING,
                "inputs": STRINGS,
                "outputs": STRINGS,
            }
        ),
        "tasks": listing(
            reply({"task": STRING, "argv": listing(STRING), "env": STRINGS, "cwd": STRING})
        ),
        "flavor": FLAVOR,
    }
)

HEALTH = reply({"status": STRING, "problem": STRING, "version": STRING, "server_id": STRING})

STATUS = reply(
    {
        "problem": STRING,
        "version": STRING,
        "started_at": INTEGER,
        "uptime_s": NUMBER,
        "pid": INTEGER,
        "data": STRING,
        "engine": STRING,
        "environment": STRING,
        "jobs": {"type": "object", "additionalProperties": INTEGER},
        "capacity": listing({"type": "object"}),
        "default_flavor": STRING,
        "local_paths": BOOLEAN,
        "bucket": STRING,
        "obs": {**STRING, "description": "where the objects are; empty = no door"},
    }
)

CODE = reply(
    {"code_dir": STRING, "digest": STRING, "files": INTEGER, "bytes": INTEGER},
    optional=("digest", "files", "bytes"),
)

OUTPUTS = reply(
    {
        "outputs": listing(
            reply(
                {
                    "name": STRING,
                    "url": STRING,
                    "task": STRING,
                    "state": {"type": "string", "enum": ["none", "committing", "committed"]},
                    "attempt": {**INTEGER, "description": "0 = nothing was delivered"},
                    "at": or_null(INTEGER),
                    "exit_code": or_null(INTEGER),
                    "files": INTEGER,
                    "bytes": INTEGER,
                }
            )
        )
    }
)

CHECKED = reply(
    {
        "output": STRING,
        "file": STRING,
        "bytes": INTEGER,
        "problem": {"type": "string", "enum": ["", "missing", "size", "content", "unreadable"]},
    }
)

OPENED_NOTEBOOK = reply({"url": STRING, "expires_s": INTEGER})

EMPTY: Schema = {"type": "object"}
