"""Execute a notebook cell by cell in a kernel of this environment, print what its cells print, and
keep the executed copy after each of them.

The copy goes to the output `notebook`; without one it lies beside the notebook. Where the notebook
does not come to its end, a report says at which cell and why, and the agent makes it the cause of
the job's end.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
from contextlib import suppress
from types import FrameType

from danlu_run_notebook.parameters import Unrunnable, read

OUTPUT = "notebook"
REPORT = ".danlu-notebook/failed.json"
NEEDED = ("nbformat", "nbclient", "ipykernel")
FAILED = 1
CONFIG_EXIT = 78
"""EX_CONFIG: the environment lacks what it takes, or the notebook is none."""
TERMINATED = 128 + signal.SIGTERM


def main(arguments: list[str]) -> int:
    """Run the notebook that is named first, with the parameters behind it."""
    path = arguments[0]
    try:
        _check_environment()
        return _run(path, arguments[1:])
    except Unrunnable as problem:
        _say(f"{os.path.basename(path)} could not be run: {problem}")
        _report("notebook-failed", detail=str(problem))
        return CONFIG_EXIT


def _check_environment() -> None:
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise Unrunnable(
            f"its environment has no {', '.join(missing)}: choose an image that brings"
            " JupyterLab, as the built-in ones do, or add nbclient and ipykernel to it"
        )


def _run(path: str, arguments: list[str]) -> int:
    from danlu_run_notebook.cells import Notebook

    folder = _output()
    named = read(arguments, folder)
    target = os.path.join(folder or os.path.dirname(path), _executed(path, folder))
    notebook = Notebook(path, target, named)
    stopping = []

    def stop(_number: int, _frame: FrameType | None) -> None:
        # The kernel is told too, and may still finish something; what there is of it is kept now.
        stopping.append(True)
        notebook.save()

    signal.signal(signal.SIGTERM, stop)
    failed = notebook.execute(lambda: bool(stopping))
    if folder:
        _say(f"the executed copy is {os.path.basename(target)} in the output '{OUTPUT}'")
    else:
        _say(f"the executed copy {target} is lost: an output '{OUTPUT}' would keep it")
    if stopping:
        return TERMINATED
    if failed is None:
        return 0
    _report("cell-failed", notebook=os.path.basename(path), cell=failed.cell, error=failed.error)
    return FAILED


def _executed(path: str, folder: str) -> str:
    name = os.path.basename(path)
    return name if folder else f"{name.removesuffix('.ipynb')}.executed.ipynb"


def _output() -> str:
    """The directory of the output that takes the executed copy; empty = the job has none."""
    with suppress(ValueError, KeyError, TypeError):
        for one in json.loads(os.environ["MA_OUTPUTS"]):
            if one["name"] == OUTPUT:
                return str(one["local_dir"])
    return ""


def _report(problem: str, **detail: str | int) -> None:
    """For the agent; whoever reads the log has it there."""
    place = os.path.join(os.environ.get("MA_MOUNT_PATH", ""), REPORT)
    with suppress(OSError):
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(f"{place}.new", "w", encoding="utf-8") as file:
            json.dump({"problem": problem, "detail": detail}, file)
        os.rename(f"{place}.new", place)


def _say(words: str) -> None:
    """Into the job's log."""
    sys.stderr.write(f"danlu: {words}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
