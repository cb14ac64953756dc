"""danlu run --dry-run: what would be started, and where it would find things."""

from __future__ import annotations

import shlex

from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import printable

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any


def show_plan(session: Session, plan: Any) -> int:
    """Print the argument lists exactly (as a shell would be given them), environment and paths."""
    if session.json:
        session.put_json(plan)
        return 0
    paint = session.terminal.paint
    flavor = plan.get("flavor") or {}
    _line(session, "plan.job", plan["spec"]["metadata"]["name"])
    _line(session, "plan.flavor", flavor.get("id", ""))
    for name in ("home", "cache", "code"):
        _line(session, f"plan.{name}", plan["paths"].get(name, ""))
    for kind in ("inputs", "outputs"):
        for name, place in plan["paths"].get(kind, {}).items():
            _line(session, f"plan.{kind}", f"{name}: {place}")
    if not plan["literal_paths"]:
        session.put(session.text("plan.mapped"))
    for task in plan["tasks"]:
        session.put("")
        session.put(paint(printable(task["task"]), "bold"))
        _line(session, "plan.cwd", task["cwd"])
        _line(session, "plan.argv", shlex.join(task["argv"]))
        for name in sorted(task["env"]):
            session.put(f"  {printable(name)}={printable(shlex.quote(task['env'][name]))}")
    if not plan["tasks"]:
        session.put(session.text("plan.unknown"))
    return 0


def _line(session: Session, key: str, value: str) -> None:
    if value:
        session.put(f"{session.text(key)}{printable(str(value))}")
