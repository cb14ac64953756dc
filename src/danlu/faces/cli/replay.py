"""danlu replay: submit a job once more, as it was asked for."""

from __future__ import annotations

import os

from danlu.faces.cli import request
from danlu.faces.cli.attached import submitted
from danlu.faces.cli.failure import MISSING, USAGE, Failure
from danlu.faces.cli.run import submit
from danlu.faces.cli.session import Session, utf8

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any

REPLAY_OF = "danlu/replay-of"
OWN = "obs://danlu/jobs/"
"""Where `danlu run` puts what a job writes whose user named no place."""


def original(session: Session, job_id: str) -> Any:
    """What was asked for, in the form in which it can be asked for again."""
    return session.get("", "v2", session.client().endpoint.project_id, "training-jobs", job_id)


def replay(
    session: Session, *, job: str, name: str | None, outputs: tuple[str, ...], detach: bool
) -> int:
    """Submit the same code, data, parameters, variables and environment again. What it writes goes
    to places of its own: the first run's results stay.
    """
    found = session.get("jobs", job)
    body = original(session, found["id"])
    metadata = body["metadata"]
    metadata["annotations"] = {**metadata.get("annotations", {}), REPLAY_OF: found["id"]}
    if found["image"]:
        # A name may mean another image by now.
        body["algorithm"]["engine"] = {"image_url": found["image"]}
    if name is not None:
        metadata["name"] = utf8(name, "--name")
    _fresh_places(session, body, outputs)
    return submitted(session, submit(session, body), detach=detach)


def _fresh_places(session: Session, body: Any, words: tuple[str, ...]) -> None:
    home = f"{OWN}{body['metadata']['name']}-{os.urandom(4).hex()}/outputs/"
    remote = bool(words) and not session.client().endpoint.data
    given = {one["name"]: one for one in request.outputs(words, home, remote=remote)}
    for output in body["algorithm"].get("outputs", []):
        place = given.pop(output["name"], None)
        url = output["remote"]["obs"]["obs_url"]
        if place is not None:
            output["remote"] = place["remote"]
        elif url.startswith(OWN):
            output["remote"] = {"obs": {"obs_url": f"{home}{output['name']}/"}}
        else:
            raise Failure(USAGE, "replay-output", name=output["name"], url=url)
    if given:
        listed = ", ".join(one["name"] for one in body["algorithm"].get("outputs", [])) or "-"
        raise Failure(MISSING, "replay-output-unknown", name=next(iter(given)), outputs=listed)
