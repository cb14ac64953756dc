"""danlu image build, push, save, load, sbom: images as container images. No server is asked."""

from __future__ import annotations

from pathlib import Path

from danlu.faces.cli import images as shown
from danlu.faces.cli import view
from danlu.faces.cli.failure import MISSING, Failure
from danlu.faces.cli.session import Session
from danlu.wiring import container_images

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from danlu.model.image import Built


def build(
    session: Session, *, image: str, base: str | None, apt_sources: str | None, fresh: bool
) -> int:
    """Build the container image of an image."""
    made = container_images.build(
        shown.settings_of(session),
        image,
        base or "",
        apt_sources or "",
        shown.saying(session),
        fresh=fresh,
    )
    if session.json:
        session.put_json(record(made))
    else:
        session.put(made.reference)
    return 0


def push(session: Session, *, image: str, reference: str, insecure: bool) -> int:
    """Send a built image to a registry."""
    where = shown.settings_of(session)
    made = container_images.push(where, image, reference, insecure=insecure)
    if session.json:
        session.put_json({**record(made), "pushed": reference})
    else:
        session.say("image-pushed", image=made.name, reference=reference)
    return 0


def save(session: Session, *, image: str, file: str) -> int:
    """Write a built image to a file."""
    made = container_images.save(shown.settings_of(session), image, Path(file))
    size = Path(file).stat().st_size
    if session.json:
        session.put_json({**record(made), "file": file, "file_bytes": size})
    else:
        session.say("image-saved", image=made.name, path=file, size=view.size(size))
    return 0


def load(session: Session, *, file: str) -> int:
    """Take in an image that was saved elsewhere."""
    if not Path(file).is_file():
        raise Failure(MISSING, "path-missing", option="FILE", path=file)
    made = container_images.load(shown.settings_of(session), Path(file))
    if session.json:
        session.put_json(record(made))
    else:
        session.put(made.reference)
    return 0


def sbom(session: Session, *, image: str, out: str | None) -> int:
    """Print the bill of materials of an image, or write it to a file."""
    text = container_images.sbom(shown.settings_of(session), image)
    if out is None:
        session.put(text.rstrip("\n"))
    else:
        Path(out).write_text(text, "utf-8")
    return 0


def record(made: Built) -> dict[str, Any]:
    """A container image for programs."""
    return {
        "id": made.id,
        "name": made.name,
        "reference": made.reference,
        "oci_id": made.oci_id,
        "base": made.base or None,
        "base_id": made.base_id or None,
        "size_bytes": made.size_bytes,
        "builder": made.builder,
        "made_at": made.made_at,
    }
