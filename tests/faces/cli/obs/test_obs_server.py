"""`danlu obs` through the server's own door, without being told where that is."""

from __future__ import annotations

import json
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
