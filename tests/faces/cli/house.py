"""A data directory with the real program: its server, its jobs, its terminal."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from danlu.faces.cli import local

HANG_S = 60.0
"""A bound that only a hang reaches."""


class House:
    """Runs `danlu` on one data directory, in an environment of its own."""

    def __init__(self, data: Path, home: Path) -> None:
        self.data = data
        self.home = home
        self.shared = home.parent / "shared"
        """Open to every task of a server that was started with `opened`."""
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "LANG": "C.UTF-8",
            "DANLU_DATA": str(data),
        }

    def command(self, *args: str) -> list[str]:
        return [sys.executable, "-P", "-m", "danlu", *args]

    def run(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            self.command(*args),
            env={**self.env, **(env or {})},
            cwd=cwd or self.home,
            stdin=stdin,
            capture_output=True,
            timeout=HANG_S,
            check=False,
        )

    def good(self, *args: str, cwd: Path | None = None) -> str:
        """The stdout of a command that has to succeed."""
        done = self.run(*args, cwd=cwd)
        assert done.returncode == 0, (done.stderr + done.stdout[-2000:]).decode()
        return done.stdout.decode()

    def json(self, *args: str) -> Any:
        """The one JSON value that a command prints."""
        return json.loads(self.good(*args, "--json"))

    def start(self, *args: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(*args),
            env=self.env,
            cwd=cwd or self.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def script(self, text: str, name: str = "train.py") -> str:
        """A script in a directory of its own."""
        folder = self.home / f"code-{time.monotonic_ns()}"
        folder.mkdir()
        (folder / name).write_text(text, encoding="utf-8")
        return str(folder / name)

    def server_pid(self) -> int:
        pid = local.held_by(str(self.data))
        assert pid
        return pid

    def kill_server(self) -> None:
        """SIGKILL, and wait until the kernel has cleaned up."""
        pid = self.server_pid()
        process = os.pidfd_open(pid)
        signal.pidfd_send_signal(process, signal.SIGKILL)
        select.select([process], [], [], HANG_S)
        os.close(process)
        until(lambda: local.held_by(str(self.data)) is None)

    def state(self, job: str) -> str:
        return str(self.json("show", job)["state"])


class Typed:
    """A command on a terminal of its own."""

    def __init__(self, house: House, *args: str, columns: int = 100) -> None:
        primary, secondary = pty.openpty()
        fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = subprocess.Popen(
            house.command(*args),
            env={**house.env, "TERM": "xterm"},
            cwd=house.home,
            stdin=secondary,
            stdout=secondary,
            stderr=secondary,
            preexec_fn=_lead,  # noqa: PLW1509 - a terminal needs a session that it controls
        )
        os.close(secondary)
        self._primary = primary
        self.seen = b""

    def press(self, keys: bytes) -> None:
        os.write(self._primary, keys)

    def read_until(self, words: bytes) -> None:
        end = time.monotonic() + HANG_S
        while words not in self.seen:
            assert time.monotonic() < end, self.seen
            self._read(0.2)

    def finish(self) -> int:
        """The exit status, when everything is read."""
        end = time.monotonic() + HANG_S
        while self.process.poll() is None:
            assert time.monotonic() < end, self.seen
            self._read(0.05)
        while self._read(0.05):
            pass
        os.close(self._primary)
        return self.process.returncode

    def _read(self, timeout_s: float) -> bool:
        if not select.select([self._primary], [], [], timeout_s)[0]:
            return False
        with contextlib.suppress(OSError):
            data = os.read(self._primary, 65536)
            self.seen += data
            return bool(data)
        return False


def _lead() -> None:
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def until(condition: Any) -> None:
    """Wait for something that has to come."""
    end = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


@contextlib.contextmanager
def opened(root: Path, env: Mapping[str, str] | None = None) -> Iterator[House]:
    """A house with a server; both end with the block, and so do its jobs. `env` are variables of
    the server.
    """
    data, home = root / "data", root / "home 家"
    home.mkdir(parents=True)
    house = House(data, home)
    house.shared.mkdir()
    house.env["DANLU_WRITABLE_PATHS"] = str(house.shared)
    house.env.update(env or {})
    house.good("up", "--port", "0")
    try:
        yield house
    finally:
        live = "queued,placed,launching,running,stopping"
        jobs = house.good("ps", "-q", "--state", live).split()
        if jobs:
            house.run("stop", "--wait", *jobs)
        house.good("down")
