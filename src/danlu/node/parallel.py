"""The same work on many items in a few threads, never more than a few items ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TypeVar

T = TypeVar("T")

THREADS = 8
FEW = 4
"""So many items are worked on in turn: threads would cost more than they save."""


def each(items: Iterable[T], work: Callable[[T], None], threads: int = THREADS) -> None:
    """Do `work` on every item. The first error ends it and is raised; what has begun ends first."""
    source = iter(items)
    first = list(islice(source, FEW + 1))
    if len(first) <= FEW:
        for item in first:
            work(item)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="copy") as pool:
        running = {pool.submit(work, item) for item in first}
        for item in source:
            if len(running) >= 2 * threads:
                running = _settle(running)
            running.add(pool.submit(work, item))
        while running:
            running = _settle(running)


def _settle(running: set[Future[None]]) -> set[Future[None]]:
    done, left = wait(running, return_when=FIRST_COMPLETED)
    try:
        for future in done:
            future.result()
    except BaseException:
        for future in left:
            future.cancel()
        raise
    return left
