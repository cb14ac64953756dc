#!/usr/bin/env python3
"""Makes a virtual environment with PyTorch, NumPy and scikit-learn: torch_env.py DIRECTORY.

Runs under the system's Python with the standard library alone. Says what will be downloaded, and
how large it is, before anything is. Takes a CUDA build only where an NVIDIA driver is found, so
that a laptop never pays gigabytes for libraries that it cannot use. A second run finds the stamp
and does nothing; an interrupted one left no stamp and is done again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TORCH = "2.13.0"
REST = ("numpy>=2", "scikit-learn>=1.7")
STAMP = ".danlu-stamp.json"
STAMP_FORMAT = 1
INDEX = "https://download.pytorch.org/whl"
# The oldest driver branch that runs each build. Below the last, this PyTorch cannot use the GPU.
CUDA_BUILDS = ((580, "cu130"), (525, "cu126"))
# An installed set against its wheels, for remote files. CUDA's libraries compress to a half.
INSTALLED = 5
INSTALLED_CUDA = 2.2
# What is unpacked against what is installed: pip compiles the modules, a quarter more was measured.
COMPILED = 1.25
# The first pip whose dry run reads metadata alone and leaves the wheels where they are.
PIP_NEEDED = (24, 1)
OFFLINE = re.compile(
    r"NameResolution|name resolution|Failed to resolve|NewConnectionError|ConnectTimeout|timed out"
    r"|Network is unreachable|ProxyError|Connection refused"
)


class Failure(Exception):
    """What went wrong and what to do about it, for a person."""


@dataclass(frozen=True)
class Item:
    """One file that the environment needs."""

    name: str
    version: str
    url: str

    @property
    def path(self) -> Path | None:
        parts = urllib.parse.urlsplit(self.url)
        return Path(urllib.request.url2pathname(parts.path)) if parts.scheme == "file" else None

    @property
    def requirement(self) -> str:
        # A file on disk is named as such: another source may offer its version in another build.
        return f"{self.name} @ {self.url}" if self.path else f"{self.name}=={self.version}"


@dataclass(frozen=True)
class Plan:
    """What to install, from where."""

    items: tuple[Item, ...]
    options: tuple[str, ...]
    why: str

    @property
    def torch(self) -> str:
        return next(item.version for item in self.items if item.name == "torch")

    @property
    def cuda(self) -> bool:
        return any(item.name.startswith(("nvidia-", "cuda-", "triton")) for item in self.items)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def size_text(size: int) -> str:
    for unit, scale in (("GB", 10**9), ("MB", 10**6)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}" if size < 100 * scale else f"{size // scale} {unit}"
    return f"{max(size // 1000, 1)} kB"


# ---------------------------------------------------------------- the machine


def driver_branch(root: Path = Path("/")) -> int | None:
    """The major version of the NVIDIA driver; 0 where it is there but does not say."""
    for file in ("sys/module/nvidia/version", "proc/driver/nvidia/version"):
        try:
            text = (root / file).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        found = re.search(r"\b(\d{3,4})\.\d+", text)
        return int(found[1]) if found else 0
    program = shutil.which("nvidia-smi")
    if not program:
        return None
    try:
        query = [program, "--query-gpu=driver_version", "--format=csv,noheader"]
        answer = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None  # a tool without a driver behind it, as container images have
    found = re.match(r"(\d+)\.", answer.stdout)
    return int(found[1]) if found else 0


def cuda_build(branch: int | None) -> str | None:
    if branch is None:
        return None
    return next((build for oldest, build in CUDA_BUILDS if branch == 0 or branch >= oldest), None)


# ---------------------------------------------------------------- pip


def pip(python: Path, *args: str, show: bool = False) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", *args]
    if show and sys.stderr.isatty():
        return subprocess.run(command, stdout=sys.stderr.fileno(), check=False, text=True)
    return subprocess.run(command, capture_output=True, check=False, text=True, errors="replace")


def resolve(python: Path, wanted: list[str], options: tuple[str, ...]) -> tuple[list[Item], str]:
    """What pip would install, by its own settings; nothing and pip's words if it would not."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        args = ("install", "--dry-run", "--ignore-installed", "--report", str(report))
        done = pip(python, *args, "--retries", "2", *options, *wanted)
        if done.returncode:
            return [], done.stderr
        found: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    items = [
        Item(
            entry["metadata"]["name"].lower().replace("_", "-"),
            entry["metadata"]["version"],
            entry["download_info"]["url"],
        )
        for entry in found["install"]
    ]
    return items, ""


