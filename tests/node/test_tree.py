from __future__ import annotations

import os
import time

from danlu.node import tree
from danlu.node.identity import Process


def test_a_hurried_kill_leaves_the_priority_as_it_was() -> None:
    before = os.getpriority(os.PRIO_PROCESS, 0)
    during: list[int] = []
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)

    def find() -> list[Process]:
        return tree.of([child])

    def between() -> None:
        during.append(os.getpriority(os.PRIO_PROCESS, 0))
        os.waitpid(child, 0)

    assert tree.kill_all(find, 10, between=between) == (1, 0)
    assert during == [tree.HURRY if os.geteuid() == 0 else before]
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_what_is_ended_at_once_is_counted() -> None:
    alive = [Process(1 << 30, "S", 1, 1, 1, begun, 0, 0, 0, 1) for begun in (5, 6)]
    assert tree.kill_all(lambda: list(alive), 10, at_once=alive.clear) == (2, 0)
