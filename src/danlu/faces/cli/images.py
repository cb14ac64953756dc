"""danlu image ls, show, realise, rm, gc, lock: the images of this machine. No server is asked."""

from __future__ import annotations

import os
from pathlib import Path

from danlu import settings
from danlu.faces.cli import image_report, view
from danlu.faces.cli.failure import MISSING, USAGE, Failure
from danlu.faces.cli.request import duration_s
from danlu.faces.cli.session import Session
from danlu.faces.cli.texts import printable
from danlu.wire.danlu_verification import advisory, verification
from danlu.wiring import images

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from danlu.model.image import ImageView
    from danlu.settings import Settings

DAMAGED = 1
ID_CHARS = 19
"""`sha256:` and the first twelve digits."""


def ls(session: Session, *, ready: bool) -> int:
    """List images; with `ready` those alone that have an environment here."""
    where = settings_of(session)
    found = [one for one in images.every(where) if one.realised is not None or not ready]
    if session.json or session.quiet:
        for one in found:
            if session.json:
                session.put_json(record(one))
            else:
                session.put(one.id)
        return 0
    session.terminal.table(session.text("columns.images").split("|"), [_row(one) for one in found])
    total = images.usage(where)
    if total:
        session.say("images-total", size=view.size(total), path=images.root(where))
    return 0


def show(session: Session, *, image: str, verify: bool) -> int:
    """Show one image; with `verify` read every file of its environment. The exit status is 1 where
    one is not as it was made.
    """
    where = settings_of(session)
    found = images.find(where, image)
    reports = [verification(one) for one in images.verifications(where, found.id)]
    holes = [advisory(one) for one in images.holes(where, found.id)]
    if session.json:
        session.put_json({**record(found), "verifications": reports, "advisories": holes})
    else:
        _show(session, record(found))
        for report in reports:
            session.put(image_report.line(session, report))
        image_report.holes(session, holes)
    if not verify:
        return 0
    if found.realised is None:
        raise Failure(USAGE, "image-verify-nothing", image=found.name)
    damaged = images.verify(where, found.id)
    for one in damaged:
        if session.json:
            session.put_json({"file": one.path, "package": one.package, "needs": one.needs,
                              "found": one.found})  # fmt: skip
        else:
            key = "image-file-changed" if one.needs and one.found else "image-file-added"
            key = key if one.found else "image-file-missing"
            session.put(session.text(key, file=printable(one.path), package=one.package or "-"))
    if not session.json:
        session.say(
            "image-damaged" if damaged else "image-good", image=found.name, bad=len(damaged)
        )
    return DAMAGED if damaged else 0


def realise(session: Session, *, image: str) -> int:
    """Make the environment of an image, if it is not ready."""
    made = images.realise(settings_of(session), image, saying(session))
    if session.json:
        session.put_json(record(made))
    else:
        session.put(made.path)
    return 0


def rm(session: Session, *, images_: tuple[str, ...]) -> int:
    """Remove environments; the images stay, and are made again when they are wanted."""
    where = settings_of(session)
    found = [images.find(where, word) for word in images_]
    for one in found:
        size = images.remove(where, one.id)
        if session.json:
            session.put_json({"id": one.id, "name": one.name, "removed": True, "size_bytes": size})
        else:
            session.say("image-removed", image=one.name, size=view.size(size))
    return 0


def gc(session: Session, *, unused_for: str | None, budget: str | None, dry_run: bool) -> int:
    """Remove what was not used for long, and more until everything fits."""
    if unused_for is None and budget is None:
        raise Failure(USAGE, "image-gc-nothing")
    freed = images.collect(
        settings_of(session),
        unused_for_s=duration_s(unused_for, "--unused-for"),
        budget=_bytes(budget),
        dry_run=dry_run,
    )
    if session.json:
        session.put_json(
            {
                "removed": [one.id for one in freed.removed],
                "before_bytes": freed.before,
                "after_bytes": freed.after,
                "dry_run": dry_run,
            }
        )
        return 0
    for one in freed.removed:
        session.put(f"{one.id[:ID_CHARS]}  {one.name}  {view.size(one.size_bytes)}")
    key = "image-gc-would" if dry_run else "image-gc-done"
    sizes = {"before": view.size(freed.before), "after": view.size(freed.after)}
    session.say(key, count=len(freed.removed), **sizes)
    return 0


