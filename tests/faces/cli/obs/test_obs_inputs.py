"""Inputs of this machine for a server elsewhere: sent once, and found again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from danlu.faces.cli import local
from tests.faces.cli.house import House


def elsewhere(house: House) -> dict[str, str]:
    """What makes the house's server look like one that is somewhere else."""
    house.good("up")
    ready: Any = local.read_ready(str(house.data))
    return {
        "DANLU_SERVER": ready["api"],
        "DANLU_ACCESS_KEY": ready["access_key"],
        "DANLU_SECRET_KEY": ready["secret_key"],
        "DANLU_DATA": "",
    }


def test_a_directory_of_this_machine_is_an_input_of_a_server_elsewhere(
    house: House, tmp_path: Path
) -> None:
    data = tmp_path / "my data"
    (data / "deep").mkdir(parents=True)
    (data / "a.txt").write_text("1")
    (data / "deep/b").write_text("2")
    env = elsewhere(house)
    code = house.script("print('unused')")
    words = ("run", "--json", "-d", "--input", f"data={data}", code)
    first = house.run(*words, env=env)
    assert first.returncode == 0, first.stderr.decode()
    assert b"sending 2 files" in first.stderr
    again = house.run(*words, env=env)
    assert b"sending" not in again.stderr
    jobs = [json.loads(done.stdout.splitlines()[0])["id"] for done in (first, again)]
    urls = {house.json("show", job)["inputs"][0]["url"] for job in jobs}
    (url,) = urls
    listed = [
        json.loads(line) for line in house.good("obs", "ls", "-r", "--json", url).splitlines()
    ]
    assert sorted(one["url"].removeprefix(url) for one in listed) == ["a.txt", "deep/b"]
    (data / "a.txt").write_text("newer")
    third = house.run(*words, env=env)
    assert b"sending 2 files" in third.stderr
