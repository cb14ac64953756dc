"""What a task changes of its Python environment: `pip install` in a job just works, and nobody else
sees anything of it.

The environment itself is read-only, and many tasks'. In a task's view what it changes is laid over
it (overlayfs): what is installed, replaced or removed there is the task's own, lies in its work and
goes with that. It costs nothing until something is installed.
"""

from __future__ import annotations

import os
from pathlib import Path

CHANGES = "changes/environment"
"""Where it is, below a task's work."""
OF = "of"
"""The file beside it that says of which environment."""


def prepare(python: str, work: str) -> tuple[str, str] | tuple[()]:
    """The environment of an interpreter, and where a task's changes of it go, which is made. Empty
    where there is no virtual environment to lay anything over, or it is the task's own already.
    """
    root = Path(python).parent.parent
    if _own(root, work) or not (root / "pyvenv.cfg").is_file():
        return ()
    changes = Path(work, CHANGES)
    for name in ("upper", "work"):
        (changes / name).mkdir(parents=True, exist_ok=True)
    (changes / OF).write_text(str(root), "utf-8")
    if os.geteuid() != 0:
        _open(root, changes / "upper")
    return str(root), str(changes)


def places(python: str, work: str) -> list[str]:
    """What a task may write to of its environment, under every name."""
    root = Path(python).parent.parent
    if not _own(root, work) and not (root / "pyvenv.cfg").is_file():
        return []
    return list(dict.fromkeys([str(root), os.path.realpath(root)]))


def changed(work: str) -> bool:
    """Whether a task has changed anything of its environment."""
    return any(names for _, _, names in os.walk(Path(work, CHANGES, "upper")))


def _own(root: Path, work: str) -> bool:
    return root.is_relative_to(work)


def _open(root: Path, upper: Path) -> None:
    """Let the task's user write to directories that say that nobody may: root is not asked, others
    are.
    """
    start = len(str(root)) + 1
    upper.chmod(0o755)
    for folder, names, _ in os.walk(root):
        for name in names:
            if not os.path.islink(f"{folder}/{name}"):  # noqa: PTH114 -- paths as text: thousands
                os.mkdir(f"{upper}/{folder[start:]}/{name}", 0o755)  # noqa: PTH102 -- as above
