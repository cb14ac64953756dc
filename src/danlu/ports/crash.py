"""Named points before and after each side effect, at which the kill harness ends the process.

A point does nothing unless DANLU_CRASH_POINTS named a directory when the process was started. A
file of that directory, called as the point, then holds orders, one a line. Each process that
passes the point takes the first line off and carries it out:

| order | what happens |
|---|---|
| `kill` | the process kills itself with SIGKILL |
| `stop` | it stops itself with SIGSTOP, until somebody sends SIGCONT |
| `delay 0.5` | it waits so many seconds |
| `pass` | nothing: the next one to pass finds the next order |

Every order taken is written to the file `hits` there: point, process, order, and the task
directory that the point is about.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress

VARIABLE = "DANLU_CRASH_POINTS"
HITS = "hits"
ORDERS_BYTES = 64 << 10

POINTS: Mapping[str, str] = {
    # the server
    "submit.before-commit": "the rows of a new job are written, the commit is not",
    "submit.after-commit": "a new job is on disk, its client has no answer",
    "records.before-commit": "a group of writes is made, the commit is not",
    "records.after-commit": "a group of writes is on disk, nobody has been told",
    "place.granted": "places are granted, the moves wait for the writer",
    "launch.after-commit": "*launching* is on disk, the engine has not been called",
    "fence.before-mark": "nothing of an earlier attempt lives, it is not marked as over",
    "fence.after-mark": "an earlier attempt can no longer begin, the next one has not begun",
    "launch.before-publish": "a task's plan is written, its directory is not under its name",
    "launch.after-publish": "the task directory is there, no agent has been asked for",
    "launch.after-handover": "an agent has the directory, the server has not noted it",
    "launch.after-spawn": "the engine has launched the whole attempt",
    "observe.before-commit": "a change was seen, its move waits for the writer",
    "finish.before-commit": "an attempt's end is decided, its move waits for the writer",
    "retry.before-commit": "an end and the attempt that follows it wait for the writer",
    "turn.after-commit": "everything that one turn of the loop found is on disk",
    "stop.after-commit": "a user's stop is on disk, the loop does not know",
    "stop.before-order": "*stopping* is on disk, the engine has not been called",
    "stop.after-order": "the engine was told to stop the task",
    "remove.before-end": "a task is to be removed, nothing of it is ended",
    "remove.after-end": "a task is ended, its directory is still there",
    "sweep.before-forget": "a deleted job's tasks are removed, its record is still there",
    "objects.before-index": "an object's bytes are on disk, no index names them",
    "objects.after-index": "an object is there, whoever stored it does not know",
    # an image
    "image.begun": "the place of an environment that is being made is there, nothing is in it",
    "image.installed": "uv has installed an environment aside, nothing of it is proved",
    "image.before-publish": "an environment is whole, it is not under its name",
    "image.after-publish": "an environment is under its name, nobody is on record as using it",
    "notebook.before-submit": "a start of a notebook is on record, no job carries it out",
    "notebook.after-submit": "the job of a start is on record, nobody has looked at it",
    "notebook.before-remove": "nothing of a notebook runs, its home is still there",
    "notebook.after-remove": "a notebook's home and jobs are removed, its record is still there",
    # the node agent
    "agent.locked": "the locks are taken, nobody has been told who holds them",
    "agent.announced": "the agent is on record, nothing is staged",
    "dataset.reserved": "there is room for a data set, nothing of it is there",
    "dataset.filled": "a data set is there, nothing says that it is complete",
    "agent.staged": "everything is staged, the shim has no order",
    "agent.ordered": "the shim has its order",
    "agent.noticed": "the program is to be stopped and can know why, SIGTERM is not sent",
    "agent.terminated": "SIGTERM is sent",
    "agent.before-upload": "an output file is about to be stored",
    "agent.after-upload": "an output file is stored, the journal does not say so",
    "agent.collecting": "the program has ended, nothing of its end is stored",
    "agent.before-done": "outputs and log are stored, nothing says so",
    "agent.after-done": "the task is done, its work is not removed",
    "commit.staged": "an output is complete under the staging prefix, no manifest says so",
    "commit.begun": "the manifest is there, no staged file has its name",
    "commit.moved": "all files of an output have their names, the manifest does not say so",
    "commit.done": "an output is delivered, its staging prefix is not cleared",
    # the shim
    "shim.ordered": "the shim has its order, the program no record",
    "shim.recorded": "the program is on record, it has not begun",
    "shim.started": "the program runs",
    "shim.ended": "the program has ended, what it left running has not",
    "shim.before-exit": "the log is closed, the exit record is not there",
    "shim.after-exit": "the exit record is there, the lock is held",
    # the agent of a container
    "container.staged": "everything is staged, the runtime has been asked for nothing",
    "container.ordered": "the container has been started, nothing of it is on record",
    "container.recorded": "the program is on record, it has not begun",
    "container.started": "the program runs",
    "container.before-exit": "the log is closed, the exit record is not there",
    "container.after-exit": "the exit record is there, the lock is held",
}
"""Every point, and what stands when a process passes it."""

_directory = os.environ.get(VARIABLE) or None


def crash_point(name: str, subject: str = "") -> None:
    """The point called `name`; `subject` is the task directory that it is about, if it is about
    one. Free unless the process was started with VARIABLE.
    """
    if _directory is not None:
        _pass(_directory, name, subject)


def environment() -> dict[str, str]:
    """What a process that is started for this one needs so that its points work too."""
    return {} if _directory is None else {VARIABLE: _directory}


def _pass(directory: str, name: str, subject: str) -> None:
    if name not in POINTS:
        raise KeyError(f"{name} is not a crash point; POINTS lists them")
    order = _take(f"{directory}/{name}")
    if order is None:
        return
    _note(f"{directory}/{HITS}", f"{name} {os.getpid()} {order} {subject}\n".encode())
    word, _, value = order.partition(" ")
    if word == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
        # The first process of a PID namespace cannot kill itself.
        os._exit(128 + signal.SIGKILL)
    if word == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif word == "delay":
        time.sleep(float(value))


def _take(path: str) -> str | None:
    """The first line of a file of orders, taken off it."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        line, _, rest = os.read(descriptor, ORDERS_BYTES).partition(b"\n")
        os.pwrite(descriptor, rest, 0)
        os.ftruncate(descriptor, len(rest))
    finally:
        os.close(descriptor)
    return line.decode("ascii", "replace").strip() or None


def _note(path: str, line: bytes) -> None:
    with suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)