def attempts(
    python: Path, build: str | None, index: str
) -> Iterator[tuple[list[str], tuple[str, ...]]]:
    """Requirements and pip options to try, the best first."""
    plain = f"torch=={TORCH}"
    if not sys.platform.startswith("linux"):
        yield [plain], ()  # no other build is published
        return
    if build:
        if build == CUDA_BUILDS[0][1]:
            yield [plain], ()  # what the package index itself offers
        yield [f"{plain}+{build}"], ("--extra-index-url", f"{index}/{build}")
    # A file in pip's find-links, or a mirror: no index is asked for PyTorch's large default build.
    local, _ = resolve(python, [plain], ("--no-index", "--no-deps"))
    if local:
        yield [local[0].requirement], ()
    yield [f"{plain}+cpu"], ("--extra-index-url", f"{index}/cpu")


def make_plan(python: Path, branch: int | None, index: str) -> Plan:
    build = cuda_build(branch)
    words = ""
    for torch, options in attempts(python, build, index):
        items, refusal = resolve(python, [*torch, *REST], options)
        words += refusal
        if not items:
            continue
        plan = Plan(tuple(items), options, reason(branch, build))
        if plan.cuda == bool(build) or not sys.platform.startswith("linux"):
            return plan
        if not plan.cuda and torch[0] != f"torch=={TORCH}":
            return Plan(plan.items, options, f"no {build} build can be reached from here")
    raise Failure(explain(words))


def reason(branch: int | None, build: str | None) -> str:
    if branch is None:
        return "no NVIDIA driver found"
    if build is None:
        return f"the NVIDIA driver {branch} is older than {CUDA_BUILDS[-1][0]}"
    return f"NVIDIA driver {branch or 'of unknown version'}"


def explain(words: str) -> str:
    last = next((s for s in reversed(words.splitlines()) if s.startswith("ERROR")), "")
    if OFFLINE.search(words):
        return (
            "the package index or PyTorch's index cannot be reached. Connect this machine (or set"
            " HTTPS_PROXY), or fetch the files elsewhere with `pip download torch"
            f"=={TORCH}+cpu numpy scikit-learn --extra-index-url {INDEX}/cpu` and say"
            " PIP_FIND_LINKS=/that/directory"
        )
    if "No space left" in words:
        return "the disk is full. Free some space, or set TMPDIR to a larger disk"
    version = "%d.%d" % sys.version_info[:2]  # noqa: UP031  # the short form of a tuple
    return (
        f"pip found no PyTorch {TORCH} for Python {version} on this machine"
        f"{': ' + last.removeprefix('ERROR: ') if last else ''}. Try another interpreter:"
        " make PYTHON=python3.12 ..."
    )


# ---------------------------------------------------------------- sizes


def remote_size(url: str) -> int | None:
    cafile = os.environ.get("PIP_CERT") or os.environ.get("REQUESTS_CA_BUNDLE")
    try:
        context = ssl.create_default_context(cafile=cafile)
        request = urllib.request.Request(url, method="HEAD")  # noqa: S310  # pip chose the address
        with urllib.request.urlopen(request, timeout=15, context=context) as answer:  # noqa: S310  # as above
            length = answer.headers.get("Content-Length")
    except (OSError, ValueError):
        return None
    return int(length) if length and length.isdigit() else None


def local_size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def unpacked_size(path: Path) -> int:
    with zipfile.ZipFile(path) as wheel:
        return sum(info.file_size for info in wheel.infolist())


def list_group(title: str, sizes: dict[Item, int | None]) -> None:
    if not sizes:
        return
    small = {item: size for item, size in sizes.items() if size is not None and size < 10**6}
    say(f"  {title}:")
    for item, size in sorted(sizes.items(), key=lambda pair: -(pair[1] or 0)):
        if item in small:
            continue
        place = item.path or urllib.parse.urlsplit(item.url).hostname
        text = "size unknown" if size is None else size_text(size)
        say(f"    {text:>12}  {item.name} {item.version}  ({place})")
    if small:
        total = size_text(sum(size or 0 for size in small.values()))
        say(f"    {total:>12}  {len(small)} small packages")


def announce(plan: Plan, folder: Path) -> None:
    """Tell what will be fetched and taken, and refuse where it cannot fit."""
    remote = [item for item in plan.items if item.path is None]
    with ThreadPoolExecutor(8) as pool:
        down = dict(zip(remote, pool.map(remote_size, (i.url for i in remote)), strict=True))
    disk = {item: local_size(item.path) for item in plan.items if item.path}
    kind = "CUDA build" if plan.cuda else "CPU build"
    say(f"danlu: PyTorch {plan.torch} ({kind}: {plan.why}) for {folder}")
    list_group("to download", down)
    list_group("from this disk", disk)

    fetched = sum(size or 0 for size in down.values())
    unpacked = sum(unpacked_size(item.path) for item in disk if item.path)
    room = int(unpacked * COMPILED + fetched * (INSTALLED_CUDA if plan.cuda else INSTALLED))
    unknown = "" if all(down.values()) else " and what is of unknown size"
    say(
        f"  in all {size_text(fetched) if fetched else 'nothing'} to download{unknown},"
        f" about {size_text(room)} on disk in the end"
    )
    check_room(folder, room, fetched)


