"""Delivering an output: all of it is there, the manifest says so, then it gets its names.

staged:      every file that its output does not hold yet lies under the staging prefix
committing:  the manifest is put on condition that no later attempt's is there
moved:       each staged file is moved to its name
committed:   the manifest is put again, on condition that it is still the one of this attempt

A crash leaves what is staged out of sight, and whoever comes next does the rest again; an attempt
that a later one has overtaken is refused at either condition.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from danlu.model.codec import to_json
from danlu.model.manifest import (
    STAGING,
    Delivery,
    File,
    Manifest,
    Owner,
    manifest_name,
    read_manifest,
)
from danlu.node.directory import now_ms
from danlu.node.parallel import each
from danlu.node.target import Target
from danlu.ports.crash import crash_point


class Superseded(Exception):
    """A later attempt has stored this output; nothing more of this one goes there."""


class Commit:
    """The delivery of one task's output number `index`. Each step may be repeated, and raises
    Superseded, OSError or PlatformError.
    """

    def __init__(self, target: Target, owner: Owner, index: int, output: str) -> None:
        self._target = target
        self._owner = owner
        self._name = manifest_name(owner.job, owner.task, index)
        self._output = output
        self._manifest: Manifest | None = None

    def run(self, files: Sequence[File], staged: Mapping[str, str], exit_code: int) -> None:
        """Say that `files` are what the output holds, and give those their names that are
        `staged` (name to where it lies).
        """
        owner = self._owner
        crash_point("commit.staged")
        self._manifest = Manifest(
            owner.job,
            owner.attempt,
            owner.task,
            owner.token,
            self._output,
            Delivery.COMMITTING,
            now_ms(),
            exit_code,
            tuple(files),
        )
        self._put(self._manifest)
        crash_point("commit.begun")
        each(staged.items(), lambda one: self._target.move(one[1], one[0]))

    def finish(self) -> None:
        """Say that all files have their names, and clear away what is not needed any more."""
        crash_point("commit.moved")
        if self._manifest is not None:
            self._put(replace(self._manifest, state=Delivery.COMMITTED, at=now_ms()))
        crash_point("commit.done")
        self._target.clear(self._owner.staging)
        # What uploads left that were killed: no other attempt writes to this output now.
        self._target.clear(STAGING, keep=self._owner.attempt_staging)

    def _put(self, manifest: Manifest) -> None:
        found = self._target.document(self._name)
        version = None
        if found is not None:
            data, version = found
            if _attempt(data) > manifest.attempt:
                raise Superseded(f"attempt {_attempt(data)} of this job has stored this output")
        text = json.dumps(to_json(manifest), ensure_ascii=False, indent=0)
        self._target.put_document(self._name, text.encode("utf-8", "replace"), version)


def _attempt(data: bytes) -> int:
    manifest = read_manifest(data)
    return manifest.attempt if manifest is not None else 0
