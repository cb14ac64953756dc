"""What an image is to be held against where it runs: its lock, its realisation and the matrix."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from danlu.images import matrix
from danlu.images.lock import Lock
from danlu.images.matrix import Matrix
from danlu.images.store import ImageStore
from danlu.images.versions import cuda_version, numbers
from danlu.model.image import CPU

VENV, CONTAINER = "venv", "container"
OLDEST_GLIBC = "2.17"


def expected(
    store: ImageStore, image_id: str, realisation: str, gpu_models: Sequence[str]
) -> dict[str, Any]:
    """What the checks compare with, as values of JSON."""
    lock = store.lock(image_id)
    known = matrix.packaged()
    cuda = "" if lock.backend == CPU else cuda_version(lock.backend)
    row = known.drivers.get(cuda)
    return {
        "realisation": realisation,
        "python": lock.python,
        "backend": lock.backend,
        "wheels": {one.name: one.version for one in lock.wheels},
        "glibc": glibc_of(lock),
        "uid": lock.runtime.uid,
        "gid": lock.runtime.gid,
        "ssh": lock.runtime.ssh,
        "shm_min_mb": lock.runtime.shm_min_mb,
        "sms": sorted(capabilities(known, gpu_models)),
        "driver_floor": row.min_compat if row else "",
        "driver_full": row.toolkit_driver if row else "",
        "size_bytes": _size(store, image_id, realisation),
    }


def glibc_of(lock: Lock) -> str:
    """The oldest C library that all wheels take, by their names."""
    floors = [OLDEST_GLIBC]
    for wheel in lock.wheels:
        found = re.findall(r"manylinux_(\d+)_(\d+)_", wheel.filename)
        if found:
            floors.append(min((f"{major}.{minor}" for major, minor in found), key=numbers))
    return max(floors, key=numbers)


def capabilities(known: Matrix, models: Sequence[str]) -> set[int]:
    """The compute capabilities of GPUs, as far as the matrix knows their models."""
    found = (known.capability(model) for model in models)
    return {one[0] for one in found if one is not None}


def _size(store: ImageStore, image_id: str, realisation: str) -> int:
    from danlu.images import built

    if realisation == CONTAINER:
        record = built.find(store, image_id)
        return record.size_bytes if record else 0
    made = store.realised(image_id)
    return made.size_bytes if made else 0
