"""The fixed places of a task on this machine, and the rule that nothing is put outside them."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from danlu.model.errors import Refused
from danlu.model.script import Layout
from danlu.ports import task_directory as files

RUNTIME = str(Path(__file__).resolve().parents[1] / "runtime")
"""The modules that the platform puts on the path of scripts."""

ENDPOINTS = f"{files.WORK}/home/modelarts/endpoints"
"""Where a notebook listens, below its task's directory."""

NOTEBOOK_REPORT = f"{files.WORK}/home/modelarts/.danlu-notebook/failed.json"
"""What `runtime/danlu_run_notebook` says of a notebook that it could not run to its end."""

SOCKET_NAME_BYTES = 40
"""What multiprocessing puts behind TMPDIR for its sockets (`/pymp-xxxxxxxx/listener-xxxxxxxx`)."""
SOCKET_PATH_BYTES = 107


def layout(directory: str, python: str, path: str) -> Layout:
    """Where the places of the task in `directory` lie."""
    work = f"{directory}/{files.WORK}"
    return Layout(
        home=f"{work}/home",
        cache=f"{work}/cache",
        temp=_temp(directory),
        python=python,
        path=path,
        runtime=RUNTIME,
    )


def _temp(directory: str) -> str:
    """The task's TMPDIR. A socket's path may be 107 bytes long and Python's multiprocessing puts
    sockets there, so where the directory's own path is long the place gets a short name.
    """
    own = _own_temp(directory)
    if len(own.encode()) + SOCKET_NAME_BYTES <= SOCKET_PATH_BYTES:
        return own
    digest = hashlib.sha256(directory.encode()).hexdigest()
    return f"{_short_root()}/{digest[:16]}"


def _own_temp(directory: str) -> str:
    return f"{directory}/{files.WORK}/temp"


def _short_root() -> str:
    return f"/tmp/danlu-{os.getuid()}"  # noqa: S108 -- owner and mode are checked before use


def make(places: Layout, directory: str) -> None:
    """Make the directories of a layout."""
    for path in (
        places.home,
        places.cache,
        _own_temp(directory),
        f"{places.mount}/inputs",
        f"{places.mount}/outputs",
        f"{places.mount}/log",
        f"{places.home}/work",
        places.job_dir,
    ):
        Path(path).mkdir(parents=True, exist_ok=True)
    if places.temp != _own_temp(directory):
        _link_temp(Path(places.temp), _own_temp(directory))


def _link_temp(short: Path, own: str) -> None:
    root = short.parent
    with suppress(FileExistsError):
        root.mkdir(0o700)
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise Refused("place-taken", path=root)
    short.unlink(missing_ok=True)
    short.symlink_to(own)


def inside(places: Layout, path: str) -> Path:
    """`path` if it lies below the task's home or cache; Refused where it does not, be it by its
    name or because a directory on the way is a link to elsewhere.
    """
    wanted = Path(os.path.normpath(path))
    real = wanted.resolve()
    for root in (Path(places.home), Path(places.cache)):
        if wanted.is_relative_to(root) and real.is_relative_to(root.resolve()):
            return wanted
    raise Refused("place-outside", path=path, home=places.home, cache=places.cache)


def remove_work(places: Layout, directory: str) -> None:
    """Remove the task's work, whatever its program did to the permissions. Errors are left to
    the removal of the whole task.
    """
    work = Path(directory, files.WORK)
    trash = Path(directory, f"{files.WORK}.trash")
    if places.temp != _own_temp(directory):
        with suppress(OSError):
            Path(places.temp).unlink(missing_ok=True)
    with suppress(OSError):
        work.rename(trash)
    remove_tree(trash)


def remove_tree(path: Path) -> None:
    """Remove a tree with read-only directories in it; what cannot be removed stays."""
    shutil.rmtree(path, ignore_errors=True)
    if not path.exists():
        return
    for below, directories, _ in os.walk(path):
        for directory in (Path(below), *(Path(below, name) for name in directories)):
            with suppress(OSError):
                if not directory.is_symlink():
                    directory.chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)
