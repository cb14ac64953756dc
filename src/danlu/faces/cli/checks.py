"""The checks of `danlu doctor`: each looks at one thing and says ok, warn or fail, and why."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from danlu import __version__
from danlu.faces.cli import local, starting, view
from danlu.faces.cli.client import connection
from danlu.faces.cli.failure import Failure
from danlu.faces.cli.http import HttpError
from danlu.faces.cli.machine import Machine
from danlu.faces.cli.probe import Torch

OK, WARN, FAIL = "ok", "warn", "fail"
GIB = 1 << 30
SIGNALS_SINCE = 6
"""The version of Landlock from which on it also keeps signals inside."""
NETWORK = (
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "fuse.sshfs",
    "9p",
    "lustre",
    "beegfs",
    "ceph",
    "glusterfs",
)

NEEDS_DRIVER = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
"""The oldest driver for each CUDA major version (NVIDIA's CUDA compatibility guide)."""


class Check(NamedTuple):
    """One row: the check's name, its level, and the key of what was found with its values."""

    name: str
    level: str
    key: str
    params: dict[str, Any]


class Gpus(NamedTuple):
    """The models that tasks would get, how many more do not answer, and why there are none."""

    models: tuple[str, ...] = ()
    unreachable: int = 0
    reason: str = ""


class Groups(NamedTuple):
    """The control groups that tasks would get: the version that is mounted, the version that may
    be used (0 = none), and the limits that can be enforced.
    """

    present: int = 0
    version: int = 0
    held: tuple[str, ...] = ()


class Isolation(NamedTuple):
    """Who may make namespaces (`root`, `user`, or nobody, and then what the kernel said), and the
    version of Landlock (0 = none).
    """

    namespaces: str = ""
    problem: str = ""
    landlock: int = 0


class Unfit(NamedTuple):
    """GPUs for which the jobs' torch has no kernels, what it has, and what would do."""

    gpus: str
    has: str
    fix: str


class Objects(NamedTuple):
    """Where objects are kept (nothing = in the data directory), and why that cannot be used."""

    endpoint: str = ""
    problem: str = ""


class Containers(NamedTuple):
    """The container runtime: whether jobs run in it, why it cannot be used (empty = it can), what
    it is, what it does not hold tasks to, how it is asked for GPUs (empty = it cannot be), and
    whether containers outlive its service.
    """

    wanted: bool = False
    problem: str = ""
    version: str = ""
    unenforced: tuple[str, ...] = ()
    gpu_driver: str = ""
    keeps: bool = True


class Runtimes(NamedTuple):
    """What makes containers here, with its version, and the ids of its known holes."""

    versions: tuple[tuple[str, str], ...] = ()
    holes: tuple[str, ...] = ()


class Examined(NamedTuple):
    """What the checks look at."""

    machine: Machine
    data: Path
    python: Path
    torch: Torch
    host: str
    port: int
    gpus: Gpus = Gpus()
    groups: Groups = Groups()
    isolation: Isolation = Isolation()
    unfit: Unfit | None = None
    objects: Objects = Objects()
    datasets: tuple[int, int, int] = (0, 0, 0)
    """How many data sets stay on this machine, their size, and the most there may be, in bytes."""
    containers: Containers = Containers()
    runtimes: Runtimes = Runtimes()


def every(examined: Examined) -> Iterator[Check]:
    """All checks, in the order in which a person would look."""
    for check in CHECKS:
        yield check(examined)


def system(examined: Examined) -> Check:
    """Linux, new enough for pidfd."""
    machine = examined.machine
    if machine.system != "Linux":
        return Check("system", WARN, "system.other", {"system": machine.system})
    old = not hasattr(os, "pidfd_open")
    if not old:
        try:
            os.close(os.pidfd_open(os.getpid()))
        except OSError:
            old = True
    key = "system.old" if old else "system.kernel"
    return Check("system", FAIL if old else OK, key, {"release": machine.kernel})


def python(_examined: Examined) -> Check:
    """The interpreter of this program."""
    found = f"{sys.version.split()[0]} ({sys.executable})"
    return Check("python", OK, "plain", {"found": found})


def environment(examined: Examined) -> Check:
    """The interpreter of jobs that name no environment."""
    found = examined.torch
    if not examined.python.exists():
        return Check("environment", FAIL, "environment.missing", {"path": examined.python})
    if found.problem:
        params = {"path": examined.python, "detail": found.problem}
        return Check("environment", FAIL, "environment.broken", params)
    return Check("environment", OK, "plain", {"found": f"{found.python} ({examined.python})"})


def torch(examined: Examined) -> Check:
    """PyTorch in that environment."""
    found = examined.torch
    if not found.version:
        return Check("torch", WARN, "torch.missing", {"path": examined.python})
    params = {"version": found.version, "cuda": found.cuda}
    return Check("torch", OK, "torch.cuda" if found.cuda else "torch.cpu", params)


def driver(examined: Examined) -> Check:
    """NVIDIA's driver, where there is a GPU."""
    version = examined.machine.driver()
    if version:
        return Check("driver", OK, "plain", {"found": version})
    count = examined.machine.nvidia_devices()
    if count:
        return Check("driver", FAIL, "driver.missing", {"count": count})
    return Check("driver", OK, "driver.none", {})


def cuda(examined: Examined) -> Check:
    """Whether driver, GPUs and torch's CUDA fit, with the versions named."""
    version, found = examined.machine.driver(), examined.torch
    params = {"driver": version, "cuda": found.cuda, "version": found.version}
    if version is None:
        return Check("cuda", OK, "cuda.none", {})
    if not found.version:
        return Check("cuda", WARN, "cuda.unknown", params)
    if not found.cuda:
        return Check("cuda", FAIL, "cuda.cpu-build", params)
    needs = NEEDS_DRIVER.get(int(found.cuda.partition(".")[0]), "0")
    if _numbers(version) < _numbers(needs):
        return Check("cuda", FAIL, "cuda.old", {**params, "needs": needs})
    if examined.unfit is not None:
        return Check("cuda", FAIL, "cuda.no-kernels", {**params, **examined.unfit._asdict()})
    if not found.available:
        return Check("cuda", FAIL, "cuda.unavailable", params)
    return Check("cuda", OK, "cuda.fits", params)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def gpus(examined: Examined) -> Check:
    """The GPUs that tasks would get."""
    found = examined.gpus
    counted = [f"{found.models.count(model)} × {model}" for model in dict.fromkeys(found.models)]
    params = {"found": ", ".join(counted) or "-", "count": found.unreachable}
    if found.unreachable:
        return Check("gpus", FAIL, "gpus.unreachable", params)
    if counted:
        return Check("gpus", OK, "plain", params)
    if examined.machine.driver():
        return Check("gpus", FAIL, "gpus.lost", {"reason": found.reason})
    return Check("gpus", OK, "gpus.none", {})


def cpus(examined: Examined) -> Check:
    """CPUs that may be used."""
    usable, everything = examined.machine.cpus()
    return Check("cpus", OK, "cpus.found", {"usable": f"{usable:g}", "all": everything})


def memory(examined: Examined) -> Check:
    """Memory of the machine, or of the cgroup that holds us."""
    found = examined.machine.memory()
    if found is None:
        return Check("memory", WARN, "plain", {"found": "?"})
    total, free = found
    low = free < GIB
    params = {"total": view.size(total), "free": view.size(free)}
    return Check("memory", WARN if low else OK, "memory.low" if low else "memory.found", params)


def limits(_examined: Examined) -> Check:
    """Open files and processes that this user may have."""
    try:
        import resource
    except ImportError:  # not a Unix
        return Check("limits", OK, "plain", {"found": "-"})
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    infinity = resource.RLIM_INFINITY
    low = (files != infinity and files < 4096) or (processes != infinity and processes < 512)
    params = {
        "files": "∞" if files == infinity else files,
        "processes": "∞" if processes == infinity else processes,
    }
    return Check("limits", WARN if low else OK, "limits.low" if low else "limits.found", params)


def shm(examined: Examined) -> Check:
    """Shared memory: what DataLoader's workers hand batches over with."""
    if not examined.machine.exists("/dev/shm"):  # noqa: S108 - a mount is asked for, no file made
        return Check("shm", WARN, "shm.missing", {})
    total = shutil.disk_usage("/dev/shm").total  # noqa: S108 - as above
    params = {"size": view.size(total), "found": view.size(total)}
    return Check(
        "shm", WARN if total < GIB else OK, "shm.small" if total < GIB else "plain", params
    )


def data(examined: Examined) -> Check:
    """The data directory: ours to write, nobody else's to read, on a local disk."""
    path = examined.data
    there = _existing(path)
    params = {"path": path, "found": path}
    if not os.access(there, os.W_OK | os.X_OK):
        return Check("data", FAIL, "data.unwritable", params)
    kind = examined.machine.file_system(there.resolve())
    if kind in NETWORK:
        return Check("data", WARN, "data.network", {**params, "kind": kind})
    if there != path:
        return Check("data", OK, "data.new", params)
    if os.name == "posix" and path.stat().st_mode & 0o077:
        return Check("data", WARN, "data.open", params)
    return Check("data", OK, "plain", params)


def objects(examined: Examined) -> Check:
    """Where objects are kept, and whether it answers."""
    endpoint, problem = examined.objects
    if problem:
        return Check("objects", FAIL, "objects.trouble", {"detail": problem})
    if endpoint:
        return Check("objects", OK, "objects.s3", {"endpoint": endpoint})
    return Check("objects", OK, "objects.folder", {})


def disk(examined: Examined) -> Check:
    """Space and inodes where the data lies."""
    found = os.statvfs(_existing(examined.data))
    free, total = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    # File systems without a fixed number of inodes say 0 of 0.
    short = found.f_files > 0 and found.f_favail < 10_000
    params = {
        "free": view.size(free),
        "total": view.size(total),
        "inodes": found.f_favail if found.f_files else "∞",
    }
    if free < GIB or short:
        return Check("disk", FAIL, "disk.low", params)
    low = free < 5 * GIB
    return Check("disk", WARN if low else OK, "disk.low" if low else "disk.found", params)


def datasets(examined: Examined) -> Check:
    """What stays for the next job that reads it."""
    count, size, limit = examined.datasets
    params = {"count": count, "size": view.size(size), "limit": view.size(limit)}
    return Check("datasets", OK, "datasets.kept" if limit else "datasets.off", params)


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def clock(examined: Examined) -> Check:
    """Not before what was written already: certificates, signatures and ages depend on it."""
    now = time.time()
    newest, file = 0.0, Path()
    for candidate in (
        Path(__file__),
        examined.data / local.LOG_FILE,
        examined.data / "danlu.sqlite",
    ):
        if candidate.exists() and candidate.stat().st_mtime > newest:
            newest, file = candidate.stat().st_mtime, candidate
    shown = view.instant(int(now * 1000))
    if newest > now + 60:
        params = {"now": shown, "newest": view.instant(int(newest * 1000)), "file": file.name}
        return Check("clock", FAIL, "clock.behind", params)
    return Check("clock", OK, "plain", {"found": shown})


def cgroup(examined: Examined) -> Check:
    """Whether limits can be enforced."""
    found = examined.groups
    missing = [name for name in ("memory", "cpu", "pids") if name not in found.held]
    params = {"version": found.version or found.present, "missing": ", ".join(missing)}
    if not found.present:
        return Check("cgroup", WARN, "cgroup.none", params)
    if not found.version:
        return Check("cgroup", WARN, f"cgroup.closed-v{found.present}", params)
    key = "cgroup.partly" if missing else "cgroup.held"
    return Check("cgroup", WARN if missing else OK, key, params)


def namespaces(examined: Examined) -> Check:
    """Whether tasks get a view of files and processes of their own."""
    found = examined.isolation
    if found.namespaces:
        return Check("namespaces", OK, f"namespaces.{found.namespaces}", {})
    forbidden = examined.machine.no_namespaces()
    if forbidden is None:
        return Check("namespaces", WARN, "namespaces.failed", {"detail": found.problem})
    params = {"setting": forbidden[0], "value": forbidden[1]}
    return Check("namespaces", WARN, "namespaces.no", params)


def landlock(examined: Examined) -> Check:
    """Whether tasks can be kept from other files and processes."""
    found = examined.isolation
    params = {"version": found.landlock}
    if not found.landlock:
        return Check("landlock", WARN, "landlock.none", params)
    # In a namespace of its own a task sees no process that it could signal.
    whole = found.landlock >= SIGNALS_SINCE or bool(found.namespaces)
    key = "landlock.all" if whole else "landlock.files"
    return Check("landlock", OK if whole else WARN, key, params)


def containers(examined: Examined) -> Check:
    """The container runtime, where jobs run in it."""
    found = examined.containers
    params = {"detail": found.problem, "version": found.version}
    if not found.wanted:
        return Check("containers", OK, "containers.unused", params)
    if found.problem:
        return Check("containers", FAIL, "containers.none", params)
    if found.unenforced:
        missing = ", ".join(found.unenforced)
        return Check("containers", WARN, "containers.partly", {**params, "missing": missing})
    if examined.gpus.models and not found.gpu_driver:
        return Check("containers", FAIL, "containers.no-gpus", params)
    if not found.keeps:
        return Check("containers", WARN, "containers.fleeting", params)
    return Check("containers", OK, "containers.held", params)


def runtimes(examined: Examined) -> Check:
    """Versions of container programs with known holes; a warning where jobs depend on them."""
    found = examined.runtimes
    shown = ", ".join(f"{name} {version}" for name, version in found.versions)
    params = {"found": shown, "holes": ", ".join(found.holes)}
    if not found.versions:
        return Check("runtimes", OK, "runtimes.none", params)
    if not found.holes:
        return Check("runtimes", OK, "plain", params)
    level = WARN if examined.containers.wanted else OK
    return Check("runtimes", level, "runtimes.holes", params)


def locale(examined: Examined) -> Check:
    """File names in UTF-8."""
    encoding = examined.machine.encoding().lower()
    good = encoding in ("utf-8", "utf8")
    key = "locale.found" if good else "locale.other"
    return Check("locale", OK if good else WARN, key, {"encoding": encoding})


def server(examined: Examined) -> Check:
    """The local server, if it runs: answering, and of our version."""
    text = str(examined.data)
    ready = local.read_ready(text)
    if ready is None or local.held_by(text) is None:
        return Check("server", OK, "server.down", {})
    params = {"api": ready["api"], "version": ready.get("version", "?"), "own": __version__}
    try:
        door = connection(local.endpoint(ready, text))
        answer = door.request("GET", "/danlu/v1/health", timeout_s=5)
        answer.read(1 << 16)
        door.close()
    except (HttpError, Failure) as error:
        return Check("server", FAIL, "server.silent", {**params, "detail": error})
    if params["version"] not in ("?", __version__):
        return Check("server", WARN, "server.version", params)
    return Check("server", OK, "server.up", params)


def port(examined: Examined) -> Check:
    """The port that a server here would take."""
    params = {"port": f"{examined.host}:{examined.port}"}
    if starting.free(examined.host, examined.port):
        return Check("port", OK, "port.free", params)
    own = local.read_ready(str(examined.data))
    alive = own is not None and local.held_by(str(examined.data)) is not None
    if own is not None and alive and urlsplit(own["api"]).port == examined.port:
        return Check("port", OK, "port.own", params)
    return Check("port", WARN, "port.taken", params)


CHECKS: tuple[Callable[[Examined], Check], ...] = (
    system, python, environment, torch, driver, cuda, gpus, cpus, memory, limits, shm, data,
    objects, disk, datasets, clock, cgroup, namespaces, landlock, containers, runtimes, locale,
    server, port,
)  # fmt: skip
