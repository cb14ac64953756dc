"""Whose a bucket is: each belongs to the workspace that made it.

A bucket of which nothing is recorded was made by the server itself or before there were owners,
and belongs to the server's first workspace.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from danlu.model.errors import Denied, Refused
from danlu.ports.objects import ObjectStore
from danlu.ports.records import Records
from danlu.ports.world import Clock

OWNER = "bucket-owner:"
SEEN_FOR_S = 5.0
MOST = 10_000
"""Names that are remembered."""


class Buckets:
    """The buckets of the workspaces of one server. May be used from any thread."""

    def __init__(
        self, records: Records, objects: ObjectStore, clock: Clock, first_workspace: str
    ) -> None:
        self._records = records
        self._objects = objects
        self._clock = clock
        self._first = first_workspace
        self._lock = threading.Lock()
        self._owners: dict[str, str] = {}
        self._seen: dict[str, float] = {}

    def owner(self, bucket: str) -> str:
        """The workspace that a bucket of this name belongs to, whether there is one or not."""
        found = self._owners.get(bucket)
        if found is None:
            found = self._records.setting(OWNER + bucket) or self._first
            if len(self._owners) > MOST:
                self._owners.clear()
            self._owners[bucket] = found
        return found

    def check(self, workspace: str, bucket: str) -> None:
        """Denied (403) for another workspace's bucket, Missing where there is none.

        One that was there is taken to be there for some seconds: a store may have to ask a server,
        and will say itself that a bucket has gone.
        """
        now = self._clock.monotonic()
        if now - self._seen.get(bucket, -SEEN_FOR_S) >= SEEN_FOR_S:
            self._objects.bucket(bucket)
            if len(self._seen) > MOST:
                self._seen.clear()
            self._seen[bucket] = now
        if self.owner(bucket) != workspace:
            raise Denied("obs-bucket-denied", http=403, bucket=bucket)

    def owned(self, workspace: str) -> Sequence[str]:
        """The buckets of a workspace, sorted."""
        return [bucket for bucket in self._objects.buckets() if self.owner(bucket) == workspace]

    def create(self, workspace: str, bucket: str) -> None:
        """Make a bucket; Refused (409) where there is one, and whether it is the caller's.

        Whose it is comes first: a crash in between leaves a name that its owner can take again.
        """
        with self._lock:
            if bucket in self._objects.buckets():
                if self.owner(bucket) == workspace:
                    raise Refused("obs-bucket-owned", bucket=bucket)
                raise Refused("bucket-exists", bucket=bucket)
            if self.owner(bucket) != workspace:
                self._records.set_setting(OWNER + bucket, workspace).result()
                self._owners[bucket] = workspace
            self._objects.create_bucket(bucket)

    def delete(self, workspace: str, bucket: str) -> None:
        """Remove an empty bucket; its name is free for everyone then."""
        self.check(workspace, bucket)
        with self._lock:
            self._seen.pop(bucket, None)
            self._objects.delete_bucket(bucket)
