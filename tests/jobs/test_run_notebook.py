"""Notebooks as jobs, in a real kernel on the process engine: log, executed copy, cause."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faces.cli.house import House, opened, until
from tests.jupyter import jupyter

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

__all__ = ["jupyter"]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, jupyter: Path) -> Iterator[House]:
    own = {"DANLU_DEFAULT_ENVIRONMENT": str(jupyter.parent.parent)}
    with opened(tmp_path_factory.mktemp("house"), own) as made:
        yield made


def code(source: str, *tags: str) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "source": source,
        "metadata": {"tags": list(tags)} if tags else {},
        "outputs": [],
        "execution_count": None,
    }


def notebook(house: House, *cells: dict[str, Any], kernel: str = "my-conda-env") -> str:
    """A notebook as somebody's own Lab has saved it."""
    metadata = {"kernelspec": {"name": kernel, "display_name": "mine", "language": "python"}}
    text = json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": metadata, "cells": [*cells]})
    return house.script(text, "train 训练.ipynb")


def executed(house: House, job: str) -> list[dict[str, Any]]:
    """The cells of the copy that was stored."""
    (output,) = house.json("show", job)["outputs"]
    target = house.home / f"copy-{job}"
    house.good("obs", "cp", "-r", output["url"], f"{target}/")
    (copy,) = target.rglob("*.ipynb")
    assert copy.name == "train 训练.ipynb"
    cells: list[dict[str, Any]] = json.loads(copy.read_text("utf-8"))["cells"]
    for cell in cells:
        cell["source"] = "".join(cell["source"])
        for one in cell.get("outputs", []):
            one["text"] = "".join(one.get("text", []))
    return cells


def last(house: House) -> str:
    return house.good("ps", "-q", "--all").split()[0]


def test_cells_print_into_the_log_and_the_copy_has_their_outputs(house: House) -> None:
    path = notebook(
        house,
        {"cell_type": "markdown", "source": "# Title", "metadata": {}},
        code("rate = 0.1\nname = 'a'\nsteps = 2", "parameters"),
        code("import helper\nprint(helper.double(steps), rate, name, type(steps).__name__)"),
        code("6 * 7"),
        code("raise SystemError('never')", "skip-execution"),
    )
    Path(path).with_name("helper.py").write_text("def double(n): return 2 * n")

    done = house.run("run", path, "--rate=0.5", "--steps=21", "--name=b c")

    log = done.stdout.decode()
    assert done.returncode == 0, log + done.stderr.decode()
    assert "--- cell 2 of 3\n42 0.5 b c int\n" in log
    assert "--- cell 3 of 3\n42\n" in log
    cells = executed(house, last(house))
    assert [one["metadata"].get("tags", []) for one in cells[1:3]] == [
        ["parameters"],
        ["injected-parameters"],
    ]
    assert cells[2]["source"] == "# Parameters\nrate = 0.5\nsteps = 21\nname = 'b c'"
    assert cells[3]["outputs"][0]["text"] == "42 0.5 b c int\n"
    assert cells[4]["execution_count"] == 3
    assert "".join(cells[4]["outputs"][0]["data"]["text/plain"]) == "42"


def test_a_failing_cell_fails_the_job_and_is_named_with_its_error(house: House) -> None:
    path = notebook(
        house, code("x = 1"), code("print('before')\n{}['key']"), code("print('after')")
    )

    done = house.run("run", path)

    assert done.returncode == 1
    log = done.stdout.decode()
    assert "before" in log
    assert "KeyError" in log
    assert "\x1b" not in log
    assert "after" not in log
    job = last(house)
    found = house.json("show", job)
    assert (found["state"], found["reason"]["code"]) == ("failed", "cell-failed")
    assert "cell 2 of train 训练.ipynb failed: KeyError: 'key'" in house.good("show", job)
    cells = executed(house, job)
    assert [one["output_type"] for one in cells[1]["outputs"]] == ["stream", "error"]
    assert cells[2]["outputs"] == []


def test_a_kernel_that_dies_is_the_cause(house: House) -> None:
    path = notebook(house, code("import os\nos._exit(3)"))

    assert house.run("run", path).returncode == 1

    assert "cell 1 of train 训练.ipynb failed: its kernel died" in house.good("show", last(house))


def test_a_stopped_one_keeps_what_it_has(house: House) -> None:
    path = notebook(house, code("print('first')"), code("import time\ntime.sleep(3600)"))
    job = house.good("run", "-d", "-q", path).strip()
    until(lambda: "cell 2" in house.good("logs", job))

    house.good("stop", "--wait", job)

    assert house.state(job) == "cancelled"
    assert executed(house, job)[0]["outputs"][0]["text"] == "first\n"


def test_what_is_no_notebook_and_what_is_no_parameter_is_said(house: House) -> None:
    path = house.script("print(1)", "train.ipynb")
    assert house.run("run", path).returncode == 1
    said = house.good("show", last(house))
    assert "the notebook could not be run: it is not a notebook" in said

    refused = house.run("run", notebook(house, code("x")), "--epochs", "3")
    assert refused.returncode == 2
    assert b"'--epochs' is not of the form --name=value" in refused.stderr

    assert house.run("run", notebook(house, code("x")), "--1st=3").returncode == 1
    assert "'1st' cannot be the name of a variable" in house.good("show", last(house))


def test_another_language_s_kernel_is_named(house: House) -> None:
    path = Path(notebook(house, code("cat(1)"), kernel="ir"))
    path.write_text(path.read_text().replace('"python"', '"R"'))

    assert house.run("run", str(path)).returncode == 1

    assert "its kernel 'ir' is not in the image (there: python3)" in house.good("show", last(house))


def test_an_environment_without_a_kernel_says_so(tmp_path: Path) -> None:
    with opened(tmp_path) as house:
        done = house.run("run", notebook(house, code("x = 1")))

        assert done.returncode == 1
        found = house.json("show", last(house))
        assert found["reason"]["code"] == "notebook-failed"
        assert "has no nbformat, nbclient, ipykernel" in house.good("show", last(house))
