"""The ways in which scripts import MoXing, and what they are told of the rest of it."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys

import pytest

import moxing
from tests.services import ROOT

RUNTIME = ROOT / "src" / "danlu" / "runtime"
FORMS = """
import moxing as mox
from moxing.framework import file
from moxing.framework.file import file_io
import moxing.mxnet as mxnet
import moxing.framework.file.file_io
assert mox.file is file is mxnet.file
assert file.copy_parallel is file_io.copy_parallel
file_io._LARGE_FILE_METHOD = 1
import sys
foreign = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)
print(sorted(foreign - before))
"""


def test_every_form_works_on_the_standard_library_alone() -> None:
    first = "import sys\nbefore = {n.partition('.')[0] for n in sys.modules}\n"
    done = subprocess.run(
        [sys.executable, "-S", "-c", first + FORMS],
        env={"PYTHONPATH": str(RUNTIME)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['moxing']\n"


def test_it_is_nobodys_who_only_installed_danlu() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import danlu; import moxing"],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'moxing'" in done.stderr


def test_nothing_of_the_server_is_imported() -> None:
    for path in RUNTIME.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.partition(".")[0] == "danlu"], path


def test_what_is_not_offered_is_named() -> None:
    for module in ("moxing", "moxing.framework", "moxing.framework.file", "moxing.mxnet"):
        with pytest.raises(AttributeError, match=rf"{module}\.run is not offered.*copy_parallel"):
            importlib.import_module(module).run  # noqa: B018 - asking is the point
    assert not hasattr(moxing, "get_flag")


def test_the_training_loop_for_tensorflow_explains_itself() -> None:
    with pytest.raises(ImportError, match="TensorFlow 1"):
        importlib.import_module("moxing.tensorflow")
