from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.faults.rows import FAULTS, Results, commit, how, named, rows


def test_a_docstring_tells_faults_and_how() -> None:
    text = "(case 28) (faults 5, 6) Killed\n    in between."
    assert (rows(text), how(text)) == ([5, 6], "Killed in between.")
    assert (rows("(fault 12)"), how("(fault 12)")) == ([12], "")
    text = "(case 59; fault 17) Eats."
    assert (rows(text), how(text)) == ([17], "Eats.")
    assert rows("(faults 5, 6; case 28)") == [5, 6]
    assert rows("No fault at all (case 3).") == []
    assert rows(None) == []


def test_every_fault_that_a_test_names_is_known() -> None:
    numbers = {number for own, _ in named().values() for number in own}
    assert numbers <= FAULTS.keys(), numbers - FAULTS.keys()
    own, told = named()["tests/faults/test_server.py::test_a_second_server_is_refused"]
    assert (own, told.startswith("`danlu serve` twice")) == ([10], True)


def test_what_a_run_did_not_run_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "data" / "faults.json"
    first = Results(figures={"kills": {"jobs": 1}, "adoption": {"slowest_s": 1}})
    first.note([5], "test_kept", "Killed.", "failed")
    first.note([6], "test_it[1]", "", "failed")
    first.write(path)
    second = Results(figures={"kills": {"jobs": 2}})
    second.note([6], "test_it[2]", "", "passed")
    second.write(path)

    found = json.loads(path.read_text())
    assert found["figures"]["kills"]["jobs"] == 2
    assert found["figures"]["adoption"]["slowest_s"] == 1
    assert [(one["test"], one["outcome"]) for one in found["tests"]] == [
        ("test_kept", "failed"),
        ("test_it[2]", "passed"),
    ]
    for one in (*found["figures"].values(), *found["tests"]):
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", one["day"])
        assert one["commit"]


def test_figures_of_several_seeds_are_added_up() -> None:
    results = Results()
    results.add("kills", {"jobs": 2, "seeds": [7], "points": {"a.b": 1}, "violations": {}})
    results.add("kills", {"jobs": 3, "seeds": [8], "points": {"a.b": 2}, "violations": {"lost": 1}})

    assert results.figures["kills"] == {
        "jobs": 5,
        "seeds": [7, 8],
        "points": {"a.b": 3},
        "violations": {"lost": 1},
    }


def test_the_commit_says_whether_it_is_all(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        person = ("-c", "user.name=n", "-c", "user.email=e@e")
        subprocess.run(["git", "-C", tmp_path, *person, *words], check=True, capture_output=True)

    assert commit(tmp_path) == "?"
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("1")
    git("init")
    git("add", ".")
    git("commit", "-m", "a")
    assert re.fullmatch("[0-9a-f]{10}", commit(tmp_path))
    (tmp_path / "src" / "a.py").write_text("2")
    assert commit(tmp_path).endswith("+")
