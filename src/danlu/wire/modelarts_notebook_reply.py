"""Notebooks as ModelArts' clients read them, with what is ours under `danlu`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from danlu.model.flavor import Flavor
from danlu.model.idle import OFF, Signal
from danlu.model.notebook import HOME, LeaseKind, Notebook, State
from danlu.model.reason import Reason
from danlu.model.resources import GIB
from danlu.model.texts import Language, text
from danlu.wire.shape import BOOLEAN, INTEGER, STRING, Schema, listing, or_null, reply

STATUSES: Mapping[State, str] = MappingProxyType(
    {state: state.replace("-", "_").upper() for state in State}
)
"""What each state is to ModelArts' clients."""

MODELARTS_STATUSES = (
    "INIT", "CREATING", "STARTING", "RUNNING", "STOPPING", "STOPPED", "SNAPSHOTTING", "DELETING",
    "DELETED", "CREATE_FAILED", "START_FAILED", "DELETE_FAILED", "ERROR", "FROZEN",
)  # fmt: skip
"""Every status that clients may ask for; in INIT and FROZEN none here ever is."""

STEPS = ("progress-place", "progress-prepare", "progress-lab")
"""What a start goes through."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is to become of a running notebook, in values."""

    ends_at: int | None = None
    because: Reason | None = None
    idle_since: int | None = None
    idle_stops_at: int | None = None
    after_s: int | None = None
    unknown: Sequence[str] = ()
    signals: Sequence[Signal] = ()
    held: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """What a reply needs beside the record: the clock, the language, how far its start is (how many
    of STEPS are done), why it waits, what lies in its home, and what is to become of it.
    """

    now: int
    language: Language = "en"
    steps_done: int = 0
    why: str = ""
    home_bytes: int | None = None
    outlook: Outlook = field(default_factory=Outlook)
    url: str = ""
    ssh: str = ""
    """The URL by which SSH gets in; empty while nothing runs."""
    saving: bool = False


def status(found: Notebook, *, saving: bool) -> str:
    """Its status; while an image is made of it, it is SNAPSHOTTING and runs on."""
    return "SNAPSHOTTING" if saving and found.state is State.RUNNING else STATUSES[found.state]


def notebook(found: Notebook, shown: Shown) -> dict[str, Any]:
    """One notebook."""
    spec = found.spec
    reason = "" if found.reason is None else found.reason.sentence(shown.language)
    return {
        "id": found.id,
        "name": spec.name,
        "description": spec.description,
        "status": status(found, saving=shown.saving),
        "fail_reason": reason
        if found.state.endswith("failed") or found.state is State.ERROR
        else "",
        "feature": "NOTEBOOK",
        "flavor": spec.flavor,
        "image": {"id": spec.image, "name": spec.image, "swr_path": spec.image},
        "lease": lease(found, shown),
        "url": shown.url,
        # JupyterLab's is known to the server alone.
        "token": "",
        "endpoints": [
            *([_ssh(found, shown)] if spec.ssh else []),
            {"service": "NOTEBOOK", "uri": "", "key_pair_names": list(spec.key_pairs)},
        ],
        "volume": {
            "category": spec.category,
            "ownership": "MANAGED",
            "capacity": spec.home_gib or 0,
            "mount_path": HOME,
            "status": "MOUNTED",
            "id": found.id,
            "uri": "",
        },
        "data_volumes": [
            {"category": "OBS", "url": str(one.url), "mount_path": one.path, "status": "MOUNTED"}
            for one in spec.data
        ],
        "action_progress": _progress(found, shown),
        "billing_items": ["COMPUTE"] if found.state is State.RUNNING else [],
        "workspace_id": "0",
        "user": {"id": found.user, "name": found.user},
        "user_id": found.user,
        "create_at": found.created_at,
        "update_at": found.updated_at,
        "danlu": _ours(found, shown, reason),
    }


def _ssh(found: Notebook, shown: Shown) -> dict[str, Any]:
    return {
        "service": "SSH",
        "uri": shown.ssh,
        "key_pair_names": list(found.spec.key_pairs),
        "allowed_access_ips": list(found.spec.allowed_ips),
    }


def lease(found: Notebook, shown: Shown) -> dict[str, Any]:
    """What ends it, as ModelArts has it: after a time, or after a time without activity."""
    timing = found.lease.duration_ms is not None
    after_ms = (shown.outlook.after_s or 0) * 1000
    return {
        "create_at": found.lease.began_at,
        "update_at": found.updated_at,
        "duration": found.lease.duration_ms if timing else after_ms,
        "enable": timing or bool(after_ms),
        "type": str(LeaseKind.TIMING if timing else LeaseKind.IDLE),
    }


def _progress(found: Notebook, shown: Shown) -> list[dict[str, Any]]:
    if found.state not in (State.CREATING, State.STARTING):
        return []
    done = shown.steps_done
    return [
        {
            "step": number + 1,
            "status": "SUCCESS" if number < done else "PROCESSING" if number == done else "WAITING",
            "description": text(key, shown.language),
        }
        for number, key in enumerate(STEPS)
    ]


