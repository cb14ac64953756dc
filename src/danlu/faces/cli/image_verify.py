"""danlu image verify: a job whose only work is to prove its image where it runs."""

from __future__ import annotations

from danlu.faces.cli import image_report, view
from danlu.faces.cli.attached import outcome
from danlu.faces.cli.failure import FAILED
from danlu.faces.cli.run import submit
from danlu.faces.cli.session import Session, utf8
from danlu.faces.cli.waiting import until_final

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def verify(session: Session, *, image: str, flavor: str | None) -> int:
    """Verify an image on a flavor; the exit status is 1 where a check fails."""
    word = utf8(image, "IMAGE")
    body: dict[str, Any] = {
        "kind": "job",
        "metadata": {"name": "verify-image"},
        "algorithm": {"engine": {"image_url": word}, "command": "true"},
        "spec": {"resource": {"node_count": 1}},
        "danlu": {"verify_image": True, "retry_on": []},
    }
    if flavor is not None:
        body["spec"]["resource"]["flavor_id"] = utf8(flavor, "--flavor")
    job = submit(session, body)
    session.say("verify-running", image=word, flavor=job["flavor"], id=job["id"][: view.ID_CHARS])
    job = until_final(session, job["id"])
    report = session.get("jobs", job["id"])["verification"]
    if report is None or report["job"] != job["id"]:
        session.terminal.say(f"danlu: {outcome(session, job)}")
        return FAILED
    image_report.show(session, report)
    return 0 if report["ok"] else FAILED
