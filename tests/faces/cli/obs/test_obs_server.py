"""`danlu obs` through the server's own door, without being told where that is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.faces.cli.house import House

ODD = ("plain", "a b", "a+b", "中文/😀", "new\nline", "a\rb", "\x01", "\x7f", "%20", "<&>")


def test_a_tree_goes_through_the_servers_own_door(house: House, tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in ODD:
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(name.encode())
    house.good("up")
    place = "obs://danlu/tests/door/"
    assert house.json("obs", "cp", "-r", str(source), place)["files"] == len(ODD)
    assert house.json("obs", "sync", str(source), place)["unchanged"] == len(ODD)
    house.good("obs", "cp", "-r", place, str(tmp_path / "back"))
    back = tmp_path / "back"
    found = {str(path.relative_to(back)): path for path in back.rglob("*") if path.is_file()}
    assert {name: path.read_bytes().decode() for name, path in found.items()} == {
        name: name for name in ODD
    }
    listed = house.good("obs", "ls", "-r", place, "--json").splitlines()
    assert {json.loads(line)["key"] for line in listed} == {f"tests/door/{name}" for name in ODD}
    assert house.json("obs", "rm", "-r", place)["removed"] == len(ODD)
    assert house.json("obs", "du", place)["files"] == 0


IN_PARTS = """
import sys
from danlu.faces.cli import main
from danlu.faces.cli.obs import copies

copies.AT_ONCE_BYTES, copies.PART_BYTES = 1 << 20, 1 << 20
sys.exit(main.main())
"""


def test_an_object_in_parts_between_buckets_of_the_server(house: House, tmp_path: Path) -> None:
    """As objects above 5 GiB are copied: with all that is said of them."""
    data = os.urandom((3 << 20) + 1)
    (tmp_path / "large").write_bytes(data)
    (tmp_path / "large").chmod(0o755)
    house.good("up")
    house.good("obs", "mb", "obs://copies")
    house.good("obs", "cp", str(tmp_path / "large"), "obs://danlu/copies/large")
    words = ["obs", "cp", "obs://danlu/copies/large", "obs://copies/here/"]
    done = subprocess.run(
        [sys.executable, "-P", "-c", IN_PARTS, *words], env=house.env, cwd=house.home, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0
    house.good("obs", "cp", "obs://copies/here/large", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == data
    assert (tmp_path / "back").stat().st_mode & 0o111
    assert house.json("obs", "du", "obs://copies")["files"] == 1
