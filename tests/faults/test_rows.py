from __future__ import annotations

import ast
import json
from pathlib import Path

from tests import architecture
from tests.faults.rows import FAULTS, Results, how, rows
from tests.services import ROOT


def test_a_docstring_tells_faults_and_how() -> None:
    text = "(case 28) (faults 5, 6) Killed\n    in between."
    assert (rows(text), how(text)) == ([5, 6], "Killed in between.")
    assert (rows("(fault 12)"), how("(fault 12)")) == ([12], "")
    assert rows("No fault at all (case 3).") == []
    assert rows(None) == []


def test_every_fault_that_a_test_names_is_known() -> None:
    named = {
        number
        for source in architecture.sources(ROOT, "tests")
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        for number in rows(ast.get_docstring(node))
    }
    assert named <= FAULTS.keys(), named - FAULTS.keys()


def test_figures_of_an_earlier_run_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "data" / "faults.json"
    Results(figures={"kills": {"seed": 1}, "adoption": {"p99_s": 1}}).write(path)
    results = Results(figures={"kills": {"seed": 2}})
    results.note([5], "test_it", "Killed.", "passed")
    results.write(path)

    found = json.loads(path.read_text())
    assert found["figures"] == {"kills": {"seed": 2}, "adoption": {"p99_s": 1}}
    assert found["tests"] == [
        {"faults": [5], "test": "test_it", "how": "Killed.", "outcome": "passed"}
    ]
