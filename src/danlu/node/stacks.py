"""Where each process of a task stands: Python's stacks by py-spy, and the kernel's view of it.

py-spy reads a process from outside, without stopping it and without its help, so a rank that is
stopped or stuck in a C library shows its stack too. It may be missing, or the system may forbid it
to look (ptrace_scope); then the kernel's view has to do, and the file says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from danlu.node.directory import TaskDirectory, open_end
from danlu.node.identity import Process
from danlu.ports import task_directory as files

PYSPY = "py-spy"
LIMIT_S = 20.0
ALL_LIMIT_S = 60.0
MOST_PROCESSES = 64
MOST_THREADS = 256
MOST_BYTES = 4 << 20
KERNEL = ("wchan", "syscall", "stack")


def record(directory: TaskDirectory, processes: Sequence[Process], packages: str = "") -> int:
    """Append where `processes` stand to the task's `stacks.txt`; of how many Python's own stack is
    there.
    """
    program = find(packages)
    until = time.monotonic() + ALL_LIMIT_S
    python = 0
    parts = [f"===== {time.strftime('%Y-%m-%d %H:%M:%S %z')} =====\n"]
    for process in processes[:MOST_PROCESSES]:
        stack, why_not = _python(program, process.pid) if time.monotonic() < until else ("", "late")
        python += bool(stack)
        parts.append(_head(process))
        parts.append(stack or f"no Python stack: {why_not}\n")
        parts.extend(_kernel(process.pid))
    with suppress(OSError):
        descriptor = open_end(directory.file(files.STACKS))
        try:
            if os.fstat(descriptor).st_size < MOST_BYTES:
                text = "".join(parts).encode("utf-8", "replace")
                os.write(descriptor, text[:MOST_BYTES])
        finally:
            os.close(descriptor)
    return python


def find(packages: str = "") -> str:
    """py-spy of the server's own environment, or of the PATH; empty where there is none."""
    if packages:
        beside = Path(packages).parents[2] / "bin" / PYSPY
        if os.access(beside, os.X_OK):
            return str(beside)
    return shutil.which(PYSPY) or ""


def _python(program: str, pid: int) -> tuple[str, str]:
    """Python's stacks of a process, or why there are none."""
    if not program:
        return "", "py-spy is not installed (pip install 'danlu[stacks]')"
    try:
        done = subprocess.run(
            [program, "dump", "--nonblocking", "--pid", str(pid)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", str(error)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return "", said[0] if said else f"py-spy ended with {done.returncode}"
    return done.stdout.decode("utf-8", "replace"), ""


def _head(process: Process) -> str:
    line = b""
    with suppress(OSError):
        line = Path(f"/proc/{process.pid}/cmdline").read_bytes()[:400].replace(b"\0", b" ")
    return f"\n--- process {process.pid} ({process.state}) {line.decode('utf-8', 'replace')}\n"


def _kernel(pid: int) -> Iterator[str]:
    """Each thread: its name and state, and where in the kernel it waits."""
    try:
        threads = sorted(os.listdir(f"/proc/{pid}/task"), key=int)  # noqa: PTH208 -- names are wanted
    except OSError:
        return
    for thread in threads[:MOST_THREADS]:
        root = f"/proc/{pid}/task/{thread}"
        state = ""
        for line in _read(f"{root}/status").splitlines():
            if line.startswith(("Name:", "State:")):
                state += f" {line.partition(':')[2].strip()}"
        yield f"thread {thread}:{state}\n"
        for name in KERNEL:
            said = _read(f"{root}/{name}").strip()
            if said and said != "0":
                yield f"  {name}: " + said.replace("\n", "\n    ") + "\n"


def _read(path: str) -> str:
    with suppress(OSError):
        return Path(path).read_bytes()[: 16 << 10].decode("utf-8", "replace")
    return ""
