"""What the instance is used for, as it can be told from inside: `activity.json`.

JupyterLab itself, sshd and the server of VS Code are no use of it: they live on for hours after
their window was closed. Every other process that takes more than a twentieth of a core is. So is a
kernel that executes, be it as silent as it likes, and what goes through kernels and terminals.
JupyterLab is asked in a way that it does not take for a use; that a page asks it things, as a page
does that nobody looks at, counts for nothing.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from datetime import datetime
from typing import Callable, Optional

FILE = "activity.json"
EVERY_S = 10.0
BUSY_CORES = 0.05
BUSY_STATES = ("busy", "starting", "restarting")
LOOKED_PAST = ("sshd", "sshd-session", "sftp-server")
PLACES_PAST = (".vscode-server", ".cursor-server", ".vscode-remote")
TICKS = os.sysconf("SC_CLK_TCK")
COMMAND_CHARS = 60
ECHO_MS = 1000
"""So long JupyterLab may take to read what was written into a terminal."""


class Process:
    """One process at one look."""

    __slots__ = ("command", "parent", "pid", "started", "ticks")

    def __init__(self, pid: int, stat: bytes) -> None:
        fields = stat[stat.rindex(b")") + 2 :].split()
        self.pid = pid
        self.command = stat[stat.index(b"(") + 1 : stat.rindex(b")")].decode("utf-8", "replace")
        self.parent = int(fields[1])
        self.ticks = int(fields[11]) + int(fields[12])
        self.started = int(fields[19])


Ask = Callable[[str], Optional[bytes]]
"""What JupyterLab's API says to a GET; None where it does not answer."""


class Activity:
    """Looks at the processes below this one, kernels and terminals, now and then. `apart` are its
    own process and JupyterLab's; `wrote_at` says when the platform wrote into the terminals last.
    """

    def __init__(
        self, endpoints: str, apart: set[int], ask: Ask, wrote_at: Callable[[], int] = lambda: 0
    ) -> None:
        self._ask = ask
        self._wrote_at = wrote_at
        self._terminals_at: int | None = None
        self._began_at = time.time_ns() // 1_000_000
        self._path = os.path.join(endpoints, FILE)
        self._apart = apart
        self._before: dict[tuple[int, int], int] = {}
        self._looked_at = 0.0
        self._active_at: int | None = None
        self._detail = ""

    def look(self) -> None:
        """Look, if it is time."""
        now = time.monotonic()
        passed_s = now - self._looked_at
        if self._looked_at and passed_s < EVERY_S:
            return
        at = time.time_ns() // 1_000_000
        found = below(os.getpid())
        ticks = {(one.pid, one.started): one.ticks for one in found.values()}
        if self._looked_at:
            busiest = self._busiest(found, passed_s)
            if busiest is not None:
                self._active_at, self._detail = at, busiest
        else:
            self._active_at = at  # its start is a use of it
        self._before, self._looked_at = ticks, now
        self._publish(at, found)

    def _busiest(self, found: dict[int, Process], passed_s: float) -> str | None:
        most, name = 0.0, None
        for one in found.values():
            if one.pid in self._apart or passed_over(one):
                continue
            before = self._before.get((one.pid, one.started), 0)
            cores = (one.ticks - before) / TICKS / passed_s
            if cores > BUSY_CORES and cores > most:
                most, name = cores, f"{command(one)} ({cores:.2f} cores)"
        return name

    def _kernels(self, now: int) -> dict[str, object]:
        listed = self._listed("/api/kernels?no_track_activity=1")
        if listed is None:
            return {"active_at": None, "detail": "JupyterLab does not say"}
        busy = sum(one.get("execution_state") in BUSY_STATES for one in listed)
        last = now if busy else latest(listed, self._began_at)
        return {
            "active_at": last,
            "detail": f"{len(listed)} open, {busy} busy",
            "goes_on": busy > 0,
        }

    def _terminals(self) -> dict[str, object]:
        listed = self._listed("/api/terminals?no_track_activity=1")
        if listed is None:
            return {"active_at": None, "detail": "JupyterLab does not say"}
        last, wrote_at = latest(listed, self._began_at), self._wrote_at()
        if last is None or self._terminals_at is None or not _caused(last, wrote_at):
            self._terminals_at = last
        return {"active_at": self._terminals_at, "detail": f"{len(listed)} open"}

    def _listed(self, path: str) -> list[dict[str, object]] | None:
        with suppress(ValueError):
            found = json.loads(self._ask(path) or b"null")
            if isinstance(found, list) and all(isinstance(one, dict) for one in found):
                return found
        return None

    def _publish(self, at: int, found: dict[int, Process]) -> None:
        whole = {
            "at": at,
            "processes": {"active_at": self._active_at, "detail": self._detail},
            "kernels": self._kernels(at),
            "terminals": self._terminals(),
            "pids": sorted(found)[:1000],
        }
        with suppress(OSError):
            with open(f"{self._path}.tmp", "w", encoding="ascii") as file:
                json.dump(whole, file)
            os.replace(f"{self._path}.tmp", self._path)


def _caused(last: int, wrote_at: int) -> bool:
    """Whether it was our own writing that JupyterLab took for a use of a terminal."""
    return wrote_at <= last <= wrote_at + ECHO_MS


def latest(listed: list[dict[str, object]], since: int) -> int | None:
    """The last activity of all of these (UTC ms), `since` where there are none; None where one of
    them does not say in a form that is known.
    """
    found = [since]
    for one in listed:
        try:
            said = datetime.fromisoformat(str(one.get("last_activity")).replace("Z", "+00:00"))
            found.append(int(said.timestamp() * 1000))
        except ValueError:
            return None
    return max(found)


def below(top: int) -> dict[int, Process]:
    """Every process of which `top` is an ancestor, by its number."""
    everyone: dict[int, Process] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with (
                suppress(OSError, ValueError, IndexError),
                open(f"/proc/{name}/stat", "rb") as file,
            ):
                everyone[int(name)] = Process(int(name), file.read())
    children: dict[int, list[int]] = {}
    for one in everyone.values():
        children.setdefault(one.parent, []).append(one.pid)
    found: dict[int, Process] = {}
    waiting = list(children.get(top, ()))
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found[pid] = everyone[pid]
            waiting.extend(children.get(pid, ()))
    return found


def passed_over(process: Process) -> bool:
    """Whether it is a server that waits for people, and not somebody's work. What is started from a
    terminal of VS Code does not have its server's path in its own command.
    """
    line = _line(process.pid)
    return process.command in LOOKED_PAST or any(place in line for place in PLACES_PAST)


def command(process: Process) -> str:
    """What it is, for people."""
    return (_line(process.pid) or process.command)[:COMMAND_CHARS]


def _line(pid: int) -> str:
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read(4096).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return ""
