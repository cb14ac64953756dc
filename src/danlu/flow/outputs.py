"""outputs: what was delivered, by its manifests, and whether it is still what was delivered."""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator

from danlu.flow.platform import Platform
from danlu.model.errors import Missing, PlatformError
from danlu.model.job import JobView
from danlu.model.manifest import (
    Checked,
    Delivered,
    File,
    Manifest,
    Problem,
    manifest_name,
    read_manifest,
)
from danlu.model.url import LocalUrl, ObjectUrl, Url
from danlu.ports.objects import ObjectStore, Shelf

MANIFEST_BYTES = 64 << 20
REST_BYTES = 64 << 20
"""So much of a file is read in one go."""


def delivered(platform: Platform, view: JobView) -> list[Delivered]:
    """Every output of every task of a job, with its manifest."""
    spec, found = view.job.spec, []
    for index, output in enumerate(spec.outputs):
        shelf = _shelf(platform, output.url)
        for number in range(spec.node_count):
            task = f"worker-{number}"
            name = manifest_name(view.job.id, task, index)
            found.append(Delivered(output, task, _manifest(shelf, name)))
    return found


def check(platform: Platform, view: JobView) -> Iterator[Checked | None]:
    """Read every file that was delivered, and compare it with its manifest. Where tasks wrote the
    same name to one output, it has to be what one of them delivered. None comes in the middle of a
    large file: time to let others go first.
    """
    wanted: dict[str, tuple[Shelf, dict[str, set[File]]]] = {}
    for one in delivered(platform, view):
        shelf, files = wanted.setdefault(one.output.name, (_shelf(platform, one.output.url), {}))
        for file in one.manifest.files if one.manifest is not None else ():
            files.setdefault(file.name, set()).add(file)
    for output, (shelf, files) in wanted.items():
        for name, versions in files.items():
            size = max(file.size for file in versions)
            problem = yield from _problem(shelf, name, versions)
            yield Checked(output, name, size, problem)


def _problem(shelf: Shelf, name: str, versions: set[File]) -> Generator[None, None, Problem]:
    digest, size, rest_at = hashlib.sha256(), 0, REST_BYTES
    try:
        for chunk in shelf.read(name):
            digest.update(chunk)
            size += len(chunk)
            if size >= rest_at:
                rest_at += REST_BYTES
                yield None
    except Missing:
        return Problem.MISSING
    except (PlatformError, OSError):
        return Problem.UNREADABLE
    if all(file.size != size for file in versions):
        return Problem.SIZE
    found = digest.hexdigest()
    good = any(file.sha256 == found for file in versions if file.size == size)
    return Problem.NONE if good else Problem.CONTENT


def _manifest(shelf: Shelf, name: str) -> Manifest | None:
    parts, size = [], 0
    try:
        for chunk in shelf.read(name):
            parts.append(chunk)
            size += len(chunk)
            if size > MANIFEST_BYTES:
                return None
    except Missing:
        return None
    return read_manifest(b"".join(parts))


def _shelf(platform: Platform, url: Url) -> Shelf:
    if isinstance(url, LocalUrl):
        return platform.folder(url.path)
    return _Objects(platform.objects, url)


class _Objects:
    """Objects below a prefix."""

    def __init__(self, objects: ObjectStore, url: ObjectUrl) -> None:
        self._objects = objects
        self._url = url

    def read(self, name: str) -> Iterator[bytes]:
        """The content of one."""
        place = self._url.child(name)
        return self._objects.read(place.bucket, place.key)
