"""danlu notebook: machines to work at, created, started, stopped, kept up and removed."""

from __future__ import annotations

import json
import sys
import time

from danlu.faces.cli import notebook_view, view
from danlu.faces.cli.failure import FAILED, INTERRUPTED, MISSING, USAGE, Failure
from danlu.faces.cli.request import duration_s
from danlu.faces.cli.session import Session, utf8
from danlu.faces.cli.ssh import forget
from danlu.faces.cli.texts import printable
from danlu.faces.cli.waiting import persistently

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from typing import Any

OFF = "off"
ANY = "any"
LOOK_S = 2
HOLD_S = 8 * 3600
COLORS = {"Error": "red", "Warning": "yellow"}


def create(session: Session, *, name: str, **given: Any) -> int:
    """Create a notebook, and wait until JupyterLab answers."""
    made = session.client().post("notebooks", body={"name": utf8(name, "NAME"), **_body(given)})
    return _follow(session, made, wait=not given["detach"])


def _body(given: dict[str, Any]) -> dict[str, Any]:
    """What the options of `create` ask for."""
    ours: dict[str, Any] = {
        "environments": dict(_variable(one) for one in given["env"]),
        "data": [_data(one) for one in given["data_urls"]],
    }
    body: dict[str, Any] = {"danlu": ours}
    if given["idle"] is not None:
        ours["idle"] = _idle(given["idle"])
    lease_s = None if given["lease"] in (None, OFF) else duration_s(given["lease"], "--lease")
    if lease_s is None:
        # Without a word about it, idleness alone ends it.
        ours["lease"] = OFF
    else:
        body["duration"] = lease_s * 1000
    for key, name in (("flavor", "flavor"), ("image_id", "image"), ("description", "description")):
        if given[name] is not None:
            body[key] = utf8(given[name], f"--{name}")
    if given["home"] is not None:
        body["volume"] = {"category": "EFS", "capacity": given["home"]}
    if given["ssh"] or given["allow_ip"]:
        body["endpoints"] = [_ssh(given["allow_ip"])]
    return body


def _ssh(allowed: tuple[str, ...]) -> dict[str, Any]:
    """SSH from these addresses; `any` takes a list back."""
    endpoint: dict[str, Any] = {"service": "SSH"}
    if allowed:
        listed = [utf8(one, "--allow-ip") for one in allowed if one != ANY]
        endpoint["allowed_access_ips"] = listed
    return endpoint


def ls(session: Session) -> int:
    """List notebooks, the latest first; with --json one object a line."""
    found = session.get("notebooks")["data"]
    if session.json or session.quiet:
        for one in found:
            if session.json:
                session.put_json(one)
            else:
                session.put(one["name"])
        return 0
    if not found:
        session.say("notebooks-none")
        return 0
    rows = [notebook_view.row(one, time.time()) for one in found]
    header = session.text("columns.notebooks").split("|")
    session.terminal.table(header, rows, notebook_view.STATE_COLORS)
    return 0


def show(session: Session, *, notebook: str) -> int:
    """Print a notebook: how it is, until when it runs and why, and each sign of its use."""
    found = session.get("notebooks", notebook)
    if session.json:
        session.put_json(found)
    elif session.quiet:
        session.put(found["id"])
    else:
        notebook_view.show(session, found)
    return 0


def start(session: Session, *, notebook: str, detach: bool) -> int:
    """Start a notebook that rests, and wait until JupyterLab answers."""
    found = session.client().post("notebooks", notebook, "start")
    return _follow(session, found, wait=not detach)


def stop(session: Session, *, notebook: str, detach: bool) -> int:
    """Stop a notebook; its home stays."""
    found = session.client().post("notebooks", notebook, "stop")
    forget(found["id"])
    if not detach:
        found = _settled(session, found)
    return _told(session, found)


def restart(
    session: Session, *, notebook: str, flavor: str | None, image: str | None, detach: bool
) -> int:
    """Stop a notebook if it runs, change what is asked for, and start it with the same home."""
    found = session.get("notebooks", notebook)
    if found["danlu"]["state"] in ("running", "starting", "creating"):
        found = session.client().post("notebooks", found["id"], "stop")
    found = _settled(session, found)
    wanted = {"flavor": flavor, "image_id": image}
    if any(value is not None for value in wanted.values()):
        _put(session, found["id"], {k: v for k, v in wanted.items() if v is not None})
    found = session.client().post("notebooks", found["id"], "start")
    return _follow(session, found, wait=not detach)


def update(session: Session, *, notebook: str, **options: Any) -> int:
    """Change a notebook; flavor and image while it rests."""
    idle, allowed = options["idle"], options["allow_ip"]
    given = {
        "name": options["name"],
        "flavor": options["flavor"],
        "image_id": options["image"],
        "storage_new_size": options["home"],
        "description": options["description"],
        "danlu": None if idle is None else {"idle": _idle(idle)},
        "endpoints": [_ssh(allowed)] if allowed else None,
    }
    body = {key: value for key, value in given.items() if value is not None}
    return _told(session, _put(session, notebook, body))


