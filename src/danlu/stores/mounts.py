"""On which file system a path lies, and whether a SQLite database may lie there.

SQLite's log needs locks that everybody sees and memory that is shared through a file. Over a
network neither holds: two machines can write at once, and the database is damaged without a word.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")

NETWORK = frozenset({
    "9p", "afs", "beegfs", "ceph", "cifs", "coda", "davfs", "fhgfs", "fuse", "fuseblk", "gfs",
    "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs3", "nfs4", "ocfs2", "orangefs",
    "prl_fs", "pvfs2", "smb2", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
})  # fmt: skip
"""File systems that other machines may write to, or a program of which nothing is known."""

LOCAL = frozenset({"fuse.fuse-overlayfs"})
"""In user space, and yet a disk of this machine alone: what containers without root lie on."""

_ESCAPED = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: its type and where it is mounted."""

    kind: str
    point: str

    @property
    def is_network(self) -> bool:
        """Whether a database does not belong there."""
        if self.kind in LOCAL:
            return False
        return self.kind in NETWORK or self.kind.startswith("fuse.")


def mount_of(path: Path, table: str | None = None) -> Mount | None:
    """The mount on which `path` lies, or will lie; None where the system does not say.

    `table` is the text of /proc/self/mountinfo (proc(5)).
    """
    if table is None:
        try:
            table = MOUNTS.read_text("utf-8", "surrogateescape")
        except OSError:
            return None
    real = os.path.realpath(path)
    found: Mount | None = None
    for line in table.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 5 or not kinds[0]:
            continue
        point = _ESCAPED.sub(lambda code: chr(int(code[1], 8)), fields[4])
        # Of two on the same place the later one covers the earlier.
        if _is_below(real, point) and (found is None or len(point) >= len(found.point)):
            found = Mount(kinds[0], point)
    return found


def _is_below(path: str, point: str) -> bool:
    return point in ("/", path) or path.startswith(f"{point}/")
