"""The notebook itself: its kernel, its cells, what they print, its executed copy."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError

from danlu_run_notebook.parameters import INJECTED, Unrunnable, inject, tags

PYTHON = "python3"
SKIP = "skip-execution"
START_LIMIT_S = 300
LAST_OUTPUT_S = 60
"""How long what a cell has printed may lag behind its end."""
MOST_SHOWN = 200
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
"""IPython colours its tracebacks; a log is searched, and read without a terminal."""


@dataclass(frozen=True)
class Failed:
    """At which cell it ended (its number as In [n] shows it), and of what."""

    cell: int
    error: str


class Client(NotebookClient):  # type: ignore[misc]  # a package of the job's environment
    """Prints what cells print, as they print it."""

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        """Whatever comes from the kernel."""
        content = msg["content"]
        kind = msg["msg_type"]
        if kind == "stream":
            _print(content["text"])
        elif kind in ("execute_result", "display_data"):
            _print(f"{content['data'].get('text/plain', '')}\n")
        elif kind == "error":
            _print(ESCAPES.sub("", "\n".join(content["traceback"])) + "\n")
        return super().process_message(msg, cell, cell_index)


class Notebook:
    """One that is executed; its copy goes to `target`. Unrunnable where it is none."""

    def __init__(self, path: str, target: str, named: dict[str, object]) -> None:
        self._folder = os.path.dirname(os.path.abspath(path))
        self._target = target
        try:
            self._nb: Any = nbformat.read(path, as_version=4)
            nbformat.validate(self._nb)
        except Exception as error:
            # nbformat raises whatever it stumbles over.
            raise Unrunnable(f"it is not a notebook: {str(error).splitlines()[0]}") from error
        kernel, language = self._kernel()
        inject(self._nb, named, language)
        self._client = Client(
            self._nb,
            kernel_name=kernel,
            timeout=None,
            startup_timeout=START_LIMIT_S,
            iopub_timeout=LAST_OUTPUT_S,
            resources={"metadata": {"path": self._folder}},
        )

    def _kernel(self) -> tuple[str, str]:
        """The kernel that executes it, and its language. The name of a kernel is one machine's own,
        so any notebook in Python gets this environment's Python.
        """
        wanted = self._nb.metadata.get("kernelspec", {})
        about = self._nb.metadata.get("language_info", {})
        language = str(wanted.get("language") or about.get("name") or "python").lower()
        found = KernelSpecManager().find_kernel_specs()
        if language == "python":
            return PYTHON, language
        if wanted.get("name") in found:
            return wanted["name"], language
        there = ", ".join(sorted(found)) or "none"
        raise Unrunnable(f"its kernel '{wanted.get('name')}' is not in the image (there: {there})")

    def execute(self, stopping: Callable[[], bool]) -> Failed | None:
        """Run cell by cell; the first that fails, if one does."""
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory())
            try:
                manager = self._client.create_kernel_manager()
                # Sockets that nobody else of this machine can reach; TMPDIR is short enough.
                manager.transport = "ipc"
                manager.connection_file = f"{folder}/k"
                stack.enter_context(self._client.setup_kernel())
            except (RuntimeError, OSError, KeyError) as error:
                raise Unrunnable(f"its kernel did not start: {error}") from error
            try:
                return self._cells(stopping)
            finally:
                self.save()

    def _cells(self, stopping: Callable[[], bool]) -> Failed | None:
        total = sum(map(_runs, self._nb.cells))
        number = 0
        for index, cell in enumerate(self._nb.cells):
            given = INJECTED in tags(cell)
            if stopping() or not (given or _runs(cell)):
                continue
            number += not given
            if not given:
                _print(f"--- cell {number} of {total}\n")
            try:
                # What is injected has no number, so that the others keep theirs.
                self._client.execute_cell(cell, index, store_history=not given)
            except CellExecutionError as error:
                said = f"{error.ename}: {error.evalue}" if error.evalue else error.ename
                return Failed(number, _short(said))
            except DeadKernelError:
                return Failed(number, "its kernel died")
            self.save()
        return None

    def save(self) -> None:
        """Keep what has been executed so far."""
        self._client.set_widgets_metadata()
        fresh = f"{self._target}.danlu-new"
        with open(fresh, "w", encoding="utf-8") as file:
            nbformat.write(self._nb, file)
        os.rename(fresh, self._target)


def _runs(cell: Any) -> bool:
    code = cell.cell_type == "code" and bool(cell.source.strip())
    return code and SKIP not in tags(cell) and INJECTED not in tags(cell)


def _short(text: str) -> str:
    plain = " ".join(ESCAPES.sub("", text).split())
    return plain if len(plain) <= MOST_SHOWN else f"{plain[:MOST_SHOWN]}…"


def _print(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
