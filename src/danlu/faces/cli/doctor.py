"""danlu doctor: looks this machine over, and says what to do about what it finds."""

from __future__ import annotations

from pathlib import Path

from danlu import settings, wiring
from danlu.faces.cli import checks, probe
from danlu.faces.cli.failure import FAILED
from danlu.faces.cli.machine import Machine
from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import fill
from danlu.faces.cli.texts.checks import CHECKS

COLORS = {checks.OK: "green", checks.WARN: "yellow", checks.FAIL: "red"}


def doctor(session: Session) -> int:
    """Run every check; the exit status is 1 if one fails."""
    loaded = settings.load(Path(session.data)).settings
    python = wiring.default_environment(loaded) / "bin" / "python"
    inventory = wiring.gpu_inventory()
    examined = checks.Examined(
        Machine(),
        Path(session.data),
        python,
        probe.ask(python),
        loaded.host,
        loaded.port,
        checks.Gpus(
            tuple(gpu.model for gpu in inventory.gpus),
            len(inventory.unreachable),
            inventory.reason("zh" if session.language == "zh" else "en"),
        ),
        checks.Groups(*wiring.control_groups()),
        checks.Isolation(*wiring.isolation()),
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
