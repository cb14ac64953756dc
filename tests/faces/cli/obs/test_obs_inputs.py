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


def local_job(house: House, tmp_path: Path) -> Path:
    """A job file whose code and data lie beside it."""
    for name, content in (("code/train.py", "print(1)"), ("data/a.txt", "1"), ("data/b", "22")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    algorithm = {
        "code_dir": "code",
        "boot_file": "train.py",
        "inputs": [{"name": "data", "remote": {"obs": {"obs_url": "./data"}}}],
    }
    file = tmp_path / "job.json"
    file.write_text(json.dumps({"algorithm": algorithm}))
    return file


def test_a_job_files_inputs_of_this_machine_are_sent_too(house: House, tmp_path: Path) -> None:
    env = elsewhere(house)
    done = house.run("run", "--json", "-d", "-f", str(local_job(house, tmp_path)), env=env)
    assert done.returncode == 0, done.stderr.decode()
    assert b"sending 2 files" in done.stderr
    job = json.loads(done.stdout.splitlines()[0])["id"]
    url = house.json("show", job)["inputs"][0]["url"]
    assert len(house.good("obs", "ls", "-r", "--json", url).splitlines()) == 2


def test_a_dry_run_sends_nothing(house: House, tmp_path: Path) -> None:
    """Neither code nor inputs, to a server elsewhere or here; what is there is looked for."""
    env = elsewhere(house)
    before = house.good("obs", "ls", "-r", "obs://danlu/")
    file = local_job(house, tmp_path)
    (tmp_path / "code/train.py").write_text(f"print('{tmp_path}')")
    data = f"more={tmp_path / 'data'}"
    for more in (env, {}):
        done = house.run("run", "--dry-run", "--json", "-f", str(file), "--input", data, env=more)
        assert done.returncode == 0, done.stderr.decode()
        plan = json.loads(done.stdout)
        assert plan["tasks"][0]["argv"][1].endswith("/code/train.py")
        assert sorted(plan["paths"]["inputs"]) == ["data", "more"]
    assert house.good("obs", "ls", "-r", "obs://danlu/") == before
    missing = house.run("run", "--dry-run", "-f", str(file), "--input", "x=obs://danlu/none/")
    assert missing.returncode == 2
    assert b"obs://danlu/none/" in missing.stderr
