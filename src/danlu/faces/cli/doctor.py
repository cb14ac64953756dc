"""danlu doctor: looks this machine over, and says what to do about what it finds."""

from __future__ import annotations

from pathlib import Path

from danlu import settings
from danlu.faces.cli import checks, probe
from danlu.faces.cli.failure import FAILED
from danlu.faces.cli.machine import Machine
from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import fill
from danlu.faces.cli.texts.checks import CHECKS
from danlu.model.image import Rule
from danlu.model.texts import Language
from danlu.wiring import environments, host
from danlu.wiring import objects as storing

COLORS = {checks.OK: "green", checks.WARN: "yellow", checks.FAIL: "red"}


def doctor(session: Session) -> int:
    """Run every check; the exit status is 1 if one fails."""
    loaded = settings.load(Path(session.data)).settings
    python = environments.default_environment(loaded) / "bin" / "python"
    inventory = host.gpu_inventory()
    torch = probe.ask(python)
    models = tuple(gpu.model for gpu in inventory.gpus)
    examined = checks.Examined(
        Machine(),
        Path(session.data),
        python,
        torch,
        loaded.host,
        loaded.port,
        checks.Gpus(
            models,
            len(inventory.unreachable),
            inventory.reason(session.language),
        ),
        checks.Groups(*host.control_groups()),
        checks.Isolation(*host.isolation()),
        unfit(torch, models, session.language),
        checks.Objects(
            loaded.s3_endpoint if loaded.objects == "s3" else "",
            storing.trouble(loaded, session.language),
        ),
        kept(session.data, loaded.dataset_cache_gib << 30),
        checks.Containers(*host.containers(loaded, session.language)),
        runtimes(),
    )
    found = list(checks.every(examined))
    rows = [
        (
            fill(CHECKS, f"name.{check.name}", session.language, {}),
            check.level,
            fill(CHECKS, check.key, session.language, check.params),
        )
        for check in found
    ]
    failed = any(check.level == checks.FAIL for check in found)
    if session.json:
        listed = [
            {"check": check.name, "level": check.level, "key": check.key, "found": row[2]}
            for check, row in zip(found, rows, strict=True)
        ]
        session.put_json({"ok": not failed, "checks": listed})
    else:
        session.terminal.table(session.text("columns.doctor").split("|"), rows, COLORS)
    return FAILED if failed else 0


def runtimes() -> checks.Runtimes:
    """What makes containers here, and what is known to be wrong with it."""
    versions, holes = host.runtimes()
    named = tuple(f"{one.id} ({one.package} < {one.below})" for one in holes)
    return checks.Runtimes(tuple(versions.items()), named)


def kept(data: str, limit: int) -> tuple[int, int, int]:
    """How many data sets stay on this machine, their size, and the most there may be."""
    found = host.kept(data)
    return len(found), sum(one.size for one in found), limit


def unfit(torch: probe.Torch, models: tuple[str, ...], language: Language) -> checks.Unfit | None:
    """What the matrix has against these GPUs with that torch; the driver has a check of its own."""
    if not torch.cuda:
        return None
    found = host.against_torch(torch.version, models)
    if found is None or found.rule is Rule.DRIVER:
        return None
    fix = found.fix_text(language)
    return checks.Unfit(found.found, found.needs, fix)
