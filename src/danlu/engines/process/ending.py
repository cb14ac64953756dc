"""Ending a task at once, without its agent: for tasks that are removed while they run."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from danlu.engines.process.reading import identity_of
from danlu.node import identity, tree
from danlu.node.containment import group_of
from danlu.node.directory import TaskDirectory, read_json
from danlu.node.ending import marker
from danlu.node.identity import Process
from danlu.ports import task_directory as files

LIMIT_S = 10.0
PAUSE_S = 0.01


def end(path: Path) -> bool:
    """Kill everything of the task in `path`, its agent and shim included; False if something of
    it is still there after a while. The proof of success is that both locks are free.
    """
    directory = TaskDirectory(str(path))
    until = time.monotonic() + LIMIT_S
    while True:
        locks = [directory.take(name) for name in (files.WATCH, files.LOCK)]
        for lock in locks:
            if lock is not None:
                os.close(lock)
        if None not in locks and not _members(path):
            group_of(directory).remove()
            return True
        if time.monotonic() > until:
            return not path.exists()
        _kill(path)
        time.sleep(PAUSE_S)


def left(path: Path) -> bool:
    """Whether a process of the task in `path` lives, agent and shim not counted."""
    return bool(_members(path))


def _kill(path: Path) -> None:
    agent = identity_of((read_json(path / files.AGENT) or {}).get("agent"))
    shim = identity_of((read_json(path / files.TASK) or {}).get("shim"))
    heads = [head for head in (agent, shim) if head is not None and identity.alive(head)]
    if agent in heads and agent is not None:
        # It must neither start a program nor store outputs of a task that is being removed.
        identity.send(agent, signal.SIGSTOP)

    def below() -> list[Process]:
        roots = {head["pid"] for head in heads if identity.alive(head)}
        # What only ends may wait for the agent, which is stopped, to take notice of its children.
        return [process for process in tree.descendants(roots) if not process.ending]

    # The shim goes last: until then whoever loses its parent is given to it and stays in sight.
    group = group_of(TaskDirectory(str(path)))
    tree.kill_all(below, LIMIT_S / 2, at_once=group.kill)
    for head in (shim, agent):
        if head in heads and head is not None:
            identity.send(head, signal.SIGKILL)
    tree.kill_all(lambda: _members(path), LIMIT_S / 2, at_once=group.kill)


def _members(path: Path) -> list[Process]:
    """What is known to be the task's by its control group or its variable."""
    group = group_of(TaskDirectory(str(path)))
    return [*tree.of(group.pids()), *tree.marked(marker(str(path)))]
