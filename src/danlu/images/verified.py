"""The reports of verifications on this machine: one for each image, realisation, flavor and driver.

```
root/verified/<hex>/<digest>.json
```
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from danlu.images.store import ImageStore, digits, publish
from danlu.model.verification import Verification, read

FOLDER = "verified"


def save(store: ImageStore, report: Verification) -> None:
    """Keep a report in place of an earlier one of the same."""
    folder = store.part(FOLDER) / digits(report.image)
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / _name(report.realisation, report.flavor, report.driver)
    publish(path, json.dumps(asdict(report), indent=1) + "\n")


def find(
    store: ImageStore, image_id: str, realisation: str, flavor: str, driver: str
) -> Verification | None:
    """The report of exactly this; None where there is none."""
    folder = store.root / FOLDER / digits(image_id)
    return _read(folder / _name(realisation, flavor, driver))


def every(store: ImageStore, image_id: str) -> list[Verification]:
    """All reports of an image, the latest first."""
    folder = store.root / FOLDER / digits(image_id)
    paths = sorted(folder.glob("*.json")) if folder.is_dir() else []
    found = [one for path in paths if (one := _read(path)) is not None]
    return sorted(found, key=lambda one: one.at, reverse=True)


def _read(path: Path) -> Verification | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        return read(json.loads(path.read_text("utf-8")))
    return None


def _name(realisation: str, flavor: str, driver: str) -> str:
    key = json.dumps([realisation, flavor, driver])
    return f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
