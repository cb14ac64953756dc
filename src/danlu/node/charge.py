"""Take charge of a task directory: be the agent that its plan asks for."""

from __future__ import annotations

import signal
import sys

from danlu.node import linux
from danlu.node.agent import Agent
from danlu.node.directory import TaskDirectory
from danlu.node.shim import Handle
from danlu.node.signals import PROMPT_ONLY, SignalPipe
from danlu.ports import task_directory as files

NO_PLAN_EXIT = 66


def run(path: str, ready: Handle | None = None) -> int:
    """Bring the task in the directory `path` to its end; the agent's exit status.

    `ready` is a shim that waits for an order; one is forked when it is needed and there is none.
    """
    directory = TaskDirectory(path)
    plan = directory.plan()
    if plan is None:
        return NO_PLAN_EXIT
    watch = directory.take(files.WATCH)
    if watch is None:
        return files.BUSY_EXIT
    if directory.exists(files.FENCED):
        return files.BUSY_EXIT
    if plan.packages:
        sys.path.append(plan.packages)
    linux.adopt_orphans()
    signals = SignalPipe((signal.SIGTERM,), PROMPT_ONLY)
    if plan.container is None:
        return Agent(directory, plan, signals, watch, ready).run()
    # Most agents need no client of HTTP.
    from danlu.node.container.agent import ContainerAgent

    return ContainerAgent(directory, plan, signals, watch, ready).run()