def _ours(found: Notebook, shown: Shown, reason: str) -> dict[str, Any]:
    outlook, spec = shown.outlook, found.spec
    because = "" if outlook.because is None else outlook.because.sentence(shown.language)
    idle = OFF if spec.idle.off else "" if spec.idle.after_s is None else str(spec.idle.after_s)
    return {
        "state": str(found.state),
        "reason": reason,
        "job_id": found.job_id,
        "why": shown.why,
        "ready_at": found.ready_at,
        "metered_s": found.metered_ms(shown.now) // 1000,
        "ends_at": outlook.ends_at,
        "ends_because": because,
        "lease_ends_at": found.lease.ends_at if found.state is State.RUNNING else None,
        "home": {
            "used_bytes": shown.home_bytes,
            "limit_bytes": None if spec.home_gib is None else spec.home_gib * GIB,
        },
        "idle": {
            "policy": idle,
            "after_s": outlook.after_s,
            "since": outlook.idle_since,
            "stops_at": outlook.idle_stops_at,
            "unknown": list(outlook.unknown),
            "signals": [_signal(one, shown.now) for one in outlook.signals],
        },
        "hold": None
        if found.hold is None or not outlook.held
        else {"until": found.hold.until, "pid": found.hold.pid, "why": found.hold.why},
    }


def _signal(one: Signal, now: int) -> dict[str, Any]:
    last = one.last(now)
    age_s = None if last is None else max(0, now - last) // 1000
    return {"name": one.name, "age_s": age_s, "goes_on": one.goes_on, "detail": one.detail}


def page(found: Sequence[dict[str, Any]], total: int, offset: int, limit: int) -> dict[str, Any]:
    """A page of notebooks, or of flavors."""
    return {
        "total": total,
        "size": limit,
        "pages": -(-total // limit),
        "current": offset // limit + 1,
        "data": list(found),
    }


def flavor(found: Flavor) -> dict[str, Any]:
    """A flavor, as notebooks choose one. Memory is in bytes."""
    shape = found.shape
    shown: dict[str, Any] = {
        "id": found.id,
        "name": found.id,
        "arch": "X86_64",
        "category": found.kind,
        "description": shape.describe(),
        "feature": "NOTEBOOK",
        "free": not found.price_per_hour,
        "memory": shape.memory_bytes,
        "vcpus": shape.cpus,
        "sold_out": False,
        "storages": ["EFS", "EVS"],
        "billing": {"code": found.id, "unit_num": 1},
    }
    if shape.gpus:
        shown["gpu"] = {"gpu": shape.gpus, "type": shape.gpu_model}
    return shown


LEASE_SCHEMA: Schema = reply(
    {
        **dict.fromkeys(("create_at", "update_at", "duration"), INTEGER),
        "enable": BOOLEAN,
        "type": STRING,
    }
)
_WHOLE = or_null(INTEGER)
_OBJECT: Schema = {"type": "object"}
NOTEBOOK_SCHEMA: Schema = reply(
    {
        **dict.fromkeys(("id", "name", "description", "status", "fail_reason", "feature"), STRING),
        **dict.fromkeys(("flavor", "url", "token", "workspace_id", "user_id"), STRING),
        **dict.fromkeys(("create_at", "update_at"), INTEGER),
        **dict.fromkeys(("image", "volume", "user"), _OBJECT),
        **dict.fromkeys(("endpoints", "data_volumes", "action_progress"), listing(_OBJECT)),
        "billing_items": listing(STRING),
        "lease": LEASE_SCHEMA,
        "danlu": reply(
            {
                **dict.fromkeys(("state", "reason", "job_id", "why", "ends_because"), STRING),
                **dict.fromkeys(("ready_at", "ends_at", "lease_ends_at"), _WHOLE),
                "metered_s": INTEGER,
                "home": reply({"used_bytes": _WHOLE, "limit_bytes": _WHOLE}),
                "idle": reply(
                    {
                        "policy": STRING,
                        **dict.fromkeys(("after_s", "since", "stops_at"), _WHOLE),
                        "unknown": listing(STRING),
                        "signals": listing(
                            reply(
                                {
                                    "name": STRING,
                                    "age_s": _WHOLE,
                                    "goes_on": BOOLEAN,
                                    "detail": STRING,
                                }
                            )
                        ),
                    }
                ),
                "hold": or_null(_OBJECT),
            }
        ),
    }
)


def pages(of: Schema) -> Schema:
    """The schema of a page."""
    return reply(
        {**dict.fromkeys(("total", "size", "pages", "current"), INTEGER), "data": listing(of)}
    )


FLAVOR_SCHEMA: Schema = reply(
    {
        **dict.fromkeys(("id", "name", "arch", "category", "description", "feature"), STRING),
        **dict.fromkeys(("memory", "vcpus"), INTEGER),
        **dict.fromkeys(("free", "sold_out"), BOOLEAN),
        "storages": listing(STRING),
        "billing": _OBJECT,
        "gpu": _OBJECT,
    },
    optional=("gpu",),
)
