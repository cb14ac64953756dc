"""A server of the tests ends when the tests are killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.faces.cli.house import until
from tests.services import ROOT

KILLED = """
import os, signal, subprocess
from tests.seaweed import die_with
child = subprocess.Popen(["sleep", "600"], preexec_fn=die_with(os.getpid()))
print(child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_server_ends_with_the_process_that_started_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED], cwd=ROOT, stdout=subprocess.PIPE, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL
    pid = int(done.stdout)
    until(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except FileNotFoundError:
        return False
