"""Frees what images take: environments that nobody has used for long, then the oldest of the rest
until all fits a budget. What a task uses is never touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from danlu.images import uv
from danlu.images.store import ImageStore, now_ms
from danlu.images.uv import Sources, Uv
from danlu.model.errors import Missing, PlatformError, Refused
from danlu.model.image import Freed, Realised


def collect(
    store: ImageStore, *, unused_for_s: float | None, budget: int | None, dry_run: bool = False
) -> Freed:
    """Remove environments that were last used longer ago than `unused_for_s`, and more of them, the
    longest unused first, while everything takes more than `budget` bytes (None = no limit).
    """
    before = store.usage()
    unused = [one for one in reversed(store.all()) if not store.holders(one.id)]
    old = [one for one in unused if _older(store, one, unused_for_s)]
    if dry_run:
        rest = before - sum(one.size_bytes for one in old)
        for one in unused:
            if budget is not None and rest > budget and one not in old:
                old.append(one)
                rest -= one.size_bytes
        return Freed(tuple(old), before, max(0, rest))
    _leftovers(store)
    removed = [one for one in old if _removed(store, one)]
    _clean(store, removed)
    for one in unused:
        if budget is None or store.usage() <= budget:
            break
        if one not in old and _removed(store, one):
            removed.append(one)
            _clean(store, [one])
    store.empty_trash()
    return Freed(tuple(removed), before, store.usage())


def _older(store: ImageStore, one: Realised, unused_for_s: float | None) -> bool:
    used_at = max(store.used_at(one.id), one.made_at)
    return unused_for_s is not None and now_ms() - used_at > unused_for_s * 1000


def _removed(store: ImageStore, one: Realised) -> bool:
    with suppress(Refused, Missing):
        store.remove(one.id)
        return True
    return False


def _leftovers(store: ImageStore) -> None:
    """Delete what was interrupted. Who makes something now has its turn, and is left alone."""
    for left in store.part("making").iterdir():
        with suppress(ValueError, BlockingIOError):
            image_id = left.name.partition("-")[0]
            with store.turn(image_id, _busy):
                store.sweep(image_id)


def _busy() -> None:
    raise BlockingIOError


def _clean(store: ImageStore, removed: Sequence[Realised]) -> None:
    """Delete of uv's cache the packages that only removed environments had."""
    if not removed:
        return
    kept = {name for one in store.all() for name in _packages(store, one)}
    gone = {name for one in removed for name in _packages(store, one)} - kept
    for one in removed:
        store.forget(one.id)
    with suppress(uv.Failed, PlatformError, OSError):
        tool = Uv(store.part("cache"), Sources())
        # Without an environment nothing of the cache is in use.
        if kept:
            tool("cache", "clean", *sorted(gone)) if gone else None
        else:
            tool("cache", "clean")


def _packages(store: ImageStore, one: Realised) -> list[str]:
    try:
        return [wheel.name for wheel in store.lock(one.id).wheels]
    except PlatformError:
        return []
