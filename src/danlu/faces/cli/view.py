"""How jobs look to a person: short ids, times, sizes, colours."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing costs 4 ms at every start
    from collections.abc import Mapping, Sequence
    from typing import Any

LIVE = ("queued", "placed", "launching", "running", "stopping", "collecting")
WAITING = ("queued", "placed", "launching")
STATE_COLORS = {
    "running": "blue",
    "stopping": "yellow",
    "succeeded": "green",
    "failed": "red",
    "lost": "red",
    "cancelled": "yellow",
}
ID_CHARS = 8


def short_ids(ids: Sequence[str]) -> dict[str, str]:
    """The shortest prefix of each id, at least 8 characters, that no other of them shares."""
    chars = ID_CHARS
    while chars < 36 and len({one[:chars] for one in ids}) < len(set(ids)):
        chars += 1
    return {one: one[:chars] for one in ids}


def seconds(count: float | None) -> str:
    """A duration for people: `0.4s`, `12s`, `3m05s`, `2h10m`, `3d4h`."""
    if count is None:
        return "-"
    count = max(0.0, count)
    if count < 10:
        return f"{count:.1f}s"
    whole = int(count)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02}s"
    if whole < 86400:
        return f"{whole // 3600}h{whole % 3600 // 60:02}m"
    return f"{whole // 86400}d{whole % 86400 // 3600}h"


def age(at: int | None, now: float | None = None) -> str:
    """How long ago an instant (UTC milliseconds) was."""
    if at is None:
        return "-"
    return seconds((time.time() if now is None else now) - at / 1000)


def instant(at: int | None) -> str:
    """An instant (UTC milliseconds) in the local zone, to the second."""
    return "-" if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at / 1000))


def size(count: int | None) -> str:
    """Bytes for people, in binary units."""
    if count is None:
        return "-"
    amount, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.1f}".removesuffix(".0") + f" {unit}"


def duration_s(job: Mapping[str, Any], now: float | None = None) -> float | None:
    """How long a job has run, or ran; None if it never did."""
    begun = job.get("started_at") or job.get("launched_at")
    if begun is None:
        return None
    ended = job.get("exited_at") or job.get("ended_at")
    last = ended / 1000 if ended else (time.time() if now is None else now)
    return float(max(0.0, last - begun / 1000))


def why(job: Mapping[str, Any]) -> str:
    """The sentence that explains a job's state: why it waits, or how it ended."""
    waiting, reason = job.get("waiting"), job.get("reason")
    if waiting:
        return str(waiting.get("sentence", ""))
    if reason and job.get("state") != "succeeded":
        return str(reason.get("sentence", ""))
    return ""


def state(job: Mapping[str, Any]) -> str:
    """The state in a word, marked where the job's node cannot be reached."""
    return f"{job['state']}?" if job.get("unreachable") else str(job["state"])
