"""Checks that need no torch: files, user, doors, the machine as a program finds it here."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.metadata
import os
import platform
import pwd
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from danlu_verify.checks import FAIL, PASS, SKIPPED, WARN, Check, Config, Result, numbers

SECRETS = (
    ".aws/credentials", ".docker/config.json", ".netrc", ".pypirc", ".git-credentials",
    ".config/gcloud", ".kube/config", ".ssh/id_rsa", ".ssh/id_ed25519", ".ssh/id_ecdsa",
)  # fmt: skip
LARGE, TOO_LARGE = 15 << 30, 30 << 30
ORPHAN = """\
import os, time
if os.fork() == 0:
    os.setsid()
    print(os.getpid(), flush=True)
    time.sleep(0.3)
"""


def _interpreter(config: Config) -> Result:
    found = f"{sys.version_info.major}.{sys.version_info.minor}"
    place = Path(sys.prefix).resolve()
    good = found == config["python"].rstrip("t") and place == Path(config["prefix"]).resolve()
    return (PASS if good else FAIL), f"Python {platform.python_version()} in {place}"


def _site(config: Config) -> Path:
    return next(Path(config["prefix"]).glob("lib/python3*/site-packages"))


def _installed(config: Config) -> Result:
    there = {
        re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower(): one.version
        for one in importlib.metadata.distributions(path=[str(_site(config))])
    }
    wanted = config["wheels"]
    wrong = [f"{n} {there.get(n, 'missing')} (locked {v})" for n, v in sorted(wanted.items())
             if there.get(n) != v]  # fmt: skip
    wrong += [f"{n} {v} (not locked)" for n, v in sorted(there.items()) if n not in wanted]
    return (FAIL, ", ".join(wrong)) if wrong else (PASS, f"{len(there)} packages")


def _files(config: Config) -> Result:
    site = _site(config)
    bad, count = [], 0
    for record in site.glob("*.dist-info/RECORD"):
        for row in csv.reader(record.read_text("utf-8").splitlines()):
            if len(row) < 2 or not row[1].startswith("sha256="):
                continue
            count += 1
            path = site / row[0]
            try:
                data = path.read_bytes()
            except OSError:
                bad.append(f"{row[0]} (missing)")
                continue
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            if f"sha256={digest}" != row[1]:
                bad.append(row[0])
    return (FAIL, ", ".join(bad[:5])) if bad else (PASS, f"{count} files")


def _one_cuda(config: Config) -> Result:
    suffixes = {m[1] for n in config["wheels"] if (m := re.fullmatch(r"nvidia-.*-cu(\d\d)", n))}
    found = ", ".join(f"cu{one}" for one in sorted(suffixes)) or "none"
    return (FAIL if len(suffixes) > 1 else PASS), found


def _glibc(config: Config) -> Result:
    _, found = platform.libc_ver()
    return (PASS if numbers(found) >= numbers(config["glibc"]) else FAIL), (
        f"glibc {found}, needs {config['glibc']}"
    )


def _opencv(config: Config) -> Result:
    if not any(name.startswith("opencv-") for name in config["wheels"]):
        return SKIPPED, "not in the image"
    said = subprocess.run(
        [sys.executable, "-I", "-c", "import cv2; print(cv2.__version__)"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    last = (said.stdout + said.stderr).strip().splitlines()[-1:]
    return (PASS if said.returncode == 0 else FAIL), "".join(last)


def _shm(config: Config) -> Result:
    found = os.statvfs("/dev/shm")  # noqa: S108 -- a mount is asked for, no file made
    size = found.f_blocks * found.f_frsize >> 20
    memory = config["memory_mb"] or config["shm_min_mb"]
    least = min(config["shm_min_mb"], memory)
    return (PASS if size >= least else FAIL), f"{size} MiB, needs {least}"


def _user(config: Config) -> Result:
    uid, gid = os.getuid(), os.getgid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        return FAIL, f"user {uid} has no name"
    home = Path(os.environ.get("HOME", "/"))
    _write_and_read(home)
    here = f"{name} ({uid}:{gid}), home {home}"
    if config["realisation"] == "container" and (uid, gid) != (config["uid"], config["gid"]):
        return FAIL, f"{here}; declared {config['uid']}:{config['gid']}"
    return PASS, here


def _write_and_read(folder: Path) -> None:
    path = folder / f".danlu-verify-{os.getpid()}"
    try:
        with path.open("wb") as file:
            file.write(b"danlu")
            file.flush()
            os.fsync(file.fileno())
        if path.read_bytes() != b"danlu":
            raise OSError(f"{folder} gives back other bytes")
    finally:
        if path.exists():
            path.unlink()


def _mounts(config: Config) -> Result:
    if not config["mounts"]:
        return SKIPPED, "the job has no writable places"
    for place in config["mounts"]:
        _write_and_read(Path(place))
        if config["realisation"] == "container" and not _below_mount(place):
            return FAIL, f"{place} is no mount: what is written there is lost"
    return PASS, ", ".join(config["mounts"])


def _below_mount(place: str) -> bool:
    path = Path(place)
    return any(os.path.ismount(one) for one in (path, *path.parents) if str(one) != "/")


def _first_process(_config: Config) -> Result:
    """An orphan that ends must not stay as a zombie."""
    made = subprocess.run(
        [sys.executable, "-I", "-c", ORPHAN], capture_output=True, text=True, check=True
    )
    pid = int(made.stdout.split()[0])
    first = Path("/proc/1/comm").read_text("ascii").strip()
    state = ""
    for _ in range(100):
        try:
            state = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
        except OSError:
            return PASS, f"{first} reaps"
        time.sleep(0.1)
    return FAIL, f"{first} leaves an orphan as {state}"


def _leaks(config: Config) -> Result:
    homes = (
        {Path("/root"), *Path("/home").glob("*")} if config["realisation"] == "container" else ()
    )
    found = [str(home / one) for home in homes for one in SECRETS if _there(home / one)]
    site = _site(config)
    found += [str(path) for path in _hidden(site)]
    return (FAIL, ", ".join(found[:5])) if found else (PASS, "no credentials, no .git")


def _hidden(site: Path) -> Iterator[Path]:
    for path in site.glob("*"):
        if path.name in (".git", ".netrc", ".pypirc", ".env"):
            yield path
        if path.is_dir() and (path / ".git").exists():
            yield path / ".git"


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _size(config: Config) -> Result:
    size = config["size_bytes"]
    if not size:
        return SKIPPED, "its size is not known here"
    status = FAIL if size > TOO_LARGE else WARN if size > LARGE else PASS
    return status, f"{size / (1 << 30):.1f} GiB"


SYSTEM: dict[int, Check] = {
    1: _interpreter, 2: _installed, 6: _one_cuda, 9: _glibc, 12: _opencv, 14: _shm, 16: _user,
    17: _mounts, 20: _first_process, 21: _leaks, 22: _size,
}  # fmt: skip
FILES: dict[int, Check] = {3: _files}