def renew(session: Session, *, notebook: str, lease: str | None, idle: str | None) -> int:
    """Count a lease, and idleness, from now on; without a time as before."""
    body: dict[str, Any] = {}
    if lease == OFF:
        body["lease"] = OFF
    elif lease is not None:
        body["lease_ms"] = (duration_s(lease, "TIME") or 0) * 1000
    if idle is not None:
        body["idle"] = _idle(idle)
    return _told(session, session.client().post("notebooks", notebook, "renew", body=body))


def hold(
    session: Session,
    *,
    notebook: str,
    time: str | None,
    until_pid: int | None,
    why: str | None,
    release: bool,
) -> int:
    """Keep a notebook up for a time, or until a process of it ends."""
    if release:
        return _told(session, session.client().delete("notebooks", notebook, "hold"))
    seconds = duration_s(time, "TIME")
    body: dict[str, Any] = {"seconds": HOLD_S if seconds is None else seconds}
    if until_pid is not None:
        body["pid"] = until_pid
    if why is not None:
        body["why"] = utf8(why, "--why")
    return _told(session, session.client().post("notebooks", notebook, "hold", body=body))


def events(session: Session, *, notebook: str) -> int:
    """List what happened to a notebook, the first event first; with --json one object a line."""
    found = session.get("notebooks", notebook, "events")["events"]
    if session.json:
        for one in found:
            session.put_json(one)
        return 0
    rows = [
        (view.instant(one["at"]), one["level"], printable(str(one["sentence"]))) for one in found
    ]
    session.terminal.table(session.text("columns.events").split("|"), rows, COLORS)
    return 0


def rm(session: Session, *, notebook: str, yes: bool, detach: bool) -> int:
    """Delete a notebook with its home, once its name was typed."""
    found = session.get("notebooks", notebook)
    if not yes and not _confirmed(session, found):
        return INTERRUPTED
    gone = session.client().delete("notebooks", found["id"])
    forget(found["id"])
    while not detach:
        try:
            gone = _looked(session, found["id"])
        except Failure as failure:
            if failure.exit_status != MISSING:
                raise
            break
        if gone["danlu"]["state"] == "delete-failed":
            session.say("notebook-not-deleted", name=gone["name"], why=gone["danlu"]["reason"])
            return FAILED
        time.sleep(0.2)
    if session.json:
        session.put_json({"id": found["id"], "deleted": not detach})
    elif session.quiet:
        session.put(found["id"])
    else:
        session.say("notebook-deleted" if not detach else "notebook-deleting", name=found["name"])
    return 0


def _confirmed(session: Session, found: Any) -> bool:
    """Its home goes with it, so its name is asked for. At a terminal: elsewhere nobody answers."""
    if not sys.stdin.isatty():
        raise Failure(USAGE, "rm-needs-yes")
    used = view.size(found["danlu"]["home"]["used_bytes"])
    asked = session.text("notebook-rm-ask", name=found["name"], used=used)
    session.terminal.err.write(f"{asked} ")
    session.terminal.err.flush()
    return bool(sys.stdin.readline().strip() == found["name"])


def _follow(session: Session, found: Any, *, wait: bool) -> int:
    """Say how a start goes, until it has come to something."""
    if wait:
        found = _settled(session, found)
    return _told(session, found)


def _settled(session: Session, found: Any) -> Any:
    """The notebook once it is on its way to nowhere else. What it is at is said when it changes."""
    said = ""
    while found["danlu"]["state"] in notebook_view.UNDER_WAY:
        now = notebook_view.progress(found)
        if now and now != said:
            said = now
            session.say("notebook-progress", name=found["name"], step=now)
        found = _looked(session, found["id"])
    return found


def _looked(session: Session, notebook_id: str) -> Any:
    query = {"wait": "settled", "timeout_s": LOOK_S}
    return persistently(session, lambda: session.get("notebooks", notebook_id, query=query))


def _told(session: Session, found: Any) -> int:
    """Print what came of it; 1 where a start has failed."""
    state = found["danlu"]["state"]
    if session.json:
        session.put_json(found)
    elif session.quiet:
        session.put(found["id"])
    else:
        key = "notebook-failed" if state in notebook_view.FAILED else "notebook-is"
        ends = found["danlu"]["ends_at"]
        left = "" if ends is None else view.seconds(ends / 1000 - time.time())
        key = "notebook-is-until" if left and key == "notebook-is" else key
        session.say(
            key, name=found["name"], state=state, why=found["danlu"]["reason"] or "-", left=left
        )
    return FAILED if state in notebook_view.FAILED else 0


def _put(session: Session, notebook: str, body: dict[str, Any]) -> Any:
    client = session.client()
    sent = client.send("PUT", ("notebooks", notebook), body=json.dumps(body).encode())
    return client.answer(sent)


def _idle(text: str) -> str:
    return text if text in (OFF, "default") else str(duration_s(text, "--idle"))


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = utf8(text, "--env").partition("=")
    if not equals or not name:
        raise Failure(USAGE, "bad-variable", value=text)
    return name, value


def _data(text: str) -> dict[str, str]:
    url, equals, path = utf8(text, "--data-url").rpartition("=")
    return {"url": url, "path": path} if equals and path.startswith("/") else {"url": text}
