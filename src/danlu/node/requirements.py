"""`pip-requirements.txt` of the code directory, into an environment of the task's own.

The environment sees everything that the job's environment holds, so what is installed there
already counts as satisfied, and what is installed here changes nothing for other jobs.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from danlu.model.script import Layout, World
from danlu.node import identity, landlock, tree
from danlu.node.confine import confine
from danlu.node.containment import reach_of
from danlu.node.directory import TaskDirectory, open_end
from danlu.node.fetch import Check
from danlu.node.identity import Process
from danlu.node.reach import Reach
from danlu.ports import task_directory as files
from danlu.ports.task_directory import AgentPlan

FILE = "pip-requirements.txt"
LAST_LINES = 5
LOOK_EVERY_S = 0.05
PROBE_LIMIT_S = 60.0

_PROBE = """\
import importlib.util, json, site
print(json.dumps({
    "sites": site.getsitepackages(),
    "pip": importlib.util.find_spec("pip") is not None,
}))
"""


class InstallFailed(Exception):
    """The requirements could not be installed; `detail` is the end of what pip said."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail


def whole(directory: TaskDirectory, plan: AgentPlan, file: Path | None) -> Path:
    """The file of all that is to be installed: the code's own, and what the job names beside it."""
    packages = plan.plan.packages
    if not packages and file is not None:
        return file
    lines = [*([f"-r {shlex.quote(str(file))}"] if file is not None else []), *packages]
    made = Path(directory.file(files.WORK), FILE)
    made.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return made


def install(
    directory: TaskDirectory, plan: AgentPlan, file: Path, found: World, check: Check
) -> Layout:
    """Install `file`; the layout with the interpreter and PATH of the new environment."""
    layout = plan.layout
    environment = Path(directory.file(files.WORK), "environment")
    python = environment / "bin" / "python"
    variables = _variables(plan, found)
    run = _Run(directory, variables, str(file.parent), check, _within(directory, plan))
    base = _look_at(layout.python)
    run([layout.python, "-I", "-m", "venv", "--without-pip", str(environment)])
    _see_parent(environment, base["sites"])
    if base["pip"]:
        pip = [layout.python, "-I", "-m", "pip", "--python", str(python)]
    else:
        run([str(python), "-I", "-m", "ensurepip"])
        pip = [str(python), "-I", "-m", "pip"]
    run([*pip, "install", "--disable-pip-version-check", "--no-input", "-r", str(file)])
    return replace(layout, python=str(python), path=f"{environment}/bin:{layout.path}")


def _look_at(python: str) -> dict[str, list[str]]:
    """What the job's environment holds. Only stdout is read: warnings go elsewhere."""
    try:
        answer = subprocess.run(
            [python, "-I", "-c", _PROBE],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PROBE_LIMIT_S,
            check=True,
        ).stdout
        found = json.loads(answer)
        return {"sites": list(found["sites"]), "pip": [FILE] if found["pip"] else []}
    except (OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
        raise InstallFailed(f"'{python}' cannot be used: {error}") from error


def _see_parent(environment: Path, sites: Sequence[str]) -> None:
    """Let the environment import what the job's environment holds, its `.pth` files included."""
    lines = [f"import site; site.addsitedir({site!r})\n" for site in sites]
    for place in environment.glob("lib/python*/site-packages"):
        (place / "job-environment.pth").write_text("".join(lines), "utf-8")


def _variables(plan: AgentPlan, found: World) -> dict[str, str]:
    variables = {**plan.environment, **found.env}
    cache = _cache(plan)
    return {**variables, "PIP_CACHE_DIR": cache} if cache else variables


def _cache(plan: AgentPlan) -> str:
    """What was downloaded for one job serves the next. The server says where, never a job: whoever
    builds a package may write there.
    """
    with suppress(RuntimeError):
        return plan.environment.get("PIP_CACHE_DIR") or str(Path.home() / ".cache" / "pip")
    return ""


def _within(directory: TaskDirectory, plan: AgentPlan) -> Reach | None:
    """What the installation may use. A package is built by code of its own, which is as little to
    be trusted as the program; the cache is shared.
    """
    if not plan.isolation.wanted:
        return None
    cache = Path(_cache(plan) or directory.file(files.WORK))
    with suppress(OSError):
        cache.mkdir(parents=True, exist_ok=True)
    found = reach_of(directory, plan)
    return replace(found, writable=(*found.writable, str(cache)))


class _Run:
    """Runs commands into the task's log, until they end or the task is to be stopped."""

    def __init__(
        self,
        directory: TaskDirectory,
        env: Mapping[str, str],
        cwd: str,
        check: Check,
        within: Reach | None,
    ) -> None:
        self._within = within
        self._landlock = landlock.abi()
        self._log = directory.file(files.LOG)
        self._env = dict(env)
        self._cwd = cwd
        self._check = check

    def __call__(self, command: Sequence[str]) -> None:
        log = open_end(self._log)
        try:
            before = os.fstat(log).st_size
            process = subprocess.Popen(
                command,
                env=self._env,
                cwd=self._cwd,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=self._confine,  # noqa: PLW1509 -- nothing else runs in this process now
            )
        except OSError as error:
            raise InstallFailed(f"'{command[0]}': {error.strerror}") from error
        finally:
            os.close(log)
        code = self._wait(process)
        if code != 0:
            raise InstallFailed(self._last_lines(before) or f"pip exited with {code}")

    def _confine(self) -> None:
        if self._within is not None:
            confine(self._within, self._landlock)

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        try:
            while True:
                self._check()
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(LOOK_EVERY_S)
        except BaseException:
            # pip runs a second pip, and that one build tools: all of its session is told.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            time.sleep(LOOK_EVERY_S)
            tree.kill_all(lambda: _of_session(process.pid), limit_s=10, between=process.poll)
            raise

    def _last_lines(self, since: int) -> str:
        with Path(self._log).open("rb") as log:
            log.seek(max(since, log.seek(0, os.SEEK_END) - 4096))
            return last_lines(log.read(4096))


def last_lines(printed: bytes) -> str:
    """The end of what pip printed, as one line."""
    said = printed[-4096:].decode("utf-8", "replace")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return " | ".join(lines[-LAST_LINES:])[-1000:]


def _of_session(leader: int) -> list[Process]:
    return [
        process
        for process in tree.processes()
        if process.session == leader and process.state not in identity.GONE
    ]
