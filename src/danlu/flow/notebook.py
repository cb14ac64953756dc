"""notebook: what users want of their notebooks. Put on record here; the loop carries it out.

A wish is a step from the notebook as it stands to the notebook as it is to be, so that whoever
finds that it has changed meanwhile takes the same step again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from danlu.flow.notebooks import engine
from danlu.flow.platform import Platform
from danlu.model import limits, rules
from danlu.model.errors import Invalid, Refused
from danlu.model.event import JobEvent, Level
from danlu.model.identity import Caller
from danlu.model.idle import Idle
from danlu.model.job import EngineChoice
from danlu.model.notebook import (
    CHANGEABLE,
    LIVE,
    MOST_LEASE_MS,
    Event,
    Hold,
    Lease,
    Notebook,
    NotebookSpec,
    State,
    after,
    moved,
)
from danlu.model.reason import Reason, ReasonCode

MOST_HOLD_S = 24 * 3600
LEAST_IDLE_S = 60
MOST_DATA = 20

Step = tuple[Notebook, Sequence[JobEvent]]


@dataclass(frozen=True, slots=True)
class Changes:
    """What of a notebook is to be changed; None = nothing. `lease` is a new one, from now."""

    name: str | None = None
    description: str | None = None
    flavor: str | None = None
    image: str | None = None
    home_gib: int | None = None
    idle: Idle | None = None
    ssh: bool | None = None
    key_pairs: tuple[str, ...] | None = None
    allowed_ips: tuple[str, ...] | None = None


def create(
    platform: Platform, caller: Caller, spec: NotebookSpec, lease: Lease
) -> tuple[Notebook, Sequence[JobEvent]]:
    """A new notebook whose first start is wanted. Invalid or Refused where it cannot be had."""
    now = platform.clock.now()
    if not platform.engine.powers.endpoints:
        raise Refused("notebooks-not-here")
    spec = _checked(platform, spec, caller.workspace.id)
    made = Notebook(
        id=platform.dice.job_id(),
        workspace=caller.workspace.id,
        user=caller.user.name,
        spec=spec,
        state=State.CREATING,
        created_at=now,
        updated_at=now,
        job_id=platform.dice.job_id(),
        lease=replace(lease, began_at=now),
        touched_at=now,
    )
    return made, [JobEvent(now, "notebook-created", {"user": caller.user.name})]


def start(
    platform: Platform,
    caller: Caller,
    before: Notebook,
    lease: Lease | None = None,
    idle: Idle | None = None,
) -> Step:
    """Begin it again; with `lease`, under a new one. Refused where it does not rest."""
    now = platform.clock.now()
    if after(before.state, Event.START) is None:
        raise _not_now(before, "start")
    to = replace(
        moved(before, Event.START, now),
        spec=before.spec if idle is None else replace(before.spec, idle=_idle(platform, idle)),
        job_id=platform.dice.job_id(),
        stale_job_id=before.job_id,
        lease=replace(before.lease if lease is None else lease, began_at=now),
        touched_at=now,
    )
    return to, [JobEvent(now, "notebook-starting", {"user": caller.user.name})]


def stop(platform: Platform, caller: Caller, before: Notebook) -> Step:
    """End it; its home stays. Asking twice is fine, Refused where it rests."""
    now = platform.clock.now()
    if before.state is State.STOPPING:
        return before, []
    if after(before.state, Event.STOP) is None:
        raise _not_now(before, "stop")
    reason = Reason(ReasonCode.STOPPED, {"user": caller.user.name})
    told = JobEvent(now, "notebook-stopping", reason.told(), Level.WARNING)
    return moved(before, Event.STOP, now, reason), [told]


def delete(platform: Platform, caller: Caller, before: Notebook) -> Step:
    """Remove it with its home, whatever it does."""
    now = platform.clock.now()
    if before.state is State.DELETING:
        return before, []
    told = JobEvent(now, "notebook-deleting", {"user": caller.user.name}, Level.WARNING)
    return moved(before, Event.DELETE, now), [told]


def renew(platform: Platform, caller: Caller, before: Notebook, lease: Lease, idle: Idle) -> Step:
    """Count a new lease, and idleness, from now on. Refused where it does not run."""
    now = platform.clock.now()
    if before.state not in LIVE or before.state in (State.STOPPING, State.DELETING):
        raise _not_now(before, "renew")
    spec = replace(before.spec, idle=_idle(platform, idle))
    to = replace(
        before,
        spec=spec,
        lease=replace(lease, began_at=now),
        touched_at=now,
        updated_at=now,
        warned_at=0,
    )
    minutes = 0 if lease.duration_ms is None else lease.duration_ms // 60_000
    told: dict[str, str | int] = {"user": caller.user.name, "minutes": minutes}
    return to, [JobEvent(now, "notebook-renewed", told)]


def extend(platform: Platform, caller: Caller, before: Notebook) -> Step:
    """Count the lease that it has, and idleness, from now on."""
    return renew(platform, caller, before, before.lease, before.spec.idle)


def hold(platform: Platform, caller: Caller, before: Notebook, wanted: Hold | None) -> Step:
    """Keep it up until an instant, or until a process of it ends; None = no longer."""
    now = platform.clock.now()
    if before.state is not State.RUNNING:
        raise _not_now(before, "hold")
    to = replace(before, hold=wanted, touched_at=now, updated_at=now, warned_at=0)
    user = caller.user.name
    if wanted is None:
        return to, [JobEvent(now, "notebook-released", {"user": user})]
    hours = (wanted.until - now) / 3_600_000
    told = {"user": user, "hours": f"{hours:.1f}", "pid": wanted.pid or "-", "why": wanted.why}
    return to, [JobEvent(now, "notebook-held", told)]


def holding(now: int, seconds: int, pid: int, why: str) -> Hold:
    """A hold as users ask for it; Invalid where it is too long."""
    if not 60 <= seconds <= MOST_HOLD_S:
        expected = f"a whole number from 60 to {MOST_HOLD_S}"
        raise Invalid("field-value", field="hold.seconds", value=seconds, expected=expected)
    rules.printable("hold.why", why)
    rules.at_most("hold.why", why, limits.DESCRIPTION_CHARS, "characters", "shorten it")
    return Hold(now + seconds * 1000, pid, why)


def update(platform: Platform, before: Notebook, wanted: Changes) -> Step:
    """Change what is asked for. Flavor and image only while it rests, with the same home."""
    now = platform.clock.now()
    spec = before.spec
    given = {
        name: value
        for name in Changes.__dataclass_fields__
        if (value := getattr(wanted, name)) is not None
    }
    resting = [name for name in ("flavor", "image") if name in given]
    if resting and before.state not in CHANGEABLE:
        raise Refused(
            "notebook-not-stopped", notebook=before.spec.name, field=resting[0], state=before.state
        )
    least = spec.home_gib or 0
    if wanted.home_gib is not None and wanted.home_gib < least:
        expected = f"at least {least}: a home does not shrink"
        value = wanted.home_gib
        raise Invalid("field-value", field="storage_new_size", value=value, expected=expected)
    to = replace(
        before, spec=_checked(platform, replace(spec, **given), before.workspace), updated_at=now
    )
    changed = ", ".join(sorted(given))
    return to, [JobEvent(now, "notebook-changed", {"what": changed})] if given else []


def _checked(platform: Platform, spec: NotebookSpec, workspace: str) -> NotebookSpec:
    """A spec that this platform can carry out, with the flavor that will be used."""
    rules.name(spec.name, "name")
    rules.printable("description", spec.description)
    most = limits.DESCRIPTION_CHARS
    rules.at_most("description", spec.description, most, "characters", "shorten it")
    if len(spec.data) > MOST_DATA:
        raise Invalid(
            "too-many",
            field="data_volumes",
            count=len(spec.data),
            limit=MOST_DATA,
            remedy="mount fewer",
        )
    flavor = platform.catalog.flavor(spec.flavor, 1, "flavor")
    choice = engine(platform, spec.image)
    if platform.catalog.check(choice, "image_id", workspace) is None:
        _with_lab(platform, choice, workspace)
    return replace(spec, flavor=flavor.id, idle=_idle(platform, spec.idle))


def _with_lab(platform: Platform, choice: EngineChoice, workspace: str) -> None:
    """Refuse an environment without JupyterLab now, and not when its turn to start has come."""
    found = platform.catalog.environment(choice)
    if found is None or found.lab:
        return
    others = [one.id for one in platform.catalog.environments(workspace) if one.image or one.lab]
    raise Refused("notebook-no-lab", environment=found.directory, images=", ".join(others) or "-")


def _idle(platform: Platform, idle: Idle) -> Idle:
    """What a user wants of the idle stop, within what the server allows."""
    most = platform.limits.notebook_max_idle_s
    if most and (idle.off or (idle.after_s or 0) > most):
        value = "off" if idle.off else f"{idle.after_s} s"
        raise Refused("notebook-idle-most", value=value, most=most)
    if idle.after_s is not None and not LEAST_IDLE_S <= idle.after_s <= MOST_LEASE_MS // 1000:
        expected = f"off, or a whole number from {LEAST_IDLE_S} to {MOST_LEASE_MS // 1000}"
        raise Invalid("field-value", field="idle", value=idle.after_s, expected=expected)
    return idle


def _not_now(notebook: Notebook, verb: str) -> Refused:
    return Refused("notebook-state", notebook=notebook.spec.name, state=notebook.state, verb=verb)