def check_room(folder: Path, room: int, fetched: int) -> None:
    temporary = Path(tempfile.gettempdir())
    same = temporary.stat().st_dev == folder.stat().st_dev
    needs = (
        (folder, room + fetched, "another place"),
        (temporary, fetched, "TMPDIR to a larger disk"),
    )
    for place, need, remedy in needs[: 1 if same else 2]:
        free = shutil.disk_usage(place).free
        if free < need:
            raise Failure(
                f"{place} has {size_text(free)} free, but {size_text(need)} are needed."
                f" Free some space, or choose {remedy}"
            )


# ---------------------------------------------------------------- the environment


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Two runs for one place take turns; the lock is on its parent, so nothing is left over."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    place = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)


def python_in(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def is_done(folder: Path, wanted: dict[str, object]) -> bool:
    try:
        stamp = json.loads((folder / STAMP).read_text(encoding="utf-8"))
        works = subprocess.run([python_in(folder), "-c", ""], check=False).returncode == 0
    except (OSError, ValueError):
        return False
    return works and stamp.get("wanted") == wanted


def make_venv(folder: Path) -> Path:
    if folder.exists() and any(folder.iterdir()) and not (folder / "pyvenv.cfg").exists():
        raise Failure(f"{folder} is not empty and no virtual environment. Name another directory")
    (folder / STAMP).unlink(missing_ok=True)
    command = [sys.executable, "-m", "venv", "--clear", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise Failure(
            f"cannot make a virtual environment at {folder}: {words[-1]}."
            " On Debian and Ubuntu: apt-get install python3-venv"
        )
    python = python_in(folder)
    version = pip(python, "--version").stdout.split()
    if tuple(int(part) for part in version[1].split(".")[:2]) < PIP_NEEDED:
        say("danlu: a newer pip first, for a dry run that downloads nothing (2 MB)")
        needed = ".".join(map(str, PIP_NEEDED))
        done = pip(python, "install", "--quiet", "--upgrade", f"pip>={needed}")
        if done.returncode:
            raise Failure(explain(done.stderr))
    return python


def make(folder: Path, index: str) -> None:
    branch = driver_branch()
    wanted: dict[str, object] = {
        "format": STAMP_FORMAT,
        "python": "%d.%d" % sys.version_info[:2],  # noqa: UP031  # the short form of a tuple
        "requirements": [f"torch=={TORCH}", *REST],
        "build": cuda_build(branch) or "cpu",
    }
    if is_done(folder, wanted):
        return
    python = make_venv(folder)
    plan = make_plan(python, branch, index)
    announce(plan, folder)
    requirements = [item.requirement for item in plan.items]
    done = pip(python, "install", "--no-deps", *plan.options, *requirements, show=True)
    if done.returncode:
        raise Failure(explain(done.stderr or ""))
    check = "import numpy, sklearn, torch; print(torch.__version__)"
    proof = subprocess.run([python, "-c", check], capture_output=True, text=True, check=False)
    if proof.returncode:
        raise Failure(
            f"PyTorch is installed at {folder} but does not start: {proof.stderr.strip()}"
        )
    fresh = folder / f"{STAMP}.tmp"
    fresh.write_text(
        json.dumps({"wanted": wanted, "torch": proof.stdout.strip()}), encoding="utf-8"
    )
    fresh.replace(folder / STAMP)
    say(f"danlu: {folder} is ready (PyTorch {proof.stdout.strip()})")


def main() -> int:
    parser = argparse.ArgumentParser(description="Make a virtual environment with PyTorch.")
    parser.add_argument("directory", type=Path)
    parser.add_argument(
        "--index",
        default=os.environ.get("DANLU_TORCH_INDEX", INDEX),
        help="where PyTorch's builds are, for mirrors (DANLU_TORCH_INDEX; default: %(default)s)",
    )
    options = parser.parse_args()
    folder = options.directory.absolute()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with alone(folder.parent):
            make(folder, options.index)
    except Failure as failure:
        say(f"danlu: {failure}.")
        return 1
    except OSError as error:
        say(f"danlu: {error}. Check that the place can be written and has room.")
        return 1
    except KeyboardInterrupt:
        say("danlu: stopped; the next run starts again.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
