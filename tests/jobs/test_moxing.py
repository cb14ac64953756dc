"""moxing is there in every job, as it is on ModelArts."""

from __future__ import annotations

from pathlib import Path

from tests.faces.cli.house import House

LOCAL = """
import os, sys
import moxing as mox
from moxing.framework import file
data, out = (arg.partition("=")[2] for arg in sys.argv[1:])
mox.file.copy_parallel(data, "/cache/data")
assert file.list_directory("/cache/data", recursive=True) == ["a.txt", "deep", "deep/b.txt"]
mox.file.write(os.path.join(out, "metric.json"), "{}")
mox.file.copy_parallel("/cache/data", os.path.join(out, "model"))
"""


def test_a_script_moves_files_with_it(house: House, tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    (data / "deep").mkdir(parents=True)
    (data / "a.txt").write_text("a")
    (data / "deep" / "b.txt").write_text("b")

    house.good(
        "run", "--input", f"data_url={data}", "--output", f"train_url={out}", house.script(LOCAL)
    )

    assert (out / "metric.json").read_text() == "{}"
    assert (out / "model" / "deep" / "b.txt").read_text() == "b"


def test_a_script_that_names_its_own_modules_has_it_too(house: House) -> None:
    script = "import moxing, sys; print(moxing.__file__.endswith('runtime/moxing/__init__.py'))"

    assert "True" in house.good("run", "--env", "PYTHONPATH=/nowhere", house.script(script))


def test_a_moxing_of_the_scripts_own_goes_first(house: House) -> None:
    script = house.script("import moxing; print(moxing.mine)")
    (Path(script).parent / "moxing.py").write_text("mine = 'my own'")

    assert "my own" in house.good("run", script)
