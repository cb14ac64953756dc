"""The record of how a program ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

from danlu.model.reason import ReasonCode
from danlu.node import ending, full, places
from danlu.node.directory import TaskDirectory, json_in, now_ms, open_plain
from danlu.ports import task_directory as files
from danlu.ports.task_directory import ExitFile

UNSTARTED = 125
"""The exit code of a program that the platform could not start (as `docker run` gives it)."""
KILLED = 128 + signal.SIGKILL
TERMINATED = 128 + signal.SIGTERM
MOST_TOLD = 1000
_TOLD: Mapping[str, Mapping[str, type[str | int]]] = {
    ReasonCode.CELL_FAILED: {"notebook": str, "cell": int, "error": str},
    ReasonCode.NOTEBOOK_FAILED: {"detail": str},
}
"""What may be said of a notebook that was run."""


def of_status(directory: TaskDirectory, status: int, ended_at: int) -> ExitFile:
    """The record of a program that the kernel reported with this wait status."""
    code = os.waitstatus_to_exitcode(status)
    return {
        "token": directory.token,
        "ended_at": ended_at,
        "exit_code": code if code >= 0 else 128 - code,
        "signal": _signal_name(-code) if code < 0 else "",
        "out_of_memory": False,
        "problem": "",
        "detail": {},
    }


def of_code(directory: TaskDirectory, code: int, ended_at: int) -> ExitFile:
    """The record of a program of which only a shell's or a runtime's exit code is known: one above
    128 is taken for the signal that it stands for, as everybody does.
    """
    record = of_status(directory, 0, ended_at)
    record["exit_code"] = code
    known = {int(number) for number in signal.Signals}
    record["signal"] = _signal_name(code - 128) if code - 128 in known else ""
    return record


def unstarted(
    directory: TaskDirectory,
    problem: ReasonCode,
    exit_code: int = UNSTARTED,
    /,
    **detail: str | int,
) -> ExitFile:
    """The record of a program that never ran."""
    return {
        "token": directory.token,
        "ended_at": now_ms(),
        "exit_code": exit_code,
        "signal": "",
        "out_of_memory": False,
        "problem": str(problem),
        "detail": detail,
    }


def stopped_before_start(directory: TaskDirectory) -> ExitFile:
    """The record of a program that was stopped while its inputs were being staged."""
    record = of_status(directory, int(signal.SIGTERM), now_ms())
    record["detail"] = {"started": 0}
    return record


def lost(directory: TaskDirectory, problem: ReasonCode) -> ExitFile:
    """The record of a program whose end nobody saw: its shim was killed, or the machine was."""
    record = of_status(directory, int(signal.SIGKILL), now_ms())
    record["problem"] = str(problem)
    return record


def explain(record: ExitFile, directory: TaskDirectory) -> None:
    """Say in the record if the program ended because it had been told to, or met a full disk."""
    given = ending.notice(directory)
    if given is None:
        _explain_unverified(record, directory)
        _explain_full(record, directory)
        _explain_notebook(record, directory)
        return
    limited = given["reason"] == ending.TIME_LIMIT
    record["problem"] = str(ReasonCode.TIME_LIMIT) if limited else ""
    if limited:
        record["detail"] = {**record.get("detail", {}), "limit_s": directory.limit_s}


def _explain_unverified(record: ExitFile, directory: TaskDirectory) -> None:
    """The checks of the image were what ended, and not the job's program."""
    config = directory.read(files.VERIFY)
    if config is None:
        return
    said = directory.read(files.VERIFIED)
    if said is None and record["exit_code"] == 0:
        said = {"failed": "they ended without a report"}
    elif said is None:
        how = record["signal"] or f"exit status {record['exit_code']}"
        said = {"failed": f"they ended with {how} and gave no report"}
    if said.get("ok"):
        return
    named: dict[str, str | int] = {
        name: int(said[name]) for name in ("found", "wanted") if name in said
    }
    record["problem"] = str(ReasonCode.GPUS_MISSING if named else ReasonCode.IMAGE_UNVERIFIED)
    record["detail"] = {
        **record.get("detail", {}),
        "task": str(config.get("task", "")),
        "failed": str(said.get("failed", ""))[:1000],
        **named,
    }


def _explain_full(record: ExitFile, directory: TaskDirectory) -> None:
    # A write through a memory map that finds no room ends in SIGBUS.
    failed = record["exit_code"] != 0 and record["signal"] in ("", "SIGBUS")
    if not failed or record["problem"] or record["out_of_memory"]:
        return
    said = full.explains(directory.path)
    if said:
        record["problem"] = str(ReasonCode.OUT_OF_DISK)
        record["detail"] = {**record.get("detail", {}), "path": directory.path, "detail": said}


def _explain_notebook(record: ExitFile, directory: TaskDirectory) -> None:
    """What runs a notebook has said at which cell it ended, or why it did not begin. The job's own
    code may have written it: it is a cause of the user's, whatever it says.
    """
    if record["exit_code"] == 0 or record["signal"]:
        return
    if record["problem"] or record["out_of_memory"]:
        return
    try:
        opened = open_plain(directory.file(places.NOTEBOOK_REPORT))
    except OSError:
        return
    try:
        said = json_in(opened) or {}
        problem, told = said["problem"], said["detail"]
        detail: dict[str, str | int] = {
            name: kind(told[name]) for name, kind in _TOLD[problem].items()
        }
    except (OSError, ValueError, KeyError, TypeError):
        return
    finally:
        os.close(opened)
    short = {name: one[:MOST_TOLD] if isinstance(one, str) else one for name, one in detail.items()}
    record["problem"] = problem
    record["detail"] = {**record.get("detail", {}), **short}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
