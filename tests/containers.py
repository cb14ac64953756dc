"""A real podman for the tests: its service on a socket of its own, its storage in a place that is
kept between runs, and a small Debian with Python to run.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from danlu.node.container.api import Api, RuntimeAway
from tests.services import offered, require

PROGRAMS = ("podman", "runc", "debootstrap", "iptables")
HOW = "containers: apt-get install podman runc debootstrap iptables netavark"
PACKAGES = "python3-minimal,libpython3-stdlib,python3-venv"
SUITE = "bookworm"
LEFT_OUT = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "var/cache/apt",
    "var/lib/apt/lists",
)
START_S = 60.0
CONF = """\
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
"""
"""What podman needs where there is no systemd, and where even root may not raise its limits."""


def cache() -> Path:
    """Where the image and podman's storage are kept between runs."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "danlu-tests" / "containers"


class Podman:
    """A service of podman, which tests may kill and start again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._conf = folder / "containers.conf"
        self._conf.write_text(CONF, "ascii")
        self.socket = str(folder / "podman.sock")
        self.image = f"localhost/danlu-test:{recipe()}"
        self.facts: dict[str, bytes] = {}
        """What engines have found out about images, by the name of its file."""
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the service, and wait until it answers."""
        with (self._folder / "service.log").open("ab") as said:
            self._process = subprocess.Popen(
                [*self._command(), "system", "service", "--time=0", f"unix://{self.socket}"],
                env=self._environment(),
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        end = time.monotonic() + START_S
        while not self.answers():
            assert time.monotonic() < end, "podman's service does not start"
            time.sleep(0.05)

    def answers(self) -> bool:
        """Whether the service lives."""
        try:
            Api(self.socket).call("GET", "/version")
        except RuntimeAway:
            return False
        return True

    def kill(self) -> None:
        """SIGKILL to the service, and to nothing else."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None
        with contextlib.suppress(FileNotFoundError):
            Path(self.socket).unlink()

    def run(self, *arguments: str) -> str:
        """What podman's command line prints."""
        return subprocess.run(
            [*self._command(), *arguments],
            env=self._environment(),
            check=True,
            capture_output=True,
            text=True,
        ).stdout

    def prepare(self) -> None:
        """Have the image, made if it is not kept from an earlier run."""
        storage = cache()
        storage.mkdir(mode=0o700, parents=True, exist_ok=True)
        with (storage / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            found = subprocess.run(
                [*self._command(), "image", "exists", self.image],
                env=self._environment(),
                check=False,
            )
            if found.returncode != 0:
                archive = _archive(storage)
                self.run("import", str(archive), self.image)

    def tried(self) -> str:
        """What podman itself says against running a container here, if anything."""
        command = [*self._command(), "run", "--rm", "--network=bridge", self.image, "true"]
        found = subprocess.run(
            command, env=self._environment(), check=False, capture_output=True, text=True
        )
        return "" if found.returncode == 0 else found.stderr.strip()[-500:]

    def variables(self) -> dict[str, str]:
        """What has a podman of somebody else's use this one's storage."""
        file = self._folder / "storage.conf"
        kept, run = cache() / "storage", cache() / "run"
        told = f'driver = "overlay"\ngraphroot = "{kept}"\nrunroot = "{run}"\n'
        file.write_text(f"[storage]\n{told}", "utf-8")
        return {"CONTAINERS_CONF": str(self._conf), "CONTAINERS_STORAGE_CONF": str(file)}

    def _environment(self) -> dict[str, str]:
        # The command says it all: with both, podman waits for ends that it does not hear of.
        found = {name: v for name, v in os.environ.items() if name != "CONTAINERS_STORAGE_CONF"}
        return {**found, "CONTAINERS_CONF": str(self._conf)}

    def _command(self) -> list[str]:
        kept = cache() / "storage"
        run = cache() / "run"
        return ["podman", "--root", str(kept), "--runroot", str(run), "--tmpdir", f"{run}/libpod"]


def recipe() -> str:
    """What the image is made of, as a short digest."""
    return hashlib.sha256(f"{SUITE} {PACKAGES} {LEFT_OUT}".encode()).hexdigest()[:12]


def _archive(folder: Path) -> Path:
    """The file system of the image, debootstrapped once."""
    archive = folder / f"{SUITE}-{recipe()}.tar"
    if archive.exists():
        return archive
    with tempfile.TemporaryDirectory(prefix="danlu-base-", dir=folder) as made:
        root = Path(made) / "root"
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        for name in LEFT_OUT:
            shutil.rmtree(root / name, ignore_errors=True)
        whole = Path(made) / "whole.tar"
        with tarfile.open(whole, "w") as tar:
            tar.add(root, ".", filter=_kept)
        whole.rename(archive)
    return archive


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if entry.isdev() else entry


@pytest.fixture(scope="session")
def podman() -> Iterator[Podman]:
    """A running service of podman with an image to run. Skipped at home where podman is not
    installed, or who tests is not root.
    """
    offered(os.geteuid() == 0, "podman as root")
    require(all(shutil.which(one) for one in PROGRAMS), HOW)
    folder = Path(tempfile.mkdtemp(prefix="danlu-podman-"))
    made = Podman(folder)
    try:
        made.prepare()
        problem = made.tried()
        offered(not problem, f"a container of podman ({problem})")
        made.start()
        yield made
    finally:
        made.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__" and os.geteuid() == 0 and all(shutil.which(one) for one in PROGRAMS):
    with tempfile.TemporaryDirectory() as name:
        Podman(Path(name)).prepare()