def lock(session: Session, *, definition: str, backend: str | None, out: str | None) -> int:
    """Make the lock of a definition and write it to a file."""
    where = settings_of(session)
    name, image_id, count, text = images.lock(where, definition, backend or "", os.environ)
    path = Path(out or name)
    path.write_text(text, "utf-8")
    if session.json:
        session.put_json({"id": image_id, "file": str(path), "packages": count})
    else:
        session.put(image_id)
        session.say("image-locked", file=path, packages=count)
    return 0


def of_file(session: Session, file: str) -> str:
    """The id of the image whose lock a file is; the local server knows it from now on."""
    if not session.client().endpoint.data:
        raise Failure(USAGE, "image-file-remote", path=file)
    if not os.path.isfile(file):
        raise Failure(MISSING, "path-missing", option="--image", path=file)
    return images.find(settings_of(session), file).id


def record(one: ImageView) -> dict[str, Any]:
    """An image for programs. Without an environment all that it would say is null."""
    made = one.realised
    return {
        "id": one.id,
        "name": one.name,
        "backend": one.backend,
        "built_in": one.built_in,
        "torch": one.torch,
        "packages": one.packages,
        "realised": made is not None,
        "realisation": made.realisation if made else None,
        "os": made.os if made else None,
        "system": made.system if made else None,
        "python": one.python,
        "size_bytes": made.size_bytes if made else None,
        "digest": made.digest if made else None,
        "made_at": made.made_at if made else None,
        "used_at": one.used_at or None,
        "used_by": list(one.used_by),
        "parent": (made.parent or None) if made else None,
        "extras": list(made.extras) if made else [],
        "path": one.path or None,
        "container": one.built and one.built.reference,
        "oci_id": one.built and one.built.oci_id,
    }


def _row(one: ImageView) -> tuple[str, ...]:
    made = one.realised
    return (
        printable(one.name),
        one.id[:ID_CHARS],
        one.torch or "-",
        one.python,
        str(one.packages),
        view.size(made.size_bytes) if made else "-",
        view.age(one.used_at) if one.used_at else "-",
        str(len(one.used_by)) if made else "-",
    )


def _show(session: Session, data: dict[str, Any]) -> None:
    shown = {
        **data,
        "size_bytes": view.size(data["size_bytes"]),
        "made_at": view.instant(data["made_at"]) if data["made_at"] else None,
        "used_at": view.instant(data["used_at"]) if data["used_at"] else None,
        "used_by": ", ".join(data["used_by"]),
        "extras": ", ".join(data["extras"]),
        "realised": session.text("image-honest" if data["realised"] else "image-not-here"),
    }
    for key in ("realisation", "os", "built_in"):
        shown.pop(key)
    wide = max(len(key) for key in shown)
    for key, value in shown.items():
        if value not in (None, ""):
            session.put(f"{key:<{wide}}  {printable(str(value))}")


def saying(session: Session) -> Any:
    """Says on the terminal what is going on."""
    from danlu.model.texts import text

    def say(key: str, **params: str) -> None:
        if not session.quiet:
            session.terminal.say(f"danlu: {text(key, session.language, **params)}")

    return say


def _bytes(words: str | None) -> int | None:
    """A size such as 20G or 500M in bytes."""
    if words is None:
        return None
    units = {"K": 10, "M": 20, "G": 30, "T": 40}
    number, unit = (words[:-1], words[-1].upper()) if words[-1:].isalpha() else (words, "G")
    if unit not in units or not (number.isascii() and number.isdigit() and len(number) < 10):
        raise Failure(USAGE, "size", option="--budget", value=words)
    return int(number) << units[unit]


def settings_of(session: Session) -> Settings:
    """The settings of the server whose data is meant."""
    return settings.load(Path(session.data)).settings
