"""A process that is ready to be an agent: everything imported, waiting for a directory.

It forks an agent for each request that comes on its stdin and answers with that one's identity,
so a task does not wait for an interpreter to start. It ends when its stdin does: with the server.
The agents do not; each is a session of its own and holds nothing of the server's.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
from contextlib import suppress
from typing import Any

from danlu.model.codec import from_json, to_json
from danlu.model.script import Layout, TaskPlan, world
from danlu.node import agent, identity, linux
from danlu.node.store import WARM
from danlu.ports import task_directory as files
from danlu.ports.task_directory import AgentPlan


def serve() -> int:
    """Answer requests until stdin ends. A request is a line of JSON, `{"directory": …}`; the
    answer a `ProcessIdentity`, or `{"error": …}`.
    """
    _warm()
    # Agents that end are nobody's concern here; without this they would stay as zombies.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # An agent may be told to stop before it has said what it does about that.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    for line in sys.stdin.buffer:
        answer = _start(json.loads(line)["directory"])
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()
    return 0


def _start(directory: str) -> dict[str, Any]:
    held_read, held_write = os.pipe()
    try:
        pid = os.fork()
    except OSError as error:
        return {"error": f"no process could be made: {error.strerror}"}
    if pid == 0:
        os.close(held_write)
        os.read(held_read, 1)
        os.close(held_read)
        be_agent(directory)
    # It waits until its identity is known, so that it cannot end before that.
    os.close(held_read)
    found = identity.of(pid)
    os.close(held_write)
    return dict(found) if found else {"error": "the agent ended at once"}


def be_agent(directory: str) -> None:
    """Detach from everything and be the agent of `directory`; does not return."""
    code = agent.CRASH_EXIT
    try:
        with suppress(OSError):
            os.setsid()
        _settle(directory)
        code = agent.run(directory)
    finally:
        if code == agent.CRASH_EXIT:
            agent.report_crash()
        os._exit(code)


def _settle(directory: str) -> None:
    """No terminal, no directory of the server's, no descriptor of the server's."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.umask(0o077)
    os.chdir("/")
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    errors = os.open(f"{directory}/{files.AGENT_ERRORS}", flags, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(errors, 1)
    os.dup2(errors, 2)
    linux.close_from(3)


def _warm() -> None:
    """Do once what every agent would do first."""
    for module in WARM:
        with suppress(ImportError):
            importlib.import_module(module)
    layout = Layout("/h", "/c", "/t", "/p", "/b")
    plan = AgentPlan(TaskPlan("j", 1, 0, "t", "n", command="true"), layout)
    read = from_json(AgentPlan, to_json(plan))
    world(read.plan, layout)
    identity.boot_id()
    gc.collect()
    # What is there now is shared with every agent; the collector must not touch its pages.
    gc.freeze()
