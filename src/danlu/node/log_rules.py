"""Looks through the log of a program that has failed for the lines that its job has rules about."""

from __future__ import annotations

from collections.abc import Sequence

from danlu.model.event import Level
from danlu.model.log_rules import Finder, LogRule
from danlu.node.directory import TaskDirectory
from danlu.node.log_files import LogFiles
from danlu.ports import task_directory as files
from danlu.ports.engine import LOG_MATCHED

PIECE = 1 << 20
MOST_BYTES = 256 << 20
"""Of a longer log the end is looked through."""
REST_BYTES = 64 << 10


def tell(directory: TaskDirectory, rules: Sequence[LogRule]) -> None:
    """Write a note for the first line of each action that a rule matches."""
    ended = directory.read(files.EXIT) or {}
    if not rules or ended.get("exit_code") == 0:
        return
    for matched in find(LogFiles(directory.path), rules).found:
        directory.note(
            LOG_MATCHED,
            Level.WARNING,
            match=matched.rule.match,
            rule=str(matched.rule.action),
            line=matched.line[:200],
        )


def find(log: LogFiles, rules: Sequence[LogRule]) -> Finder:
    """What rules find in a log."""
    finder = Finder(rules)
    at, rest = max(0, log.end() - MOST_BYTES), b""
    while not finder.done:
        chunk = log.read(at, PIECE)
        *lines, rest = (rest + chunk.data).replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            finder.look(line)
        if not chunk.data:
            finder.look(rest)
            break
        rest = rest[:REST_BYTES]
        at = chunk.next
    return finder
