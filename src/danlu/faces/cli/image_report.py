"""How an image was verified, and what is known to be wrong with its versions, for people."""

from __future__ import annotations

from danlu.faces.cli import view
from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

COLORS = {"PASS": "green", "WARN": "yellow", "FAIL": "red"}


def show(session: Session, report: Any) -> None:
    """A report, check by check."""
    if session.json:
        session.put_json(report)
        return
    rows = [
        (str(one["number"]), printable(one["name"]), printable(one["status"]),
         printable(one["detail"]))
        for one in report["checks"]
    ]  # fmt: skip
    session.terminal.table(session.text("columns.verify").split("|"), rows, COLORS)
    holes(session, report["advisories"])
    counts = _counts(report)
    key = "verify-good" if report["ok"] else "verify-bad"
    session.say(key, image=report["image_name"], flavor=report["flavor"], **counts)
    if report["ok"] and not report["on_gpus"]:
        session.say("verify-no-gpus")


def holes(session: Session, found: Any) -> None:
    """Known holes of the versions in an image."""
    for one in found:
        shown = {key: printable(str(value)) for key, value in one.items()}
        session.put(session.text("image-hole", **shown))


def line(session: Session, report: Any) -> str:
    """A report in one line."""
    return session.text(
        "verify-line",
        status=session.text("verify-ok" if report["ok"] else "verify-failed"),
        flavor=report["flavor"],
        realisation=report["realisation"][:19],
        at=view.instant(report["at"]),
        **_counts(report),
    )


def _counts(report: Any) -> dict[str, int]:
    ends = [one["status"] for one in report["checks"]]
    return {status.lower(): ends.count(status) for status in ("PASS", "WARN", "FAIL", "SKIPPED")}
