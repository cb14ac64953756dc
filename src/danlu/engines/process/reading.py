"""A task directory as the server reads it. The files were written by another program, beside
programs of users: whatever does not make sense is passed over, and everything has a bound.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from danlu.model.event import Level
from danlu.model.reason import ReasonCode
from danlu.model.texts import text
from danlu.node.directory import open_plain
from danlu.ports.engine import Exit, Note, Sample
from danlu.ports.task_directory import ProcessIdentity

T = TypeVar("T")

LINE_BYTES = 16 << 10
READ_BYTES = 4 << 20
MOST_NOTES = 4000
MOST_SAMPLES = 200_000


class Lines(Generic[T]):
    """A growing file of JSON lines, read on from where the last reading ended."""

    def __init__(self, path: Path, parse: Callable[[dict[str, Any]], T | None], most: int) -> None:
        self._path = str(path)
        self._parse = parse
        self._most = most
        self._offset = 0
        self._items: tuple[T, ...] = ()

    def read(self) -> tuple[T, ...]:
        """Every line so far that makes sense."""
        try:
            size = os.stat(self._path).st_size  # noqa: PTH116 -- every task, every turn
        except OSError:
            return self._items
        while self._offset < size and len(self._items) < self._most:
            data = self._more()
            end = data.rfind(b"\n") + 1
            if not end and len(data) <= LINE_BYTES:
                break
            fresh = [self._line(line) for line in data[:end].splitlines()]
            self._offset += end or len(data)
            self._items += tuple(item for item in fresh if item is not None)
        return self._items

    def _more(self) -> bytes:
        try:
            descriptor = open_plain(self._path)
        except OSError:
            return b""
        try:
            return os.pread(descriptor, READ_BYTES, self._offset)
        finally:
            os.close(descriptor)

    def _line(self, line: bytes) -> T | None:
        if len(line) > LINE_BYTES:
            return None
        try:
            data = json.loads(line)
            return self._parse(data) if isinstance(data, dict) else None
        except (ValueError, TypeError, KeyError, RecursionError):
            return None


def note(data: dict[str, Any]) -> Note | None:
    """A line of `notes.jsonl`, if there is a text for it and it fills that text."""
    found = Note(_instant(data["at"]), str(data["key"]), _params(data), Level(data["level"]))
    text(found.key, **found.params)
    return found


def sample(data: dict[str, Any]) -> Sample | None:
    """A line of `samples.jsonl`."""
    memory = data.get("memory_bytes")
    return Sample(
        _instant(data["at"]),
        _fraction(data.get("cpu_cores")),
        memory if isinstance(memory, int) and 0 <= memory < 1 << 62 else None,
        _fraction(data.get("gpu_busy")),
        _fraction(data.get("gpu_memory")),
    )


def exit_of(data: Mapping[str, Any]) -> Exit | None:
    """The contents of `exit.json`, or None if they are not an exit record."""
    try:
        return Exit(
            ended_at=_instant(data["ended_at"]),
            exit_code=min(255, max(0, int(data["exit_code"]))),
            signal=str(data["signal"])[:16],
            out_of_memory=data["out_of_memory"] is True,
            problem=problem_of(data),
            detail=detail_of(data),
        )
    except (KeyError, ValueError, TypeError):
        return None


def problem_of(data: Mapping[str, Any]) -> ReasonCode | None:
    """The reason code that a record names, if it names one."""
    with suppress(ValueError):
        return ReasonCode(str(data.get("problem")))
    return None


def detail_of(data: Mapping[str, Any]) -> dict[str, str | int]:
    """A record's detail: what the sentence of its problem is filled with."""
    found = data.get("detail")
    pairs = found.items() if isinstance(found, dict) else ()
    return {str(key): value for key, value in pairs if isinstance(value, str | int)}


def identity_of(data: object) -> ProcessIdentity | None:
    """A process identity, if that is what it is."""
    if not isinstance(data, dict):
        return None
    pid, ticks, boot = data.get("pid"), data.get("start_ticks"), data.get("boot_id")
    if isinstance(pid, int) and isinstance(ticks, int) and isinstance(boot, str) and pid > 0:
        return {"pid": pid, "start_ticks": ticks, "boot_id": boot}
    return None


def _params(data: dict[str, Any]) -> dict[str, str | int]:
    return {str(k): v for k, v in data["params"].items() if isinstance(v, str | int)}


def _instant(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 53:
        raise ValueError("not an instant")
    return value


def _fraction(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e6 else None
