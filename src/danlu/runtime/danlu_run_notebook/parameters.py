"""A job's parameters, as the variables of a notebook.

As with papermill: a cell that sets them is put behind the one that is tagged `parameters`, or at
the top where none is. What reads as a literal of Python (a number, a list, True) is one, anything
else is a string.
"""

from __future__ import annotations

import ast
import keyword
import os
from typing import Any

TAG = "parameters"
INJECTED = "injected-parameters"


class Unrunnable(Exception):
    """Why not one cell was executed."""


def read(arguments: list[str], folder: str) -> dict[str, object]:
    """The variables of `--name=value` arguments, a later one for an earlier. The output that takes
    the executed copy is none of the notebook's.
    """
    found: dict[str, object] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not name.startswith("--") or not equals:
            raise Unrunnable(
                f"the argument '{argument}' is not of the form --name=value: a notebook has"
                " variables, and no command line"
            )
        if folder and os.path.normpath(value) == os.path.normpath(folder):
            continue
        variable = name[2:].replace("-", "_")
        if not variable.isidentifier() or keyword.iskeyword(variable):
            raise Unrunnable(f"the parameter '{name[2:]}' cannot be the name of a variable")
        found[variable] = _value(value)
    return found


def _value(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text


def inject(nb: Any, named: dict[str, object], language: str) -> None:
    """Put the cell that sets them into a notebook, instead of that of an earlier run."""
    import nbformat

    nb.cells = [cell for cell in nb.cells if INJECTED not in tags(cell)]
    if not named:
        return
    if language != "python":
        raise Unrunnable(f"its language is {language}: parameters are for notebooks in Python")
    lines = ["# Parameters", *(f"{name} = {value!r}" for name, value in named.items())]
    cell = nbformat.v4.new_code_cell("\n".join(lines), metadata={"tags": [INJECTED]})
    if (nb.nbformat, nb.nbformat_minor) < (4, 5):
        cell.pop("id", None)
    places = [number for number, one in enumerate(nb.cells, 1) if TAG in tags(one)]
    nb.cells.insert(places[0] if places else 0, cell)


def tags(cell: Any) -> list[str]:
    """The tags of a cell."""
    return list(cell.metadata.get("tags", ()))
