"""A process that is ready to start agents: everything imported, one agent always forked ahead.

Each request on its stdin hands a task directory to an agent and is answered with that one's
identity, so a task waits neither for an interpreter to start nor for a fork. It ends when its
stdin does: with the server. The agents do not; each is a session of its own and holds nothing
of the server's.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from danlu.model.codec import from_json, to_json
from danlu.model.script import Layout, TaskPlan, world
from danlu.node import cgroup, charge, identity, linux, namespaces, shim
from danlu.node.directory import open_end
from danlu.node.store import WARM
from danlu.ports import task_directory as files
from danlu.ports.task_directory import AgentPlan, ProcessIdentity

CALM_S = 0.02
"""After a request the next agent is forked when nothing has been asked for this long: the task
that was just started has the processors first."""


@dataclass(frozen=True, slots=True)
class _Spare:
    """An agent that waits for its directory."""

    identity: ProcessIdentity
    _order: int

    def send(self, directory: str) -> bool:
        """Give it its directory; False if it is there no more."""
        try:
            os.write(self._order, directory.encode())
        except BrokenPipeError:
            return False
        finally:
            os.close(self._order)
        return True


def serve(*, apart: bool = True) -> int:
    """Answer requests until stdin ends. A request is a line of JSON, `{"directory": …}`; the
    answer a `ProcessIdentity`, or `{"error": …}`. Asked for anything else, it answers what
    namespaces the machine allows. `apart` = programs are expected to have some of their own.
    """
    _warm()
    kind = namespaces.offered().kind if apart else ""
    # Agents that end are nobody's concern here; without this they would stay as zombies.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # An agent may be told to stop before it has said what it does about that.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    spare: _Spare | None = None
    for request in _requests():
        if request is None:
            with suppress(OSError):
                spare = spare or _fork(kind)
            continue
        if "directory" not in request:
            os.write(1, json.dumps(asdict(namespaces.offered())).encode() + b"\n")
            continue
        os.write(1, json.dumps(_begin(request["directory"], spare, kind)).encode() + b"\n")
        spare = None
    return 0


def _requests() -> Iterator[dict[str, Any] | None]:
    """Requests as they come; None when it has been calm."""
    waiting = b""
    calm = False
    while True:
        line, end, rest = waiting.partition(b"\n")
        if end:
            waiting = rest
            calm = False
            yield json.loads(line)
        elif not select.select([0], [], [], None if calm else CALM_S)[0]:
            calm = True
            yield None
        else:
            more = os.read(0, 1 << 16)
            if not more:
                return
            waiting += more


def _begin(directory: str, spare: _Spare | None, kind: str) -> dict[str, Any]:
    try:
        if spare is None or not spare.send(directory):
            spare = _fork(kind)
            spare.send(directory)
    except OSError as error:
        return {"error": f"no process could be made: {error.strerror}"}
    return dict(spare.identity)


def _fork(kind: str) -> _Spare:
    order_read, order_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(order_write)
        _wait_for_directory(order_read, kind)
    os.close(order_read)
    # It lives at least until it is given a directory, so its identity can be read now.
    found = identity.of(pid)
    if found is None:
        os.close(order_write)
        raise ProcessLookupError(3, "an agent has disappeared")
    return _Spare(found, order_write)


def _wait_for_directory(order: int, kind: str) -> None:
    """Be an agent as soon as there is a directory to be it for; does not return."""
    linux.close_all_but({0, 1, 2, order})
    detach()
    ready: shim.Handle | None = None
    with suppress(OSError):
        ready = shim.fork(kind)
    _rehearse()
    directory = os.read(order, 1 << 16).decode()
    os.close(order)
    if not directory:
        os._exit(0)
    be_agent(directory, ready)


def detach() -> None:
    """Leave the server's terminal, session, directory and standard streams."""
    with suppress(OSError):
        os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.umask(0o077)
    os.chdir("/")
    linux.name_process("danlu-agent")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


def be_agent(directory: str, ready: shim.Handle | None = None) -> None:
    """Be the agent of `directory`; does not return."""
    code = shim.CRASH_EXIT
    try:
        errors = open_end(f"{directory}/{files.AGENT_ERRORS}")
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        os.close(errors)
        code = charge.run(directory, ready)
    finally:
        if code == shim.CRASH_EXIT:
            shim.report_crash()
        os._exit(code)


def _warm() -> None:
    """Do once what every agent would do first."""
    for module in WARM:
        with suppress(ImportError):
            importlib.import_module(module)
    _rehearse()
    identity.boot_id()
    cgroup.here()
    namespaces.offered()
    gc.collect()
    # What is there now is shared with every agent; the collector must not touch its pages.
    gc.freeze()


def _rehearse() -> None:
    """Use what reading a plan uses: after a fork each page that is touched is copied first, and
    better now than when a task waits for it.
    """
    layout = Layout("/h", "/c", "/t", "/p", "/b")
    plan = AgentPlan(TaskPlan("j", 1, 0, "t", "n", command="true"), layout)
    read = from_json(AgentPlan, json.loads(json.dumps(to_json(plan))))
    world(read.plan, layout)
