"""A job's events, metrics and logs as ModelArts' clients read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from danlu.model.event import JobEvent
from danlu.model.texts import Language
from danlu.wire.shape import INTEGER, NUMBER, STRING, Schema, listing, reply

PREVIEW_BYTES = 5 << 20
"""What a log preview holds at most: its end."""

NO_DATA = -1
NPU_METRICS = ("npuUtil", "npuMemUsage")


def instant(at: int) -> str:
    """UTC milliseconds as ISO 8601."""
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def event(happened: JobEvent, language: Language) -> dict[str, str]:
    """One event."""
    return {
        "message": happened.sentence(language),
        "level": happened.level.value,
        "time": instant(happened.at),
        "source": "Task" if happened.task else "Job",
    }


def events(
    page: Sequence[Mapping[str, str]], total: int, query: Mapping[str, Any]
) -> dict[str, Any]:
    """The reply for `…/events`; `query` repeats limit, offset, order, start_time and end_time."""
    return {"total": total, **query, "events": list(page)}


def metrics(minutes: Mapping[str, Sequence[float | None]]) -> dict[str, Any]:
    """The reply for `…/metrics/{task}`: one value a minute, -1 where nothing is known."""
    length = max((len(values) for values in minutes.values()), default=0)
    named: dict[str, Sequence[float | None]] = {
        **minutes,
        **{name: [None] * length for name in NPU_METRICS},
    }
    return {
        "metrics": [
            {"metric": name, "value": [NO_DATA if value is None else value for value in values]}
            for name, values in named.items()
        ]
    }


def preview(data: bytes, full_size: int) -> dict[str, Any]:
    """The reply for `…/logs/preview`: the end of the log and its sizes in bytes."""
    return {
        "content": data.decode("utf-8", "replace"),
        "current_size": len(data),
        "full_size": full_size,
    }


def lines(content: Sequence[bytes], first: int, last: int, *, descending: bool) -> dict[str, Any]:
    """The reply for `…/logs/{task}`: lines numbered from 1, with the first and the last number.

    `end_line` is what a client sends as `base_line` to go on in the same direction.
    """
    start, end = (last, first) if descending else (first, last)
    shown = reversed(content) if descending else content
    return {
        "start_line": str(start) if content else "",
        "end_line": str(end) if content else "",
        "lines": len(content),
        "content": "".join(line.decode("utf-8", "replace") + "\n" for line in shown),
    }


EVENTS_SCHEMA: Schema = reply(
    {
        "total": INTEGER,
        "limit": INTEGER,
        "offset": {**INTEGER, "description": "the number of the page, from 0"},
        "order": STRING,
        "start_time": STRING,
        "end_time": STRING,
        "events": listing(
            reply({"message": STRING, "level": STRING, "time": STRING, "source": STRING})
        ),
    }
)

METRICS_SCHEMA: Schema = reply(
    {"metrics": listing(reply({"metric": STRING, "value": listing(NUMBER)}))}
)

PREVIEW_SCHEMA: Schema = reply({"content": STRING, "current_size": INTEGER, "full_size": INTEGER})

LINES_SCHEMA: Schema = reply(
    {"start_line": STRING, "end_line": STRING, "lines": INTEGER, "content": STRING}
)

LOG_URL_SCHEMA: Schema = reply({"obs_url": STRING})
